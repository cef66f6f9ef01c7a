"""result.md: what the oracle says about an experiment. Its numbers are claims; the gate compares,
never believes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.claims import Claim, agrees, claim_from
from harness.artifacts.front_matter import FrontMatter, quote, read_front_matter
from harness.artifacts.text import read_text
from harness.errors import UsageError

__all__ = ["Claim", "Result", "agrees", "read_result", "render_result"]

_HINT = "Write it with `record_result`, or begin it with `---`, `claims: {accuracy: 0.94}`, `---`."


@dataclass(frozen=True, kw_only=True)
class Result:
    claims: dict[str, Claim]
    """Metric -> the claimed value."""
    shortfalls: list[str]
    """What is missing, most important first; may be empty."""
    body: str


def render_result(
    *,
    experiment: str,
    claims: Mapping[str, str | float],
    summary: str,
    shortfalls: Sequence[str] = (),
    by: str,
) -> str:
    """The text of result.md. Raises UsageError for claims that are no mapping from metric to finite
    plain number, and for shortfalls that are no list of texts."""
    if not isinstance(claims, Mapping):
        raise UsageError(
            f"claims is {claims!r:.60}; expected a mapping such as {{accuracy: 0.94}}.", hint=_HINT
        )
    if isinstance(shortfalls, str) or not all(isinstance(item, str) for item in shortfalls):
        raise UsageError(
            f"shortfalls is {shortfalls!r:.60}; expected a list of sentences.", hint="Pass a list."
        )
    lines = ["---", f"experiment: {experiment}", f"by: {quote(by)}"]
    texts = {
        name: claim_from(
            name, value if isinstance(value, str) else repr(value), where="result.md"
        ).text
        for name, value in claims.items()
    }
    lines.append("claims: {}" if not texts else "claims:")
    lines += [f"  {quote(name)}: {text}" for name, text in texts.items()]
    lines.append("shortfalls: []" if not shortfalls else "shortfalls:")
    lines += [f"  - {quote(shortfall)}" for shortfall in shortfalls]
    return "\n".join([*lines, "---", "", f"# Result of {experiment}", "", summary.strip(), ""])


def read_result(path: Path) -> Result:
    """Raises NotFoundError when there is no file, UsageError with file, line and what was expected
    when it cannot be read: no front matter, no `claims`, a claim that is no plain number."""
    return parse_result(read_text(path), where=path.name)


def parse_result(text: str, *, where: str) -> Result:
    """As `read_result`, from text with `\\n` line ends."""
    try:
        front = read_front_matter(text, where=where)
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT, code="result_unreadable") from error
    return Result(claims=_claims(front), shortfalls=_shortfalls(front), body=front.body)


def _claims(front: FrontMatter) -> dict[str, Claim]:
    claims = front.data.get("claims")
    where = f"{front.where}:{front.line_of('claims')}"
    if not isinstance(claims, dict):
        found = "nothing" if claims is None else repr(claims)
        raise UsageError(
            f"{where}: claims is {found}; expected a mapping from metric to number.",
            hint=_HINT,
            code="result_unreadable",
        )
    read = {}
    for name in claims:
        line = f"{front.where}:{front.line_of('claims', name)}"
        read[name] = claim_from(name, front.text_of("claims", name) or "", where=line)
    return read


def _shortfalls(front: FrontMatter) -> list[str]:
    value = front.data.get("shortfalls", [])
    items = [value] if isinstance(value, str) else value
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise UsageError(
            f"{front.where}:{front.line_of('shortfalls')}: shortfalls must be a list of sentences.",
            hint="Write one text an entry; quote those that hold `: `.",
            code="result_unreadable",
        )
    return [item.strip() for item in items if item.strip()]
