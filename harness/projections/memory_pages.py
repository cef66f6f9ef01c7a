"""What the project remembers: DECISION_LOG.md, PRIORS.md and the hand-offs below sessions/."""

import shlex

from harness.domain.records import Decision, HandOff, Prior
from harness.projections.text import BANNER, inline, one_line, page, quoted

HEAD = page([BANNER], ["# Decisions"])


def entry(decision: Decision) -> str:
    """One decision, with the empty line before it. Texts are quoted: they cannot forge an entry."""
    about = f" {inline(decision.experiment)}" if decision.experiment else ""
    facts = [
        f"- time: {decision.at}",
        f"- by: {inline(decision.by)}",
        f"- confidence: {inline(decision.confidence)}",
        f"- verdict: {inline(decision.verdict or 'none')}",
    ]
    if decision.supersedes:
        facts.append(f"- supersedes: {inline(decision.supersedes)}")
    return "\n" + page(
        [f"## {inline(decision.id)} {decision.kind}{about}"],
        facts,
        ["context:", "", *quoted(decision.context)],
        ["decision:", "", *quoted(decision.choice)],
        ["alternatives:", "", *quoted(decision.alternatives)],
        ["rationale:", "", *quoted(decision.reason)],
    )


_INTRODUCTION = (
    "What was learned here, with what showed it and the rule that follows. `harness priors check`"
    " runs the checks."
)
_LINE = 300


def priors_page(priors: list[Prior]) -> str:
    standing = [item for item in priors if item.superseded_by is None]
    gone = [item for item in priors if item.superseded_by is not None]
    return page(
        [BANNER],
        ["# Priors"],
        [_INTRODUCTION] if priors else ["None yet."],
        *(block for item in standing for block in _entry(item)),
        (
            [
                "## Superseded",
                "",
                *(
                    f"- {inline(item.id)} by {item.superseded_by}: {inline(item.lesson)}"
                    for item in gone
                ),
            ]
            if gone
            else []
        ),
    )


def prior_line(item: Prior) -> str:
    """One prior for the briefing."""
    return (
        f"- {inline(item.id)} {one_line(f'{inline(item.lesson)} Rule: {inline(item.rule)}', _LINE)}"
    )


def _entry(item: Prior) -> list[list[str]]:
    check = (
        "none"
        if item.check is None
        else f"`{inline(shlex.join(item.check)).replace('`', chr(39))}`"
    )
    facts = [f"- check: {check}", f"- recorded: {item.at} by {inline(item.by)}"]
    if item.supersedes:
        facts.append(f"- supersedes: {inline(item.supersedes)}")
    return [
        [f"## {inline(item.id)} {inline(item.lesson)}"],
        ["evidence:", "", *quoted(item.evidence)],
        ["rule:", "", *quoted(item.rule)],
        facts,
    ]


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
