"""diagnosis.md: why runs went wrong. An explanation, so a claim; that it names what happened is
checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.front_matter import FrontMatter, quote, read_front_matter
from harness.artifacts.text import read_text
from harness.errors import UsageError

SECTIONS = ("What happened", "Mechanism", "Evidence")
_HINT = "Write it with `record_diagnosis`; docs/file-formats.md has the form."
_RUN = re.compile(r"^## (run-\d+)\s*$", re.MULTILINE)
_PART = re.compile(r"^### (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Diagnosed:
    """One alarm that the diagnosis explains."""

    run: str
    code: str
    metric: str
    rows: tuple[int, ...]
    """Of the run's own rows, from 1: those that show it."""


@dataclass(frozen=True, kw_only=True)
class RunDiagnosis:
    run: str
    what_happened: str
    mechanism: str
    evidence: str
    """Markdown: a line a row, as it was logged."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    experiment: str
    alarms: tuple[Diagnosed, ...]
    runs: tuple[RunDiagnosis, ...]


def render_diagnosis(diagnosis: Diagnosis, *, by: str) -> str:
    """The text of diagnosis.md, runs in order."""
    lines = ["---", f"experiment: {diagnosis.experiment}", f"by: {quote(by)}", "alarms:"]
    lines += [
        f"  - {{run: {item.run}, code: {item.code}, metric: {quote(item.metric)}, rows:"
        f" [{_joined(item.rows)}]}}"
        for item in diagnosis.alarms
    ]
    lines += ["---", "", f"# Diagnosis of {diagnosis.experiment}"]
    for run in diagnosis.runs:
        lines += ["", f"## {run.run}"]
        for title, text in zip(
            SECTIONS, (run.what_happened, run.mechanism, run.evidence), strict=True
        ):
            lines += ["", f"### {title}", "", text.strip()]
    return "\n".join([*lines, ""])


def read_diagnosis(path: Path) -> Diagnosis:
    """Raises NotFoundError when there is no file, UsageError with file, line and what was expected:
    front matter with `experiment` and `alarms` (run, code, metric, rows), and for each run a
    section with its three parts."""
    return parse_diagnosis(read_text(path), where=path.name)


def parse_diagnosis(text: str, *, where: str) -> Diagnosis:
    """As `read_diagnosis`, from text with `\\n` line ends."""
    front = read_front_matter(text, where=where)
    listed = front.data.get("alarms")
    if not isinstance(listed, list) or not listed:
        raise _unreadable(front, "alarms", "expected a list of {run, code, metric, rows}")
    alarms = tuple(_alarm(front, place, item) for place, item in enumerate(listed))
    runs = tuple(_runs(front.body, where))
    if missing := sorted({item.run for item in alarms} - {item.run for item in runs}):
        raise UsageError(
            f"{where}: there is no section `## {missing[0]}`, whose alarms are listed.",
            hint=_HINT,
            code=_CODE,
        )
    return Diagnosis(experiment=str(front.data.get("experiment", "")), alarms=alarms, runs=runs)


_CODE = "diagnosis_unreadable"


def _alarm(front: FrontMatter, place: int, item: Any) -> Diagnosed:
    if not isinstance(item, dict) or not all(
        isinstance(item.get(key), str) for key in ("run", "code", "metric")
    ):
        raise _unreadable(
            front,
            "alarms",
            "each entry is {run: run-01, code: divergence, metric: loss, rows: [3]}",
        )
    rows = item.get("rows")
    if (
        not isinstance(rows, list)
        or not rows
        or not all(type(row) is int and row > 0 for row in rows)
    ):
        raise _unreadable(
            front, "alarms", f"rows of entry {place + 1} must be a list of row numbers from 1"
        )
    return Diagnosed(run=item["run"], code=item["code"], metric=item["metric"], rows=tuple(rows))


def _runs(body: str, where: str) -> list[RunDiagnosis]:
    found = []
    _, *pieces = _RUN.split(body)
    for run, text in zip(pieces[::2], pieces[1::2], strict=True):
        _, *parts = _PART.split(text)
        told = {title: part.strip() for title, part in zip(parts[::2], parts[1::2], strict=True)}
        empty = [title for title in SECTIONS if not told.get(title)]
        if empty:
            raise UsageError(
                f"{where}: `## {run}` says nothing under `### {empty[0]}`; expected all of"
                f" {', '.join(SECTIONS)}.",
                hint=_HINT,
                code=_CODE,
            )
        what, mechanism, evidence = (told[title] for title in SECTIONS)
        found.append(
            RunDiagnosis(run=run, what_happened=what, mechanism=mechanism, evidence=evidence)
        )
    return found


def _unreadable(front: FrontMatter, key: str, expected: str) -> UsageError:
    return UsageError(
        f"{front.where}:{front.line_of(key)}: {key}: {expected}.", hint=_HINT, code=_CODE
    )


def _joined(rows: Sequence[int]) -> str:
    return ", ".join(str(row) for row in rows)
