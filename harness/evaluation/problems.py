"""What can keep an evaluation from having a value: one function a finding.

Names of rows and values come from an agent's output; they are quoted, cut and few, because findings
stand word for word in prompts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.domain.findings import Finding
from harness.domain.plain_text import plain
from harness.domain.statuses import Split, spoken

STANDING = frozenset({"predictions_not_reproducible", "weights_unused"})
"""Failed once, failed for good: the same checkpoint and code are not asked again. Who asks until
predict passes by luck would have a score."""
SHOWN = 5
"""Examples named in a message; the count says how many there are."""
_LONGEST = 40
_STDERR_LINES = 10
_STDERR_CHARACTERS = 2000
_START_S = 3.0
"""Python and its libraries are loaded by both, at times from a cold disk."""

_HINT_PREDICT = "Fix the predict command: one row for each row of HARNESS_INPUTS, with its `id`."

_STANDS = (
    " This stands for this checkpoint and code: `harness evaluate` does not ask again. After the"
    " change score the same weights with `harness evaluate EXP --predict-from .`, or train again."
)


class Unscorable(Exception):
    """Ends an evaluation early with a finding; it never leaves this package."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "...'"


def examples(values: Sequence[object]) -> str:
    shown = ", ".join(quoted(value) for value in values[:SHOWN])
    return shown + (", ..." if len(values) > SHOWN else "")


def about_rows(
    code: str, what: str, rows: Sequence[object], total: int, hint: str = _HINT_PREDICT
) -> Finding:
    """`what` is wrong with `rows` out of `total`."""
    message = f"{len(rows)} of {total} predictions {what}: {examples(rows)}."
    return Finding(
        code,
        message,
        hint,
        {"count": len(rows), "total": total, "examples": [quoted(row) for row in rows[:SHOWN]]},
    )


def missing(rows: Sequence[object], total: int) -> Finding:
    return about_rows("predictions_missing", "are missing, rows", rows, total)


def duplicate(ids: Sequence[object], total: int) -> Finding:
    return about_rows("predictions_duplicate", "have an id that came before, rows", ids, total)


def extra(ids: Sequence[object], total: int) -> Finding:
    return about_rows(
        "predictions_extra", "have an id that is not in HARNESS_INPUTS, ids", ids, total
    )


def non_finite(rows: Sequence[object], total: int) -> Finding:
    hint = (
        "Find where NaN or infinity comes from in the model or in predict; a diverged checkpoint"
        " cannot be scored."
    )
    return about_rows("predictions_non_finite", "are NaN or infinite, rows", rows, total, hint)


def wrong_type(rows: Sequence[object], total: int, expected: str) -> Finding:
    hint = f"Write {expected} in each row."
    return about_rows(
        "predictions_wrong_type", f"are not {expected}, (row, value)", rows, total, hint
    )


def unknown_class(values: Sequence[object], total: int, classes: Sequence[str]) -> Finding:
    hint = f"Write one of the classes: {examples(classes)}."
    return about_rows(
        "predictions_unknown_class",
        "name a class that no label has, (row, value)",
        values,
        total,
        hint,
    )


def not_probabilities(rows: Sequence[object], total: int, what: str) -> Finding:
    hint = "Write p_<class> columns in [0, 1] that sum to 1 in each row, e.g. a softmax."
    return about_rows("predictions_not_probabilities", f"{what}, rows", rows, total, hint)


def wrong_columns(names: Sequence[str], expected: str) -> Finding:
    return Finding(
        "predictions_wrong_columns",
        f"The predictions have the columns {examples(names)}; expected {expected}.",
        f"Write the columns {expected}.",
        {"found": [quoted(name) for name in names[:50]]},
    )


def nothing_written(what: str) -> Finding:
    return Finding(
        "predictions_absent",
        f"The predict command ended without an error and {what}.",
        "Write csv or npz with `id` and `prediction`, `score` or `p_<class>`, as the metric needs,"
        " to the path in HARNESS_PREDICTIONS.",
    )


def no_rows() -> Finding:
    return Finding("predictions_empty", "The predictions file has no rows.", _HINT_PREDICT)


def unreadable(why: str) -> Finding:
    return Finding(
        "predictions_unreadable",
        f"The predictions file cannot be read: {why}.",
        "Write UTF-8 csv with a header, or npz of one-dimensional arrays without Python objects.",
    )


def too_large(size: int, limit: int) -> Finding:
    return Finding(
        "predictions_too_large",
        f"The predictions hold {size:,} bytes; the limit is {limit:,}.",
        "Write `id` and `prediction` only, one row for each row of HARNESS_INPUTS.",
        {"bytes": size, "limit": limit},
    )


def crashed(exit_code: int | None, stderr: bytes, hint: str) -> Finding:
    last = last_lines(stderr)
    output = f" Last lines of stderr:\n{last}" if last else " It wrote nothing to stderr."
    return Finding(
        "predict_crashed",
        f"The predict command ended with exit code {exit_code}.{output}",
        hint,
        {"exit_code": exit_code},
    )


def timed_out(seconds: float) -> Finding:
    return Finding(
        "predict_timed_out",
        f"The predict command was ended at its limit of {seconds:g} s.",
        "Make predict faster (batches, fewer imports); what is learned belongs into training. The"
        " limit is as long as the run trained, one minute at least and ten at most: a person may"
        " set oracle.predict_minutes in the plan and approve it again.",
        {"limit_s": seconds},
    )


def longer_than_training(predict: float, training: float) -> Finding | None:
    """A note when predict took longer than the training did, beyond what starting takes."""
    if predict <= training + _START_S:
        return None
    return Finding(
        "predict_longer_than_training",
        f"predict took {predict:.1f} s, training {training:.1f} s: work may be done in predict that"
        " no budget of training counts.",
        "Do the work in training. Where predict is slow by its nature, a person may set"
        " oracle.predict_minutes in the plan and approve it again.",
        {"predict_s": predict, "training_s": training},
    )


def libraries_changed(experiment: str, split: Split, packages: Mapping[str, str]) -> Finding:
    """`packages`: name -> digest now."""
    on = spoken(split)
    return Finding(
        "libraries_changed",
        f"In the project's own Python environment {_few(sorted(packages))} changed since"
        f" {experiment} was evaluated on {on}: predict may answer otherwise now.",
        "Put back what was there, or score what is there now:"
        f" `harness evaluate {experiment} --split {on}`.",
        {"packages": dict(packages)},
    )


def libraries_added(packages: Sequence[str]) -> Finding:
    return Finding(
        "libraries_added",
        f"{_few(packages)} came into the project's own Python environment, or changed there, since"
        " the evaluation: nothing that was registered takes it by its name.",
        "Nothing to do.",
        {"packages": list(packages)},
    )


def _few(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def checkpoint_missing(path: object, why: str) -> Finding:
    return Finding(
        "checkpoint_missing",
        f"The run's checkpoint {path} {why}.",
        "Train again: a checkpoint is a regular file or a folder of regular files in the run's"
        " folder.",
    )


def checkpoint_changed(when: str, expected: str, actual: str) -> Finding:
    return Finding(
        "checkpoint_changed",
        f"The checkpoint {when}: expected hash {expected[:12]}, got {actual[:12]}.",
        "Leave checkpoints alone after the run; train again to make a new one.",
        {"expected": expected, "actual": actual},
    )


def code_unavailable(why: str) -> Finding:
    return Finding(
        "code_unavailable",
        f"The code snapshot of the run cannot be laid out: {why}",
        "Train again, so that a snapshot is taken.",
    )


def not_reproducible(rows: Sequence[object], total: int) -> Finding:
    hint = (
        "Make predict a function of the checkpoint and of each row alone: evaluation mode, no"
        " sampling, nothing that depends on the other rows, their order or their ids." + _STANDS
    )
    return about_rows(
        "predictions_not_reproducible", "differ when predicted again, rows", rows, total, hint
    )


def weights_unused(tried: Sequence[str]) -> Finding:
    return Finding(
        "weights_unused",
        f"predict gives the same answers with other weights ({'; '.join(tried)}): they do not come"
        " from its checkpoint.",
        "Let predict load what it answers with from HARNESS_CHECKPOINT." + _STANDS,
        {"tried": list(tried)},
    )


def weights_not_probed(tried: Sequence[str], opaque: Sequence[str]) -> Finding:
    """A note."""
    why = (
        f"{examples(opaque)} cannot be changed without running code from it"
        if opaque
        else "its checkpoint holds no numbers that can be changed"
    )
    same = f"; with {'; '.join(tried)} the answers are the same" if tried else ""
    return Finding(
        "weights_not_probed",
        f"Whether predict uses its weights is not known: {why}{same}.",
        "Save weights as npz, safetensors or with torch.save.",
        {"tried": list(tried), "opaque": [quoted(name) for name in opaque[:SHOWN]]},
    )


def seeds_alike(seeds: Sequence[int], deterministic: bool) -> Finding:
    """Other bytes, and the same model. A note beside the value: the gate judges it."""
    alike = (
        f"Seeds {', '.join(map(str, seeds))} gave the same model but for noise: their weights, or"
        " all numbers that they answer with, differ by about a millionth or less"
    )
    data = {"alike": list(seeds)}
    if deterministic:
        return Finding(
            "seeds_are_one",
            f"{alike}. The plan says that training draws nothing at random: they count as one.",
            "Nothing to do.",
            data,
        )
    return Finding(
        "seed_ignored",
        f"{alike}. They are one result, and their spread over seeds means nothing.",
        "Seed every random generator of the training with HARNESS_SEED, then train again. Where"
        " training comes to the same model from any seed (a convex loss that has converged, nearest"
        " neighbours, a closed form), nothing is wrong with it: a person sets"
        " training.deterministic: true in the plan and approves it again.",
        data,
    )


def table_changed(which: str, path: object, expected: str, actual: str) -> Finding:
    return Finding(
        "split_changed",
        f"The {spoken(which)} rows in {path} are not those of the approved plan: expected hash"
        f" {expected[:12]}, got {actual[:12]}.",
        "Restore the file, or have a person approve the plan again as a new version.",
        {"split": which, "expected": expected, "actual": actual},
    )


def table_unusable(which: str, why: str) -> Finding:
    return Finding(
        "split_unusable",
        f"The {spoken(which)} rows cannot be used for this plan: {why}",
        "Fix the data or the plan, and approve it again.",
        {"split": str(which)},
    )


def scorer_changed(name: str, why: str) -> Finding:
    return Finding(
        "scorer_changed",
        f"The frozen scorer's file {name} is not what was approved. {why}",
        "Have a person approve the plan again; run `harness ledger verify` to see what else"
        " changed.",
        {"file": name},
    )


def scorer_failed(why: str, stderr: bytes = b"") -> Finding:
    last = last_lines(stderr)
    return Finding(
        "scorer_failed",
        f"The scorer {why}." + (f" Last lines of stderr:\n{last}" if last else ""),
        "This is not the experiment's fault: a person fixes the scorer and approves the plan"
        " again.",
    )


def score_not_finite(value: float) -> Finding:
    return Finding(
        "score_not_finite",
        f"The scorer's value is {value}; a score is a finite number.",
        "Look at the size of the predictions: they are finite, but the metric of them is not.",
    )


def last_lines(stream: bytes) -> str:
    """The end of a process's output, plain, at most ten lines and 2,000 characters."""
    text = plain(stream[-8 * _STDERR_CHARACTERS :].decode("utf-8", errors="replace"))
    last = [line for line in text.split("\n") if line.strip()][-_STDERR_LINES:]
    return "\n".join(last)[-_STDERR_CHARACTERS:]


def withheld(finding: Finding, split: Split) -> Finding:
    """The same finding without words that the predict command, or a row, could choose."""
    if finding.code == "split_unusable" and finding.data["split"] == split:
        return Finding(
            finding.code,
            f"The {spoken(split)} rows cannot be used for this plan. Details are withheld, because"
            " they could carry rows.",
            "A person runs `harness plan check`, which names the row, corrects data or plan, and"
            " approves it again.",
            dict(finding.data),
        )
    # Output, ids and values could carry secret rows to the next reader, who builds models.
    if not finding.code.startswith("predict"):
        return finding
    known: dict[str, Any] = {
        name: finding.data[name]
        for name in ("count", "total", "exit_code", "limit_s")
        if name in finding.data
    }
    shown = ", ".join(f"{name} {value}" for name, value in known.items())
    return Finding(
        finding.code,
        f"On {spoken(split)}: {finding.code.replace('_', ' ')}{f' ({shown})' if shown else ''}. "
        f"Details are withheld, because they could carry {spoken(split)} rows.",
        finding.hint
        if finding.code == "predict_timed_out"
        else "`harness evaluate --check` runs predict on eight training rows and shows its own"
        " error. Make it work on rows of every kind, in other orders and numbers, that have the"
        " columns id and inputs alone.",
        known,
    )
