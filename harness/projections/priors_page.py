"""PRIORS.md: what the project has learned, each lesson with its evidence, its rule and its
check."""

import shlex

from harness.domain.records import Prior
from harness.projections.text import BANNER, inline, one_line, page, quoted

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
