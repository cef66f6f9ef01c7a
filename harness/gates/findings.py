"""The closed table of finding codes: what each means, how to fix it, and what it does to a
verdict."""

from typing import Any, NamedTuple

from harness.domain.findings import Finding
from harness.domain.statuses import Verdict


class Known(NamedTuple):
    meaning: str
    hint: str
    outcome: Verdict
    """FAIL: the contract was broken or a check is false. INCONCLUSIVE: the harness could not judge.
    PASS: a note, it blocks nothing."""


FINDINGS: dict[str, Known] = {
    # how the runs went
    "run_logger_bypassed": Known(
        "Training did not report through the run logger.",
        "Train with `harness.run_logger.RunLogger.from_environment()`: start, epoch,"
        " checkpoint_saved, end; call start first of all.",
        Verdict.FAIL,
    ),
    "code_changed": Known(
        "The code changed while a run of it trained.",
        "Leave the code alone while it trains, also from within; then train again.",
        Verdict.FAIL,
    ),
    "runs_missing": Known(
        "No run was registered.",
        "Train with `harness train EXP -- CMD`; the harness starts one run a seed.",
        Verdict.INCONCLUSIVE,
    ),
    "seeds_outstanding": Known(
        "Not every seed has a completed run of the newest code and command.",
        "Fix what stopped the run (its stderr.log), then train again; completed seeds are not"
        " repeated.",
        Verdict.INCONCLUSIVE,
    ),
    "seeds_not_of_the_plan": Known(
        "A run has a seed that the harness did not choose.",
        "Open a new experiment and train it with `harness train`: it takes the plan's seeds.",
        Verdict.FAIL,
    ),
    "run_open": Known(
        "A run has not ended yet.", "Wait for it to end, then look again.", Verdict.INCONCLUSIVE
    ),
    "seed_ignored": Known(
        "Two seeds gave the same weights.",
        "Let the training code take its seed from the run logger (`log.seed`), for every source of"
        " randomness.",
        Verdict.FAIL,
    ),
    # what a supervisor found
    "run_end_missing": Known(
        "A run's rows have no end.", "Call log.end() last, then train again.", Verdict.FAIL
    ),
    "checkpoint_unreadable": Known(
        "A checkpoint cannot be read.", "Save regular files, then train again.", Verdict.FAIL
    ),
    "checkpoint_cadence": Known(
        "More epochs than the plan says passed without a checkpoint.",
        "Save every `log.checkpoint_every` epochs and call `log.checkpoint_saved(path,"
        " epoch=epoch)`; harness.training.checkpointer.Checkpointer does both.",
        Verdict.FAIL,
    ),
    "stopped_by_alarm": Known(
        "A fatal alarm ended a run.",
        "Read its diagnosis, change what it names, train again.",
        Verdict.INCONCLUSIVE,
    ),
    "alarm_undiagnosed": Known(
        "A run raised an alarm that no diagnosis explains.",
        "Let the training-checker explain it with record_diagnosis: what happened, by which"
        " mechanism, which rows show it.",
        Verdict.FAIL,
    ),
    "alarm_open": Known(
        "A run raised an alarm that stands.",
        "Look at its rows; the training-checker explains it.",
        Verdict.PASS,
    ),
    "run_not_completed": Known(
        "A run did not complete.", "Fix what stopped it, then train again.", Verdict.INCONCLUSIVE
    ),
    "budget_spent": Known(
        "The plan's minutes are used.", "A person may raise the budget.", Verdict.INCONCLUSIVE
    ),
    "processes_left": Known(
        "Processes of a run could not be ended.", "Look for them with `ps`.", Verdict.PASS
    ),
    "result_rejected": Known(
        "A trainer's result does not agree with its specification or with the files.",
        "Correct the trainer, then run it again.",
        Verdict.FAIL,
    ),
    "run_recovered": Known(
        "A run was closed after its supervisor died.", "Nothing to do.", Verdict.PASS
    ),
    # artifacts
    "artifact_missing": Known(
        "A required file is not there.", "Write it in the experiment's folder.", Verdict.FAIL
    ),
    "artifact_empty": Known(
        "A required file holds nothing.", "Write what its form asks for.", Verdict.FAIL
    ),
    "artifact_linked": Known(
        "A required file, or a folder above it, is a symbolic link.",
        "Put a regular file in its place: what a link leads to can change unnoticed.",
        Verdict.FAIL,
    ),
    "artifact_unreadable": Known(
        "A required file cannot be read in its form.",
        "Correct the line that is named.",
        Verdict.FAIL,
    ),
    "metrics_without_epochs": Known(
        "metrics.jsonl holds no epoch row.",
        "Call `log.epoch(epoch, metrics)` once an epoch.",
        Verdict.FAIL,
    ),
    "metrics_of_another_run": Known(
        "metrics.jsonl does not belong to the run.",
        "Train again: only the run logger writes this file.",
        Verdict.FAIL,
    ),
    "metrics_changed": Known(
        "metrics.jsonl is not what it was when the run ended.",
        "Train again: nothing writes this file after the run's end.",
        Verdict.FAIL,
    ),
    "metrics_rewritten": Known(
        "Rows that a run had logged are not in metrics.jsonl any more, or not as they were.",
        "Train again: rows are appended by the run logger and never edited, also not by the"
        " training code.",
        Verdict.FAIL,
    ),
    "metrics_out_of_time": Known(
        "Rows do not say when they were written.",
        "Train again, and call the run logger while it trains: rows cannot be written later.",
        Verdict.FAIL,
    ),
    "clock_set": Known(
        "The clock was set, or the machine slept, while a run trained; times of its rows are not"
        " judged.",
        "Nothing to do.",
        Verdict.PASS,
    ),
    "run_restarted": Known(
        "The training command was started again inside a run.",
        "Nothing to do after a crash; several attempts at a score are several runs: use `harness"
        " train`.",
        Verdict.PASS,
    ),
    "resume_not_exact": Known(
        "A run went on after a stop without all that it had: it is not the run that it would have"
        " been.",
        "Save the parts that are named, too; where the same bits are wanted, train from the start.",
        Verdict.PASS,
    ),
    "launches_beyond_seeds": Known(
        "There were more launches than the seeds that count.",
        "Read the score as one of so many launches: `harness experiment show EXP` lists them.",
        Verdict.PASS,
    ),
    "status_of_another_run": Known(
        "training_status.json does not belong to the run or does not say that it completed.",
        "End the training code with `log.end()`, then train again.",
        Verdict.FAIL,
    ),
    "status_changed": Known(
        "training_status.json is not what it was when the run ended.",
        "Train again: nothing writes this file after the run's end.",
        Verdict.FAIL,
    ),
    "checkpoint_missing": Known(
        "A run left no final checkpoint that the harness recorded.",
        "Save into `log.checkpoint_dir` and call `log.checkpoint_saved(path, final=True)` before"
        " the end.",
        Verdict.FAIL,
    ),
    "checkpoint_changed": Known(
        "A checkpoint is not what it was when the harness recorded it.",
        "Train again.",
        Verdict.FAIL,
    ),
    "checkpoint_removed": Known(
        "A checkpoint was removed by `harness gc` after its experiment was discarded.",
        "Nothing to fix: it can be judged no more; open a new experiment to train it again.",
        Verdict.INCONCLUSIVE,
    ),
    "checkpoint_copied": Known(
        "A checkpoint has the bytes of one that another experiment or another seed left earlier.",
        "Train this experiment's own configuration; only the same code, command, data and seed may"
        " leave these bytes.",
        Verdict.FAIL,
    ),
    "checkpoint_known": Known(
        "A checkpoint has the bytes of a file that stood there before its run.",
        "Train, and save what came of it: weights that a run starts from are not its result.",
        Verdict.FAIL,
    ),
    "checkpoint_out_of_window": Known(
        "A checkpoint was written before its run began.",
        "Train, and save the checkpoint while it trains: a file that was moved or copied in is no"
        " result.",
        Verdict.FAIL,
    ),
    "checkpoint_untrained": Known(
        "The final checkpoint has the bytes of the weights that its run started from.",
        "Find out why the training changes nothing (the optimizer's step, frozen layers), then"
        " train again.",
        Verdict.FAIL,
    ),
    "weights_unchanged": Known(
        "All checkpoints of a run have the same bytes.",
        "Find out whether the training changes anything.",
        Verdict.PASS,
    ),
    # the score
    "evaluation_missing": Known(
        "A seed's checkpoint was not evaluated on this split.",
        "Run `harness evaluate EXP`.",
        Verdict.INCONCLUSIVE,
    ),
    "evaluation_failed": Known(
        "An evaluation gave no score.", "See its findings in evaluation.json.", Verdict.INCONCLUSIVE
    ),
    "isolation_absent": Known(
        "The plan requires a sandbox and there was none.",
        "Install bubblewrap or use Linux 6.7 or newer (Landlock), then train and evaluate again.",
        Verdict.INCONCLUSIVE,
    ),
    "below_tier": Known(
        "The score does not reach the plan's least tier.",
        "Try another hypothesis in the next experiment.",
        Verdict.FAIL,
    ),
    "claim_disagrees": Known(
        "A claim in result.md is not the number that the harness recomputed.",
        "Claim the recomputed number in result.md, or none.",
        Verdict.FAIL,
    ),
    "claim_too_coarse": Known(
        "A claim in result.md has too few digits to say anything.",
        "Claim the recomputed number in result.md with at least two significant digits.",
        Verdict.FAIL,
    ),
    "claim_unsupported": Known(
        "A claim in result.md has no recomputed evaluation behind it.",
        "Remove it from result.md: only the plan's metric, recomputed, can be claimed.",
        Verdict.FAIL,
    ),
    "prose_disagrees": Known(
        "A number in the text of result.md is not the one that the harness recomputed.",
        "Write the recomputed number in result.md, or none.",
        Verdict.FAIL,
    ),
    "prose_unsupported": Known(
        "A number in the text of result.md is of the plan's metric or an experiment; nothing"
        " recomputed supports it.",
        "Remove it from the text of result.md, or evaluate first.",
        Verdict.FAIL,
    ),
    "prose_unproven": Known(
        "A number in the text of result.md is of something else, and neither logs nor evidence"
        " have it.",
        "Say what shows it: docs/claims.md.",
        Verdict.PASS,
    ),
    # what an evaluation found: the experiment's fault
    "code_unavailable": Known(
        "The code snapshot of a run cannot be laid out.",
        "Train again, so that a snapshot is taken.",
        Verdict.FAIL,
    ),
    "predict_crashed": Known(
        "The predict command ended with an error.", "Run it by hand and fix it.", Verdict.FAIL
    ),
    "predict_timed_out": Known(
        "The predict command hit its limit.", "Make it faster.", Verdict.FAIL
    ),
    "predictions_absent": Known(
        "The predict command wrote nothing.",
        "Write to the path in HARNESS_PREDICTIONS.",
        Verdict.FAIL,
    ),
    "predictions_empty": Known(
        "The predictions have no rows.",
        "Write one row for each row of HARNESS_INPUTS.",
        Verdict.FAIL,
    ),
    "predictions_unreadable": Known(
        "The predictions cannot be read.", "Write UTF-8 csv with a header, or npz.", Verdict.FAIL
    ),
    "predictions_too_large": Known(
        "The predictions are larger than any answer.",
        "Write `id` and `prediction` only.",
        Verdict.FAIL,
    ),
    "predictions_wrong_columns": Known(
        "The predictions have other columns.", "Write the columns that are named.", Verdict.FAIL
    ),
    "predictions_wrong_type": Known(
        "Predictions are not of the metric's form.", "Write the form that is named.", Verdict.FAIL
    ),
    "predictions_missing": Known(
        "Rows have no prediction.", "Write one row for each row of HARNESS_INPUTS.", Verdict.FAIL
    ),
    "predictions_duplicate": Known(
        "Rows have several predictions.",
        "Write one row for each row of HARNESS_INPUTS.",
        Verdict.FAIL,
    ),
    "predictions_extra": Known(
        "Predictions are of rows nobody asked for.", "Keep the ids of HARNESS_INPUTS.", Verdict.FAIL
    ),
    "predictions_non_finite": Known(
        "Predictions are NaN or infinite.", "Find where they come from in the model.", Verdict.FAIL
    ),
    "predictions_unknown_class": Known(
        "Predictions name a class that no label has.", "Write one of the classes.", Verdict.FAIL
    ),
    "predictions_not_probabilities": Known(
        "Probabilities do not sum to 1.", "Write a softmax.", Verdict.FAIL
    ),
    "predictions_not_reproducible": Known(
        "The same rows were predicted differently.",
        "Predict each row by itself, without sampling.",
        Verdict.FAIL,
    ),
    "score_not_finite": Known(
        "The score is not finite.", "Look at the size of the predictions.", Verdict.FAIL
    ),
    # what an evaluation found: not the experiment's fault
    "scorer_failed": Known(
        "The scorer failed.", "A person fixes it and approves the plan again.", Verdict.INCONCLUSIVE
    ),
    "split_unusable": Known(
        "A split cannot be used.", "A person fixes the data or the plan.", Verdict.INCONCLUSIVE
    ),
    # notes of plan check
    "splits_overlap": Known(
        "Rows are in two splits.", "Remove them from the training rows.", Verdict.PASS
    ),
    "splits_near_duplicates": Known(
        "Rows of two splits are nearly the same.",
        "Remove them from the training rows.",
        Verdict.PASS,
    ),
    "feature_tells_label": Known(
        "One column alone tells the label.",
        "Leave it out, or explain why it is known beforehand.",
        Verdict.PASS,
    ),
    "scorer_imports_missing": Known(
        "The scorer imports what it will not find.", "Use the standard library.", Verdict.PASS
    ),
    "seeds_too_few": Known(
        "Too few seeds to tell experiments apart.", "Set oracle.seeds to 3 or more.", Verdict.PASS
    ),
    "verdict_stale": Known(
        "What the verdict read has changed since.", "Ask the gate again.", Verdict.PASS
    ),
    "metric_unknown": Known(
        "The scorer does not compute this metric.", "Name the one that it computes.", Verdict.PASS
    ),
    "reference_not_in_place": Known(
        "The plan's references name what is not there.", "Correct the path.", Verdict.PASS
    ),
    "script_not_in_place": Known(
        "A command's script is not in the project.", "Write it.", Verdict.PASS
    ),
    # statistics
    "split_contaminated": Known(
        "The training rows hold more of a split than data of their kind repeats.",
        "A person removes these rows from the training data and approves the plan again.",
        Verdict.INCONCLUSIVE,
    ),
    "reference_seeds_fewer": Known(
        "The experiment that it is compared with has fewer scored seeds.",
        "Give the parent as many seeds as its child.",
        Verdict.INCONCLUSIVE,
    ),
    # what was frozen
    "plan_changed": Known(
        "plan.md is not the plan that was approved.",
        "Restore it, or let a person run `harness plan approve`.",
        Verdict.FAIL,
    ),
    "scorer_changed": Known(
        "The scorer is not the one that was frozen.",
        "Restore it, or let a person run `harness plan approve`.",
        Verdict.FAIL,
    ),
    "split_changed": Known(
        "A data split is not the one that was frozen.",
        "Restore it, or let a person run `harness plan approve`.",
        Verdict.FAIL,
    ),
    "tampering_noticed": Known(
        "Something recorded was changed during this experiment.",
        "Open a new experiment; leave what the harness wrote as it is.",
        Verdict.FAIL,
    ),
    "protected_path_changed": Known(
        "A file that decides what is enforced changed during this experiment.",
        "Let a person look at it with `harness audit`, then restore it, or take it with `harness"
        " audit --accept`.",
        Verdict.FAIL,
    ),
    # held-out
    "validation_not_passed": Known(
        "There is no PASS on validation.",
        "Run `harness gate check EXP --gate validation`.",
        Verdict.FAIL,
    ),
    "validation_overfitted": Known(
        "The score on validation does not carry over to held-out.",
        "Something was chosen by validation: many tries in one run, or its rows in training. A"
        " person looks at the code and decides; a new experiment may draw another validation"
        " split.",
        Verdict.INCONCLUSIVE,
    ),
    "improvement_not_confirmed": Known(
        "What was better than its parent on validation is worse than it on held-out.",
        "Luck, or something was chosen by validation. A person looks at the code and decides; more"
        " seeds, or more rows in both splits, tell a small improvement from none.",
        Verdict.INCONCLUSIVE,
    ),
    "validation_stale": Known(
        "What the PASS on validation rests on has changed.",
        "Run `harness gate check EXP --gate validation` again.",
        Verdict.FAIL,
    ),
}


def finding(code: str, message: str, hint: str | None = None, **data: Any) -> Finding:
    """A finding of a code in the table; `hint` is the table's unless a closer one is known. Raises
    KeyError."""
    known = FINDINGS[code]
    return Finding(code, message, known.hint if hint is None else hint, data)


def outcome_of(found: Finding) -> Verdict:
    """What the finding does to a verdict; a code that the table does not know fails: silence never
    passes."""
    known = FINDINGS.get(found.code)
    return Verdict.FAIL if known is None else known.outcome
