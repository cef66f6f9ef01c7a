"""DECISION_LOG.md: every decision, oldest first, so that the file only ever grows at its end."""

from harness.domain.records import Decision
from harness.projections.text import BANNER, inline, page, quoted

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
