"""memory/sessions/: what one session told the next, a page each, and the part of it that the
briefing shows."""

from harness.domain.records import HandOff
from harness.projections.text import BANNER, inline, page, quoted

CLAIMED = "claimed, not checked"
_LEAST = 200
"""Characters below which a cut hand-off says nothing."""


def hand_off_page(item: HandOff) -> str:
    facts = [f"- by: {inline(item.by)}", f"- time: {item.at}"]
    if item.session:
        facts.append(f"- session: {inline(item.session)}")
    if item.experiment:
        facts.append(f"- experiment: {inline(item.experiment)}")
    return page(
        [BANNER], ["# Hand-off"], facts, [f"What it says is {CLAIMED}:", "", *quoted(item.text)]
    )


def excerpt(item: HandOff, name: str, room: int) -> list[str]:
    """The hand-off in at most `room` characters, newlines included; [] when too little of it would
    be left.

    `name`: of the page that has all of it, for one that is cut.
    """
    about = f", {inline(item.experiment)}" if item.experiment else ""
    head = [f"By {inline(item.by, 80)}, {item.at}{about}; {CLAIMED}:", ""]
    rest = f"> … cut; all of it: sessions/{name}"
    lines = quoted(item.text)
    if _size([*head, *lines]) <= room:
        return [*head, *lines]
    left = room - _size([*head, rest])
    if left < _LEAST:
        return []
    kept: list[str] = []
    for line in lines:
        if len(line) + 1 > left:
            kept.append(line[: left - 1])
            break
        kept.append(line)
        left -= len(line) + 1
    return [*head, *kept, rest]


def _size(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)
