"""The validation gate: every missing or failing item, all in one outcome."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.artifacts.experiment_files import Claim
from harness.detectors.alarm import Alarm, Point, Severity
from harness.domain.findings import Finding, as_text
from harness.domain.statuses import RunStatus, Tier, Verdict
from harness.evaluation.scores import counted_runs
from harness.gates.check import judge
from harness.gates.evidence import GateEvidence
from harness.gates.findings import FINDINGS, finding
from harness.runs.endings import bypassed
from tests.gates.evidence import (
    MINIMIZE,
    TIMES,
    at,
    checkpoint,
    evaluation,
    evidence,
    file,
    run,
    run_evidence,
    scored,
    with_run,
    without_file,
)

OUT = "metrics_out_of_time"
BYPASS = (bypassed("exp-0001/run-01", "ran for 60 s"),)
Change = Callable[[GateEvidence], GateEvidence]


def codes(given: GateEvidence) -> list[str]:
    return [found.code for found in judge(given).findings]


def test_complete_evidence_passes_with_tier_and_score() -> None:
    outcome = judge(evidence())
    assert outcome.verdict is Verdict.PASS
    assert outcome.findings == ()
    assert outcome.tier is Tier.SHOULD
    assert outcome.score is not None
    assert outcome.score["mean"] == pytest.approx(0.94)


ALARM = Alarm(
    code="overfit",
    severity=Severity.WARNING,
    metric="val_loss",
    row=9,
    place=8.0,
    message="val_loss: 1.5, best was 1",
    evidence=(Point(row=9, place=8.0, value=1.5),),
    threshold="overfit.worse",
    limit=0.25,
    tries=("Stop at the best checkpoint.",),
)
CHANGES: dict[str, tuple[Change, str, Verdict]] = {
    "a run whose logger was bypassed": (
        lambda e: with_run(e, 1, run=run(1, findings=BYPASS)),
        "run_logger_bypassed",
        Verdict.FAIL,
    ),
    "rows without an end": (
        lambda e: with_run(
            e,
            1,
            run=run(1, findings=(Finding("run_end_missing", "No end row.", "Call end."),)),
        ),
        "run_end_missing",
        Verdict.FAIL,
    ),
    "no runs": (
        lambda e: scored(
            replace(e, runs=()),
        ),
        "runs_missing",
        Verdict.FAIL,
    ),
    "a parent with fewer seeds": (
        lambda e: replace(e, comparison={"against": "exp-0001", "seeds": [3, 2]}),
        "reference_seeds_fewer",
        Verdict.INCONCLUSIVE,
    ),
    "training rows that hold much of the split": (
        lambda e: replace(e, in_train={"rows": 6, "share": 0.06, "repeats": 0.0}),
        "split_contaminated",
        Verdict.INCONCLUSIVE,
    ),
    "a seed not started": (
        lambda e: replace(e, runs=e.runs[:2]),
        "seeds_outstanding",
        Verdict.INCONCLUSIVE,
    ),
    "a seed that somebody picked": (
        lambda e: with_run(e, 2, run=run(2, seed=7)),
        "seeds_not_of_the_plan",
        Verdict.FAIL,
    ),
    "a run still going": (
        lambda e: with_run(e, 2, run=run(2, status=RunStatus.RUNNING, ended_at=None)),
        "run_open",
        Verdict.INCONCLUSIVE,
    ),
    "metrics without epochs": (
        lambda e: with_run(e, 1, epochs=0),
        "metrics_without_epochs",
        Verdict.FAIL,
    ),
    "rows of another run": (
        lambda e: with_run(e, 1, row_runs=frozenset({"exp-0001/run-01", "exp-0007/run-01"})),
        "metrics_of_another_run",
        Verdict.FAIL,
    ),
    "rows without a run": (
        lambda e: with_run(e, 1, row_runs=frozenset({""})),
        "metrics_of_another_run",
        Verdict.FAIL,
    ),
    "another token": (
        lambda e: with_run(e, 1, row_tokens=frozenset({"token-2"})),
        "metrics_of_another_run",
        Verdict.FAIL,
    ),
    "no start row": (
        lambda e: with_run(e, 1, row_tokens=frozenset()),
        "metrics_of_another_run",
        Verdict.FAIL,
    ),
    "metrics edited after the run": (
        lambda e: with_run(e, 1, metrics=file("metrics", "metrics.jsonl", "e" * 64)),
        "metrics_changed",
        Verdict.FAIL,
    ),
    "status edited after the run": (
        lambda e: with_run(e, 1, status=file("status", "training_status.json", "e" * 64)),
        "status_changed",
        Verdict.FAIL,
    ),
    "status of another run": (
        lambda e: with_run(e, 1, status_run="exp-0002/run-01"),
        "status_of_another_run",
        Verdict.FAIL,
    ),
    "status says failed": (
        lambda e: with_run(e, 1, status_state="failed"),
        "status_of_another_run",
        Verdict.FAIL,
    ),
    "no checkpoint for 11 epochs": (
        lambda e: with_run(replace(e, checkpoint_every=10), 1, without_checkpoint=(0, 10)),
        "checkpoint_cadence",
        Verdict.FAIL,
    ),
    "no final checkpoint": (
        lambda e: with_run(e, 1, checkpoints=()),
        "checkpoint_missing",
        Verdict.FAIL,
    ),
    "checkpoint gone": (
        lambda e: with_run(e, 1, checkpoints=(replace(e.runs[0].checkpoints[0], actual=None),)),
        "checkpoint_changed",
        Verdict.FAIL,
    ),
    "checkpoint that gc removed": (
        lambda e: with_run(
            e,
            1,
            checkpoints=(replace(e.runs[0].checkpoints[0], actual=None, removed="2026-01-01"),),
        ),
        "checkpoint_removed",
        Verdict.INCONCLUSIVE,
    ),
    "checkpoint replaced": (
        lambda e: with_run(
            e, 1, checkpoints=(replace(e.runs[0].checkpoints[0], actual="0" * 64),)
        ),
        "checkpoint_changed",
        Verdict.FAIL,
    ),
    "weights that another experiment left": (
        lambda e: with_run(
            e, 1, checkpoints=(replace(e.runs[0].checkpoints[-1], earlier="exp-0001/run-02"),)
        ),
        "checkpoint_copied",
        Verdict.FAIL,
    ),
    "code that changed while it trained": (
        lambda e: with_run(
            e,
            1,
            run=run(1, findings=(Finding("code_changed", "train.py changed.", "Train."),)),
        ),
        "code_changed",
        Verdict.FAIL,
    ),
    **{
        f"the supervisor found {code}": (
            lambda e, code=code: with_run(
                e, 1, run=run(1, findings=(finding(code, "It was so."),))
            ),
            code,
            Verdict.FAIL,
        )
        for code in (
            "metrics_rewritten",
            "checkpoint_known",
            "checkpoint_out_of_window",
            "checkpoint_untrained",
        )
    },
    "rows of before the run": (
        lambda e: with_run(e, 1, times=TIMES._replace(first=at(-6))),
        OUT,
        Verdict.FAIL,
    ),
    "rows of after the run": (
        lambda e: with_run(e, 1, times=TIMES._replace(last=at(66))),
        OUT,
        Verdict.FAIL,
    ),
    "rows that go back in time": (
        lambda e: with_run(e, 1, times=TIMES._replace(back_s=5.1)),
        OUT,
        Verdict.FAIL,
    ),
    "rows without a time": (
        lambda e: with_run(e, 1, times=TIMES._replace(without=1)),
        OUT,
        Verdict.FAIL,
    ),
    "a seed without evaluation": (
        lambda e: scored(e, 0.93, 0.94),
        "evaluation_missing",
        Verdict.INCONCLUSIVE,
    ),
    "no bits for a look": (
        lambda e: replace(scored(e, 0.93, 0.94), way_out="A person sets oracle.bits higher."),
        "bits_spent",
        Verdict.INCONCLUSIVE,
    ),
    "an evaluation of other weights": (
        lambda e: scored(e, 0.93, 0.94, 0.95, checkpoint="9" * 64),
        "evaluation_missing",
        Verdict.INCONCLUSIVE,
    ),
    "the scorer failed": (
        lambda e: scored(
            e,
            None,
            None,
            None,
            findings=(Finding("scorer_failed", "It raised.", "Fix it."),),
        ),
        "scorer_failed",
        Verdict.FAIL,  # the claim has nothing behind it
    ),
    "predict crashed": (
        lambda e: scored(
            e,
            None,
            0.94,
            0.94,
            findings=(Finding("predict_crashed", "Exit 1.", "Fix it."),),
        ),
        "predict_crashed",
        Verdict.FAIL,
    ),
    "no value and no reason": (
        lambda e: scored(e, None, 0.94, 0.94),
        "evaluation_failed",
        Verdict.INCONCLUSIVE,
    ),
    "not isolated though required": (
        lambda e: scored(replace(e, isolation_required=True), 0.93, 0.94, 0.95, sandbox="none"),
        "isolation_absent",
        Verdict.FAIL,
    ),
    "trained unsandboxed though required": (
        lambda e: with_run(replace(e, isolation_required=True), 1, run=run(1, sandbox="none")),
        "isolation_absent",
        Verdict.FAIL,
    ),
    "trained below an open session though required": (
        lambda e: with_run(replace(e, isolation_required=True), 1, run=run(1, caller="open")),
        "isolation_absent",
        Verdict.FAIL,
    ),
    "evaluated below an open session though required": (
        lambda e: scored(replace(e, isolation_required=True), 0.93, 0.94, 0.95, caller="open"),
        "isolation_absent",
        Verdict.FAIL,
    ),
    "nobody knows where it came from though required": (
        lambda e: scored(replace(e, isolation_required=True), 0.93, 0.94, 0.95, caller=None),
        "isolation_absent",
        Verdict.FAIL,
    ),
    "a claim that is too good": (
        lambda e: replace(e, claims={"accuracy": Claim(0.97, "0.97")}),
        "claim_disagrees",
        Verdict.FAIL,
    ),
    "a claim that nearly anything agrees with": (
        lambda e: replace(e, claims={"accuracy": Claim(1.0, "1")}),
        "claim_too_coarse",
        Verdict.FAIL,
    ),
    "a claim of another metric": (
        lambda e: replace(e, claims={"f1": Claim(0.9, "0.9")}),
        "claim_unsupported",
        Verdict.FAIL,
    ),
    "a number in the text of result.md that is not the recomputed one": (
        lambda e: replace(e, prose=(finding("prose_disagrees", "It says 0.97."),)),
        "prose_disagrees",
        Verdict.FAIL,
    ),
    "a number in the text of result.md that nothing supports": (
        lambda e: replace(e, prose=(finding("prose_unsupported", "It says 0.97 on held-out."),)),
        "prose_unsupported",
        Verdict.FAIL,
    ),
    "below the least tier": (
        lambda e: scored(replace(e, claims={}), 0.67, 0.68, 0.69),
        "below_tier",
        Verdict.FAIL,
    ),
    "seeds that were ignored": (
        lambda e: replace(
            e, ignored_seeds=(finding("seed_ignored", "Seeds 101, 102 gave one checkpoint."),)
        ),
        "seed_ignored",
        Verdict.FAIL,
    ),
    "a library was exchanged": (
        lambda e: replace(
            e,
            libraries=(
                finding("libraries_changed", "numpy changed since.", packages={"numpy": "gone"}),
            ),
        ),
        "libraries_changed",
        Verdict.INCONCLUSIVE,
    ),
    "the plan changed": (
        lambda e: replace(
            e, frozen_changes=(finding("plan_changed", "plan.md has another hash."),)
        ),
        "plan_changed",
        Verdict.FAIL,
    ),
    "something recorded was touched": (
        lambda e: replace(e, tampering=(finding("tampering_noticed", "a receipt was cut."),)),
        "tampering_noticed",
        Verdict.FAIL,
    ),
    "an alarm that nobody explained": (
        lambda e: replace(e, alarms={"run-01": (ALARM,)}),
        "alarm_undiagnosed",
        Verdict.FAIL,
    ),
    "the settings were changed": (
        lambda e: replace(
            e, control_changes=(finding("protected_path_changed", "settings.json changed."),)
        ),
        "protected_path_changed",
        Verdict.FAIL,
    ),
    "a linked result": (
        lambda e: replace(
            e,
            files=(
                *e.files[:-1],
                file("result", "result.md", None, finding("artifact_linked", "a link.")),
            ),
        ),
        "artifact_linked",
        Verdict.FAIL,
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_each_fault_is_found_with_its_hint(case: str) -> None:
    change, code, kind = CHANGES[case]
    outcome = judge(change(evidence()))
    found = [item for item in outcome.findings if item.code == code]
    assert found, outcome.findings
    assert outcome.verdict is kind
    assert all(item.message and item.hint for item in outcome.findings)


def test_the_table_of_faults_covers_every_code_that_a_gate_raises_itself() -> None:
    own = {
        code
        for code in FINDINGS
        if not code.startswith(
            ("predict", "split", "scor", "seeds_too", "held_out", "val", "improvement")
        )
    }
    raised = {code for _, code, _ in CHANGES.values()} | {
        "artifact_missing",
        "artifact_empty",
        "artifact_unreadable",
    }
    notes = {code for code, known in FINDINGS.items() if known.outcome is Verdict.PASS}
    passed_on = {
        "path_not_in_workspace",
        "code_unavailable",
        "data_not_here",
        "checkpoint_unreadable",
        "run_not_completed",
        "placement_lost",
        "budget_spent",
        "stopped_by_alarm",
        "result_rejected",
        "weights_unused",
        "prior_not_held",
    }
    assert own - raised - notes == passed_on


def test_a_note_of_the_supervisor_blocks_nothing() -> None:
    note = Finding("processes_left", "2 processes could not be ended.", "Look for them.")
    outcome = judge(with_run(evidence(), 1, run=run(1, findings=(note,))))
    assert outcome.verdict is Verdict.PASS
    assert [found.code for found in outcome.findings] == ["processes_left"]


def test_all_faults_stand_in_one_outcome() -> None:
    broken = without_file(
        without_file(evidence(claims={"f1": Claim(0.9, "0.9")}), "hypothesis"), "config"
    )
    broken = with_run(broken, 1, epochs=0, checkpoints=())
    text = as_text(judge(broken).findings)
    for word in (
        "hypothesis.md",
        "config.yaml",
        "no epoch row",
        "no final checkpoint",
        "claims f1",
    ):
        assert word in text


def test_a_bypassed_logger_is_said_in_those_words_and_first() -> None:
    silent = run_evidence(
        1,
        run=run(1, status=RunStatus.KILLED, findings=BYPASS, files={}),
        metrics=file("metrics", "runs/run-01/metrics.jsonl", None),
        status=file("status", "runs/run-01/training_status.json", None),
        row_runs=frozenset(),
        row_tokens=frozenset(),
        epochs=0,
        checkpoints=(),
    )
    outcome = judge(scored(evidence(runs=(silent,))))
    assert outcome.verdict is Verdict.FAIL
    assert outcome.findings[0].message.startswith("The run logger was bypassed: exp-0001/run-01")
    assert [found.code for found in outcome.findings].count("run_logger_bypassed") == 1
    assert {
        "artifact_missing",
        "checkpoint_missing",
        "evaluation_missing",
        "seeds_outstanding",
    } <= {found.code for found in outcome.findings}
    assert "claim_unsupported" in {found.code for found in outcome.findings}


def test_a_crashed_run_is_outstanding_not_a_breach_for_what_it_could_not_leave_behind() -> None:
    crashed = run_evidence(
        3,
        run=run(3, status=RunStatus.FAILED, reason="crashed: MemoryError", files={}),
        metrics=file("metrics", "runs/run-03/metrics.jsonl", None),
        checkpoints=(),
    )
    outcome = judge(scored(evidence(runs=(*evidence().runs[:2], crashed), claims={}), 0.93, 0.94))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert [found.code for found in outcome.findings] == [
        "seeds_outstanding",
        "evaluation_missing",
    ]
    assert "crashed: MemoryError" in outcome.findings[0].message


def test_fail_goes_before_inconclusive_and_inconclusive_before_pass() -> None:
    outstanding = replace(scored(evidence(claims={}), 0.93, 0.94), runs=evidence().runs[:2])
    assert judge(outstanding).verdict is Verdict.INCONCLUSIVE
    assert judge(without_file(outstanding, "hypothesis")).verdict is Verdict.FAIL
    assert judge(evidence()).verdict is Verdict.PASS


def test_a_part_of_the_seeds_reaches_no_tier_and_fails_none() -> None:
    outcome = judge(scored(evidence(claims={}), 0.1, 0.1))
    assert outcome.tier is None
    assert "below_tier" not in codes(scored(evidence(claims={}), 0.1, 0.1))
    assert outcome.score is not None  # shown, not judged


def test_a_seed_that_was_started_cannot_be_left_out() -> None:
    """Four seeds were run, three went well: three are asked for, but the fourth counts too."""
    fourth = run_evidence(
        4, run=run(4, status=RunStatus.FAILED, reason="out of memory"), checkpoints=()
    )
    given = evidence(runs=(*evidence().runs, fourth))
    assert "seeds_outstanding" in codes(given)
    assert judge(given).tier is None


def test_tiers_follow_the_direction_of_the_plan() -> None:
    low = scored(evidence(objective=MINIMIZE, claims={}), 0.05, 0.06, 0.07, metric="mse")
    high = scored(evidence(objective=MINIMIZE, claims={}), 0.7, 0.8, 0.9, metric="mse")
    assert judge(low).tier is Tier.COULD
    assert codes(high) == ["below_tier"]
    assert "needs <= 0.5" in judge(high).findings[0].message


@pytest.mark.parametrize(
    ("text", "agrees"), [("0.94", True), ("0.9", True), ("0.945", False), ("0.9400", True)]
)
def test_a_claim_agrees_within_half_a_unit_of_its_last_digit(text: str, agrees: bool) -> None:
    assert (codes(evidence(claims={"accuracy": Claim(float(text), text)})) == []) is agrees


def test_a_missing_result_is_fixed_by_a_person_or_by_an_oracle() -> None:
    (found,) = judge(without_file(evidence(claims={}), "result")).findings
    for way in (
        "Write result.md",
        "`harness experiment result exp-0001 --claim",
        "`record_result`",
    ):
        assert way in found.hint
    assert len(found.hint.split(". ")) == 1


def test_looking_twice_gives_the_same_outcome_and_changes_nothing() -> None:
    given = without_file(evidence(), "result")
    before = repr(given)
    assert judge(given) == judge(given)
    assert repr(given) == before


def test_an_unknown_code_from_below_never_passes() -> None:
    strange = Finding("never_heard_of", "Something new.", "Look.")
    given = scored(evidence(), 0.93, 0.94, 0.95, findings=(strange,))
    assert judge(given).verdict is Verdict.FAIL


def test_w2_empty_files_and_a_forged_result_do_not_pass() -> None:
    """There two touched files and a result.md with the metric "anything" at -999 went through."""
    empty = [
        file(name, path, "e" * 64, finding("artifact_empty", f"{path} is empty."))
        for name, path in (("metrics", "metrics.jsonl"), ("status", "training_status.json"))
    ]
    touched = run_evidence(1, metrics=empty[0], status=empty[1], checkpoints=(), epochs=0)
    outcome = judge(scored(evidence(runs=(touched,), claims={"anything": Claim(-999.0, "-999")})))
    assert outcome.verdict is Verdict.FAIL
    assert {"artifact_empty", "checkpoint_missing", "claim_unsupported"} <= {
        found.code for found in outcome.findings
    }


def test_w2_hypothesis_and_config_are_required() -> None:
    for name in ("hypothesis", "config"):
        assert judge(without_file(evidence(), name)).verdict is Verdict.FAIL


def test_w2_the_tier_is_computed_from_the_plan_whatever_the_result_says() -> None:
    low = scored(evidence(claims={"accuracy": Claim(0.99, "0.99")}), 0.3, 0.3, 0.31)
    outcome = judge(low)
    assert outcome.tier is None
    assert {found.code for found in outcome.findings} == {"claim_disagrees", "below_tier"}


def test_counted_runs_are_of_the_newest_code_one_a_seed() -> None:
    old = [run(1, code="old"), run(2, code="old")]
    new = [
        run(3, seed=101, code="new", status=RunStatus.FAILED),
        run(4, seed=102, code="new"),
        run(5, seed=101, code="new"),
    ]
    assert [item.id for item in counted_runs([*old, *new])] == ["run-05", "run-04"]
    assert counted_runs([]) == []


def test_counted_runs_are_of_the_newest_command() -> None:
    """Else the harness would average a short training with a long one, or let an old command's
    score stand."""
    short = [
        run(1, argv=("python", "train.py", "--short")),
        run(2, argv=("python", "train.py", "--short")),
    ]
    assert [item.id for item in counted_runs([*short, run(3, seed=101)])] == ["run-03"]


@pytest.mark.parametrize("later", [RunStatus.FAILED, RunStatus.KILLED, RunStatus.RUNNING])
def test_an_older_luckier_run_of_a_seed_hides_nothing(later: RunStatus) -> None:
    assert [item.id for item in counted_runs([run(1), run(2, seed=101, status=later)])] == [
        "run-02"
    ]


@pytest.mark.parametrize("lost", [RunStatus.LOST, RunStatus.CANCELLED])
def test_a_run_that_says_nothing_about_the_training_hides_nothing_either(lost: RunStatus) -> None:
    whole, gone = run(1, seed=7), run(2, seed=7, status=lost)
    assert counted_runs([whole, gone]) == [whole]
    again = run(3, seed=7)
    assert counted_runs([gone, again]) == [again]
    assert counted_runs([replace(gone, id="run-01"), gone]) == [gone]


def test_the_newest_final_checkpoint_is_the_one_that_counts() -> None:
    item = run_evidence(1)
    older = replace(item.checkpoints[0], checkpoint=checkpoint(7))
    assert replace(item, checkpoints=(older, *item.checkpoints)).final == item.checkpoints[0]
    assert evaluation(1, 0.9).checkpoint == item.checkpoints[0].checkpoint.id


def test_one_fault_of_several_seeds_is_told_once_with_the_seeds() -> None:
    crash = Finding("predict_crashed", "Exit 1.", "Fix it.", {"exit_code": 1})
    (told,) = judge(scored(evidence(claims={}), None, None, None, findings=(crash,))).findings
    seeds = [item.seed for item in scored(evidence(), None, None, None).evaluations]
    assert told.message == f"For the seeds {', '.join(map(str, seeds))}: Exit 1."
    assert told.data == {"exit_code": 1, "seeds": seeds}
    (alone,) = judge(scored(evidence(claims={}), None, 0.9, 0.9, findings=(crash,))).findings[:1]
    assert len(seeds) == 3
    assert alone.code == "predict_crashed"
