"""Pages of the project's memory: DECISION_LOG.md, PRIORS.md, and a page per hand-off."""

import shlex

from harness.domain.plain_text import code, inline, quoted
from harness.ledger.facts import Decision, HandOff, Prior, PriorStatus
from harness.projections.text import BANNER, page

HEAD = page([BANNER], ["# Decisions"])


def entry(decision: Decision) -> str:
    """One decision with an empty line before it. Quoted texts cannot forge an entry."""
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
    "Lessons of this project, each with its evidence and the rule that follows. `harness priors"
    " check` runs the checks."
)
_LINE = 300


def priors_page(priors: list[Prior]) -> str:
    in_force = [prior for prior in priors if prior.in_force]
    waiting = [prior for prior in priors if prior.status is PriorStatus.CANDIDATE]
    retired = [prior for prior in priors if prior.status is PriorStatus.RETIRED]
    superseded = [prior for prior in priors if prior.superseded_by is not None]
    return page(
        [BANNER],
        ["# Priors"],
        [_INTRODUCTION] if priors else ["None yet."],
        *(block for prior in in_force for block in _prior_blocks(prior)),
        _listed("Candidates: they enforce nothing until a person activates them", waiting),
        _listed("Retired", retired),
        (
            [
                "## Superseded",
                "",
                *(
                    f"- {inline(prior.id)} by {prior.superseded_by}: {inline(prior.lesson)}"
                    for prior in superseded
                ),
            ]
            if superseded
            else []
        ),
    )


def _listed(head: str, priors: list[Prior]) -> list[str]:
    lines = [
        f"- {inline(one.id)} {code(one.enforces or one.lesson)} {_why(one)}" for one in priors
    ]
    return [f"## {head}", "", *lines] if lines else []


def _why(prior: Prior) -> str:
    moved = prior.moves[-1] if prior.moves else None
    if moved is None:
        return inline(prior.evidence, _LINE)
    again = f"; came again: {moved['recurrences']}" if moved["recurrences"] else ""
    return inline(f"by {moved['by']}: {moved['reason']}{again}", _LINE)


def prior_line(prior: Prior) -> str:
    """One prior for the briefing."""
    return f"- {inline(prior.id)} {inline(f'{prior.lesson} Rule: {prior.rule}', _LINE)}"


def _prior_blocks(prior: Prior) -> list[list[str]]:
    check = "none" if prior.check is None else code(shlex.join(prior.check))
    facts = [f"- check: {check}", f"- recorded: {prior.at} by {inline(prior.by)}"]
    if prior.enforces is not None:
        facts.append(f"- enforces: {code(prior.enforces)}, since {prior.active_since}")
    if prior.supersedes:
        facts.append(f"- supersedes: {inline(prior.supersedes)}")
    return [
        [f"## {inline(prior.id)} {inline(prior.lesson)}"],
        ["evidence:", "", *quoted(prior.evidence)],
        ["rule:", "", *quoted(prior.rule)],
        facts,
    ]


CLAIMED = "claimed, not checked"
_LEAST = 200
"""An excerpt below this many characters is useless."""


def hand_off_page(hand_off: HandOff) -> str:
    facts = [f"- by: {inline(hand_off.by)}", f"- time: {hand_off.at}"]
    if hand_off.session:
        facts.append(f"- session: {inline(hand_off.session)}")
    if hand_off.experiment:
        facts.append(f"- experiment: {inline(hand_off.experiment)}")
    return page([BANNER], ["# Hand-off"], facts, [f"Text, {CLAIMED}:", "", *quoted(hand_off.text)])


def excerpt(hand_off: HandOff, name: str, room: int) -> list[str]:
    """The hand-off in at most `room` characters, newlines included; [] if too little would fit.

    `name`: the page with the full text, named in a cut one.
    """
    about = f", {inline(hand_off.experiment)}" if hand_off.experiment else ""
    head = [f"By {inline(hand_off.by, 80)}, {hand_off.at}{about}; {CLAIMED}:", ""]
    rest = f"> … cut; full text: sessions/{name}"
    lines = quoted(hand_off.text)
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
