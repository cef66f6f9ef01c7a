"""Rows to train on and rows to evaluate on, checked before a specification is recorded: what could
never be trained or never be scored is a problem now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.posttrain.fingerprints import rows_of
from harness.posttrain.problems import Problem, problem
from harness.posttrain.thresholds import THRESHOLDS
from harness.posttrain.vocabulary import Evaluator, Mode

Needed = Sequence[tuple[str, ...]]
"""Names of which a row has text in one, each."""
_PAIR = (("prompt",), ("chosen",), ("rejected",))
_TRAINED: dict[Mode, Needed] = {
    Mode.ORPO: _PAIR,
    Mode.DPO: _PAIR,
    Mode.SFT: (("prompt",), ("completion", "chosen")),
    Mode.GRPO: (("prompt",), ("answer",)),
}
_SCORED: dict[str, Needed] = {
    Evaluator.PREFERENCE: (("id",), *_PAIR),
    Evaluator.EXACT_MATCH: (("id",), ("prompt",), ("answer", "completion", "chosen")),
    Evaluator.PERPLEXITY: (("id",), ("prompt",), ("completion", "chosen", "answer")),
}


def check_dataset(
    found: list[Problem], root: Path, path: str, mode: Mode | None
) -> tuple[dict[str, Any], set[str]]:
    """{path, sha256, rows} of the rows to train on, and their prompts."""
    told, rows = _table(found, root, "dataset", path, _TRAINED[mode] if mode else ())
    return told, _prompts(rows)


def check_benchmark(
    found: list[Problem], root: Path, path: str, evaluator: Any
) -> tuple[dict[str, Any], set[str]]:
    """As `check_dataset`: rows that `evaluator`, a name or a program of the project, can score one
    by one, and as many as a verdict asks for."""
    named = evaluator if isinstance(evaluator, str) else ""
    told, rows = _table(found, root, "benchmark", path, _SCORED.get(named, (("id",), ("prompt",))))
    ids = [str(row.get("id")) for row in rows]
    if (
        twice := sorted({name for name in ids if ids.count(name) > 1})
        if len(set(ids)) != len(ids)
        else []
    ):
        found.append(
            problem("benchmark", "an id of its own for each row", twice[0], "it is there twice")
        )
    if rows and len(rows) < THRESHOLDS.rows:
        least = f"at least {THRESHOLDS.rows} rows"
        found.append(
            problem("benchmark", least, len(rows), "too few for any verdict but INCONCLUSIVE")
        )
    return told, _prompts(rows)


def _table(
    found: list[Problem], root: Path, name: str, path: str, needed: Needed
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    whole = (root / path).resolve()
    try:
        digest, rows = rows_of(whole)
    except (HarnessError, OSError) as error:
        found.append(problem(name, "a file with a JSON object a line", path, str(error)))
        return {}, []
    for number, row in enumerate(rows, 1):
        if fault := _fault(row, needed):
            found.append(problem(f"{name} row {number}", *fault))
            break
    kept = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)
    return {"path": kept, "sha256": digest, "rows": len(rows)}, rows


def _fault(row: dict[str, Any], needed: Needed) -> tuple[str, Any, str] | None:
    """(expected, actual, reason)."""
    wrong = [
        names
        for names in needed
        if not any(isinstance(row.get(name), str) and row[name].strip() for name in names)
    ]
    if wrong:
        return f"text in {', '.join(map(' or '.join, wrong))}", row.get(wrong[0][0]), "missing"
    if needed[-3:] == _PAIR and row["chosen"] == row["rejected"]:
        return "chosen that differs from rejected", row["chosen"], "equal"
    return None


def _prompts(rows: list[dict[str, Any]]) -> set[str]:
    return {" ".join(str(row.get("prompt")).split()) for row in rows}
