"""next.md: what to try next. Items may say which alarm they answer and how sure their author is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = ("high", "medium", "low")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<idea>\S.*)")
_ANSWER = re.compile(
    r"\[(?P<answers>[a-z_]+),\s*(?P<confidence>high|medium|low)\]\s+(?P<text>\S.*)"
)
_LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Idea:
    text: str
    """One line, at most 300 characters."""
    answers: str | None = None
    """The code of the alarm that it answers."""
    confidence: str | None = None


def ideas(text: str) -> list[Idea]:
    """The list items, in order; a file without any has one idea, its first line that is no
    heading."""
    lines = [line.strip() for line in text.splitlines()]
    items = [_idea(match["idea"]) for line in lines if (match := _ITEM.match(line))]
    plain = (line for line in lines if line and not line.startswith(("#", "---", "```", "<!--")))
    return items or [_idea(line) for line in list(plain)[:1]]


def with_ideas(text: str, title: str, added: Sequence[Idea]) -> str:
    """`text` of next.md with `added` before what stood there; one that is there already is not
    repeated."""
    known = {item.text for item in ideas(text)}
    new = [
        f"- [{item.answers}, {item.confidence}] {item.text}"
        for item in added
        if item.text not in known
    ]
    if not new:
        return text
    return "\n".join([f"## {title}", "", *new, "", *([text.strip(), ""] if text.strip() else [])])


def one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST].strip()


def _idea(text: str) -> Idea:
    match = _ANSWER.match(text)
    if match is None:
        return Idea(text=one_line(text))
    return Idea(
        text=one_line(match["text"]), answers=match["answers"], confidence=match["confidence"]
    )
