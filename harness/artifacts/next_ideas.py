"""next.md: what to try next. An idea may name the alarm it answers and its author's confidence."""

import re
from collections.abc import Sequence

from harness.domain.late import Late, dataclass
from harness.domain.plain_text import inline, one_line, plain

CONFIDENCE = ("high", "medium", "low")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<idea>\S.*)")
_ANSWER = re.compile(
    r"\[(?P<answers>[a-z_]+),\s*(?P<confidence>high|medium|low)\]\s+(?P<text>\S.*)"
)
LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Idea(Late):
    text: str
    """One line, at most 300 characters."""
    answers: str | None = None
    """The code of the alarm it answers."""
    confidence: str | None = None


def ideas(text: str) -> list[Idea]:
    """The list items, in order; without any, the first line that is not a heading."""
    lines = [line.strip() for line in plain(text).split("\n")]
    listed = [_idea(match["idea"]) for line in lines if (match := _ITEM.match(line))]
    others = (line for line in lines if line and not line.startswith(("#", "---", "```", "<!--")))
    return listed or [_idea(line) for line in list(others)[:1]]


def with_ideas(text: str, title: str, added: Sequence[Idea]) -> str:
    """next.md with the ideas `added` in front of its `text`, none twice."""
    known = {inline(idea.text) for idea in ideas(text)}
    new = [
        f"- [{idea.answers}, {idea.confidence}] {said}"
        for idea in added
        if (said := inline(idea.text)) not in known
    ]
    if not new:
        return text
    return "\n".join([f"## {title}", "", *new, "", *([text.strip(), ""] if text.strip() else [])])


def _idea(text: str) -> Idea:
    match = _ANSWER.match(text)
    if match is None:
        return Idea(text=one_line(text, LONGEST))
    return Idea(
        text=one_line(match["text"], LONGEST),
        answers=match["answers"],
        confidence=match["confidence"],
    )
