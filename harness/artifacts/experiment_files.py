"""hypothesis.md, diagnosis.md and result.md, written and read: claims of their author."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.artifacts.content import read_text
from harness.artifacts.front_matter import FrontMatter, quote, read_front_matter
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import inline, plain, quoted
from harness.errors import UsageError

SECTIONS = ("What happened", "Mechanism", "Evidence")
"""The three parts of each run's diagnosis."""
_RUN = re.compile(r"^## (run-\d+)\s*$", re.MULTILINE)
_PART = re.compile(r"^### (.+?)\s*$", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z")
_LARGE = 1e9
"""From here on nobody reads four decimals."""
_DIAGNOSIS_HINT = "Write it with `record_diagnosis`; docs/formats.md has the form."
_RESULT_HINT = (
    "Write it with `record_result`, or begin it with `---`, `claims: {accuracy: 0.94}`, `---`."
)


@dataclass(frozen=True, kw_only=True)
class Hypothesis(Late):
    experiment: str
    parent: str | None
    hypothesis: str
    """One line."""
    rationale: str


@dataclass(frozen=True, kw_only=True)
class DiagnosedAlarm(Late):
    """One alarm that the diagnosis explains."""

    run: str
    code: str
    metric: str
    rows: tuple[int, ...]
    """The run's own rows that show it, numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class RunDiagnosis(Late):
    run: str
    what_happened: str
    mechanism: str
    evidence: str
    """Markdown: one line for each row, as it was logged."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Late):
    experiment: str
    alarms: tuple[DiagnosedAlarm, ...]
    runs: tuple[RunDiagnosis, ...]


@dataclass(frozen=True)
class Claim(Late):
    """A number that an agent states, with the precision in which it states it."""

    value: float
    text: str
    """As it was written: `0.90` claims two digits, `0.9` one."""


@dataclass(frozen=True, kw_only=True)
class ResultFile(Late):
    claims: dict[str, Claim]
    """Metric -> the claimed value."""
    shortfalls: list[str]
    """What is missing, most important first; may be empty."""
    body: str


def render_hypothesis(
    *, experiment: str, parent: str | None, hypothesis: str, rationale: str
) -> str:
    """The text of hypothesis.md; both texts stand quoted below the front matter."""
    return "\n".join(
        [
            "---",
            f"experiment: {experiment}",
            f"parent: {parent or 'null'}",
            f"hypothesis: {quote(hypothesis)}",
            "---",
            "",
            f"# {inline(hypothesis)}",
            "",
            *(quoted(rationale.strip()) if rationale.strip() else []),
            "",
        ]
    )


def read_hypothesis(path: Path) -> Hypothesis:
    """Raises NotFoundError, or UsageError with the line of a missing field. The rationale may
    stand as a block quote."""
    front = read_front_matter(read_text(path), where=path.name)
    values = {key: front.data.get(key) for key in ("experiment", "parent", "hypothesis")}
    for key, value in values.items():
        if not (isinstance(value, str) and value.strip()) and not (
            key == "parent" and value is None
        ):
            raise UsageError(
                f"{path.name}:{front.line_of(key)}: {key} is {value!r}; expected text.",
                hint=f"Add a line `{key}: ...` to its front matter.",
                code="hypothesis_unreadable",
            )
    _, _, rationale = (
        front.body.partition("\n\n") if front.body.startswith("# ") else ("", "", front.body)
    )
    return Hypothesis(
        experiment=str(values["experiment"]),
        parent=None if values["parent"] is None else str(values["parent"]),
        hypothesis=str(values["hypothesis"]),
        rationale=re.sub("^> ?", "", rationale.strip(), flags=re.MULTILINE),
    )


def render_diagnosis(diagnosis: Diagnosis, *, by: str) -> str:
    """The text of diagnosis.md, runs in order."""
    lines = ["---", f"experiment: {diagnosis.experiment}", f"by: {quote(by)}", "alarms:"]
    for alarm in diagnosis.alarms:
        rows = ", ".join(str(row) for row in alarm.rows)
        lines.append(
            f"  - {{run: {alarm.run}, code: {alarm.code}, metric: {quote(alarm.metric)},"
            f" rows: [{rows}]}}"
        )
    lines += ["---", "", f"# Diagnosis of {diagnosis.experiment}"]
    for run in diagnosis.runs:
        lines += ["", f"## {run.run}"]
        for title, text in zip(
            SECTIONS, (run.what_happened, run.mechanism, run.evidence), strict=True
        ):
            lines += ["", f"### {title}", "", text.strip()]
    return "\n".join([*lines, ""])


def read_diagnosis(path: Path) -> Diagnosis:
    """Raises NotFoundError, or UsageError with file, line and what was expected."""
    front = read_front_matter(read_text(path), where=path.name)
    listed = front.data.get("alarms")
    if not isinstance(listed, list) or not listed:
        raise _bad_alarms(front, "expected a list of {run, code, metric, rows}")
    alarms = tuple(_alarm(front, place, entry) for place, entry in enumerate(listed))
    runs = tuple(_diagnoses(front.body, path.name))
    if missing := sorted({alarm.run for alarm in alarms} - {run.run for run in runs}):
        raise _diagnosis_error(
            f"{path.name}: alarms of {missing[0]} are listed, but there is no section"
            f" `## {missing[0]}`."
        )
    return Diagnosis(experiment=str(front.data.get("experiment", "")), alarms=alarms, runs=runs)


def _alarm(front: FrontMatter, place: int, entry: Any) -> DiagnosedAlarm:
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(key), str) for key in ("run", "code", "metric")
    ):
        raise _bad_alarms(
            front, "each entry is {run: run-01, code: divergence, metric: loss, rows: [3]}"
        )
    rows = entry.get("rows")
    if (
        not isinstance(rows, list)
        or not rows
        or not all(type(row) is int and row > 0 for row in rows)
    ):
        raise _bad_alarms(front, f"rows of entry {place + 1} must be a list of row numbers from 1")
    return DiagnosedAlarm(
        run=entry["run"], code=entry["code"], metric=entry["metric"], rows=tuple(rows)
    )


def _diagnoses(body: str, where: str) -> Iterable[RunDiagnosis]:
    # split() with one group gives text, run, text, run, text: the first text is the heading.
    _, *pieces = _RUN.split(body)
    for run, text in zip(pieces[::2], pieces[1::2], strict=True):
        _, *halves = _PART.split(text)
        parts = {
            title: part.strip() for title, part in zip(halves[::2], halves[1::2], strict=True)
        }
        empty = [title for title in SECTIONS if not parts.get(title)]
        if empty:
            raise _diagnosis_error(
                f"{where}: `## {run}` has no text under `### {empty[0]}`; expected all of"
                f" {', '.join(SECTIONS)}."
            )
        what, mechanism, evidence = (parts[title] for title in SECTIONS)
        yield RunDiagnosis(
            run=run,
            what_happened=what,
            mechanism=mechanism,
            evidence=evidence,
        )


def _bad_alarms(front: FrontMatter, expected: str) -> UsageError:
    return _diagnosis_error(f"{front.where}:{front.line_of('alarms')}: alarms: {expected}.")


def _diagnosis_error(message: str) -> UsageError:
    return UsageError(message, hint=_DIAGNOSIS_HINT, code="diagnosis_unreadable")


def render_result(
    *,
    experiment: str,
    claims: Mapping[str, str | float],
    summary: str,
    shortfalls: Sequence[str] = (),
    by: str,
) -> str:
    """The text of result.md. Raises UsageError for arguments of another form: agents pass them."""
    if not isinstance(claims, Mapping):
        raise UsageError(
            f"claims is {claims!r:.60}; expected a mapping such as {{accuracy: 0.94}}.",
            hint=_RESULT_HINT,
        )
    if isinstance(shortfalls, str) or not all(isinstance(text, str) for text in shortfalls):
        raise UsageError(
            f"shortfalls is {shortfalls!r:.60}; expected a list of sentences.", hint="Pass a list."
        )
    lines = ["---", f"experiment: {experiment}", f"by: {quote(by)}"]
    texts = {
        name: claim_from(
            name, value if isinstance(value, str) else repr(value), where="result.md"
        ).text
        for name, value in ((plain(name), value) for name, value in claims.items())
    }
    lines.append("claims: {}" if not texts else "claims:")
    lines += [f"  {quote(name)}: {text}" for name, text in texts.items()]
    lines.append("shortfalls: []" if not shortfalls else "shortfalls:")
    lines += [f"  - {quote(shortfall)}" for shortfall in shortfalls]
    return "\n".join(
        [*lines, "---", "", f"# Result of {experiment}", "", plain(summary).strip(), ""]
    )


def read_result(path: Path) -> ResultFile:
    """Raises NotFoundError; other errors as `parse_result`."""
    return parse_result(read_text(path), where=path.name)


def parse_result(text: str, *, where: str) -> ResultFile:
    """Raises UsageError with file and line: no front matter, no `claims`, or a claim that is not a
    plain number."""
    try:
        front = read_front_matter(text, where=where)
    except UsageError as error:
        raise _result_error(error.message) from error
    return ResultFile(claims=_claims(front), shortfalls=_shortfalls(front), body=front.body)


def _claims(front: FrontMatter) -> dict[str, Claim]:
    claims = front.data.get("claims")
    if not isinstance(claims, dict):
        actual = "nothing" if claims is None else repr(claims)
        raise _result_error(
            f"{front.where}:{front.line_of('claims')}: claims is {actual}; expected a mapping from"
            " metric to number."
        )
    return {
        # From the text, not from the parsed number: 0.90 and 0.9 differ in what they claim.
        name: claim_from(
            name,
            front.text_of("claims", name) or "",
            where=f"{front.where}:{front.line_of('claims', name)}",
        )
        for name in claims
    }


def _shortfalls(front: FrontMatter) -> list[str]:
    value = front.data.get("shortfalls", [])
    texts = [value] if isinstance(value, str) else value
    if texts is None:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _result_error(
            f"{front.where}:{front.line_of('shortfalls')}: shortfalls must be a list of sentences.",
            "Write one text for each entry; quote a text that contains `: `.",
        )
    return [text.strip() for text in texts if text.strip()]


def _result_error(message: str, hint: str = _RESULT_HINT) -> UsageError:
    return UsageError(message, hint=hint, code="result_unreadable")


def claim_from(name: str, text: str, *, where: str) -> Claim:
    """Raises UsageError naming the claim unless `text` is a finite plain number; `93%` is not."""
    stripped = text.strip()
    if len(stripped) > 60 or not _NUMBER.match(stripped) or not math.isfinite(float(stripped)):
        shown = stripped if len(stripped) <= 40 else stripped[:37] + "..."
        raise UsageError(
            f"{where}: claims.{name} is {shown!r}; expected a plain number such as 0.94.",
            hint="Write the metric's value without a percent sign, a unit or words.",
            code="claim_not_a_number",
        )
    return Claim(float(stripped), stripped)


def agrees(claim: Claim, value: float) -> bool:
    """Whether the finite `value` is within half a unit of the claim's last digit."""
    # Or the nearest float, where the claim has more digits than a float holds.
    if not (math.isfinite(value) and math.isfinite(claim.value)):
        return False
    return value == claim.value or abs(_exact(value) - Decimal(claim.text)) <= _half_unit(claim)


def precise_enough(claim: Claim, value: float) -> bool:
    """Whether agreeing with the finite `value` means anything.

    Half a unit of the claim's last digit must be at most a tenth of `value`, or the claim exact:
    `1` for 0.893 is too coarse, `0.9` is not.
    """
    return Decimal(claim.text) == _exact(value) or 10 * _half_unit(claim) <= abs(_exact(value))


def claim_of(value: float) -> str:
    """The text of a claim of the finite `value`: four decimals, or four significant digits where
    it is too small or too large for them."""
    decimals = f"{value:.4f}"
    claim = Claim(float(decimals), decimals)
    return decimals if abs(value) < _LARGE and precise_enough(claim, value) else f"{value:.3e}"


def _exact(value: float) -> Decimal:
    # By way of repr: Decimal(0.1) has 55 digits, and a claim of 0.15 would then differ from 0.15.
    return Decimal(repr(float(value)))


def _half_unit(claim: Claim) -> Decimal:
    exponent = Decimal(claim.text).as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(5).scaleb(exponent - 1)
