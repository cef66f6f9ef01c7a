"""Why an experiment failed: one class for each finding, alarm and ending, from its code alone."""

import re
from collections.abc import Iterable
from enum import StrEnum


class Cause(StrEnum):
    """What kind of thing went wrong."""

    CODE = "code"  # the program does what it should not
    OPTIMISATION = "optimisation"  # it trains, and does not learn or does not stay stable
    DATA = "data"  # rows, labels or splits
    CONTRACT = "contract"  # what the harness asks of every run was not written
    CLAIM = "claim"  # more was told than is known
    INTEGRITY = "integrity"  # something frozen, recorded or protected was changed
    RESOURCES = "resources"  # memory, time, disk, a machine
    RESULT = "result"  # nothing is broken: the idea did not do it
    RULE = "rule"  # an active prior was not held
    PERSON = "person"  # a person decided otherwise
    UNKNOWN = "unknown"


def _of(cause: Cause, codes: str) -> dict[str, Cause]:
    return dict.fromkeys(codes.split(), cause)


CAUSES: dict[str, Cause] = {
    **_of(
        Cause.CODE,
        "run_logger_bypassed seed_ignored checkpoint_unreadable checkpoint_untrained"
        " path_not_in_workspace code_unavailable predict_crashed predictions_absent"
        " predictions_empty predictions_unreadable predictions_wrong_columns"
        " predictions_wrong_type predictions_missing predictions_duplicate predictions_extra"
        " predictions_non_finite predictions_unknown_class predictions_not_probabilities"
        " predictions_not_reproducible weights_unused score_not_finite evaluation_failed"
        " run_not_completed crashed never_started exit_code wrong_mode unmoved_parameters"
        " dead_units channel_silent out_of_range resume_discontinuity replica_apart"
        " stall short_rows no_checkpoint",
    ),
    **_of(
        Cause.OPTIMISATION,
        "stopped_by_alarm non_finite overfit divergence loss_spike spike_recovered no_progress"
        " score_collapse plateau gradient_blow_up gradient_vanishing dead_learning_rate"
        " update_size reward_spread_zero reward_gap kl_high entropy_collapse dpo_stuck"
        " failed_alarm",
    ),
    **_of(
        Cause.DATA,
        "split_contaminated split_unusable data_not_here batch_overlap data_order",
    ),
    **_of(
        Cause.CONTRACT,
        "runs_missing seeds_not_of_the_plan seeds_outstanding run_open run_end_missing"
        " checkpoint_cadence checkpoint_missing checkpoint_removed alarm_undiagnosed"
        " artifact_missing artifact_empty artifact_linked artifact_unreadable"
        " metrics_without_epochs evaluation_missing validation_not_passed validation_stale"
        " reference_seeds_fewer isolation_absent",
    ),
    **_of(
        Cause.CLAIM,
        "claim_disagrees claim_too_coarse claim_unsupported prose_disagrees prose_unsupported"
        " result_rejected",
    ),
    **_of(
        Cause.INTEGRITY,
        "metrics_of_another_run metrics_changed metrics_rewritten metrics_out_of_time"
        " status_of_another_run status_changed checkpoint_changed checkpoint_copied"
        " checkpoint_known checkpoint_out_of_window plan_changed scorer_changed split_changed"
        " tampering_noticed protected_path_changed libraries_changed",
    ),
    **_of(
        Cause.RESOURCES,
        "placement_lost budget_spent bits_spent predict_timed_out predictions_too_large"
        " scorer_failed out_of_memory killed lost at_limit throughput_drop memory_creep",
    ),
    **_of(
        Cause.RESULT,
        "below_tier validation_overfitted held_out_too_good improvement_not_confirmed"
        " behind_parent",
    ),
    **_of(Cause.RULE, "prior_not_held"),
    **_of(Cause.PERSON, "rejected overridden"),
}
"""Code -> class: of findings that block, of alarms, of endings (below), of a person's decisions."""

_ENDINGS: tuple[tuple[str, str], ...] = (
    (r"out of memory|OutOfMemory|MemoryError|SIGKILL", "out_of_memory"),
    (r"stopped by the alarm", "failed_alarm"),
    (r"never started", "never_started"),
    (r"crashed|the training said that it failed", "crashed"),
    (r"ended by SIG", "killed"),
    (r"exit code", "exit_code"),
    (r"launcher does not know|supervisor", "lost"),
    (r"limit|minutes|bytes|disk", "at_limit"),
)
"""Words of a run's reason -> code; the first that is found."""


def cause_of(code: str) -> Cause:
    return CAUSES.get(code, Cause.UNKNOWN)


def ending_code(reason: str) -> str:
    """The code of how a run ended that did not complete; "ended" where its words say nothing."""
    found: Iterable[str] = (code for words, code in _ENDINGS if re.search(words, reason))
    return next(iter(found), "ended")
