"""BRIEFING.md: what the next session needs to know, in at most 6,000 characters."""

from typing import Any

from harness.artifacts.locate import hand_off_name
from harness.domain.plain_text import inline
from harness.domain.statuses import spoken
from harness.ledger import Ledger
from harness.projections.memory_pages import excerpt, prior_line
from harness.projections.post_mortems import post_mortems
from harness.projections.scores import metric_of
from harness.projections.state_page import (
    Overview,
    best_line,
    counts_line,
    loop_line,
    phase_lines,
    read_overview,
    tree_words,
)
from harness.projections.text import BANNER, page

LIMIT = 6000
_FINDINGS_LIMIT = 3500
_DECISIONS = 5
_NOTES = 6
_PRIORS = 5
_HAND_OFFS = 2
_FAILED = 5
_TREES = 4
"""Working trees whose experiment is shown, the newest."""


def briefing(ledger: Ledger, next_steps: str) -> str:
    """`next_steps`: what is due, of this working tree first."""
    text = _facts(ledger, read_overview(ledger), next_steps)
    if len(text) > LIMIT:
        return text[: LIMIT - 2].rstrip() + "…\n"
    return text + _hand_offs(ledger, LIMIT - len(text))


def _facts(ledger: Ledger, overview: Overview, next_steps: str) -> str:
    return page(
        [BANNER],
        ["# Briefing"],
        ["## Objective", "", *_objective(overview)],
        ["## Where we are", "", *_where(ledger, overview)],
        ["## Next step", "", next_steps],
        ["## Open experiment", "", *_current(ledger, overview)],
        ["## Last verdict", "", *_verdict(overview)],
        _failures(ledger),
        ["## Last decisions", "", *_decisions(ledger)],
        _priors(ledger),
    )


def _hand_offs(ledger: Ledger, room: int) -> str:
    """The newest hand-offs that fit in `room`, of them the newest that a person or an agent noted:
    claims of a session are cut before any fact."""
    text = "\n## Hand-offs\n"
    begun = False
    shown = ledger.hand_offs(newest=_HAND_OFFS)
    noted = ledger.hand_offs(newest=1, noted=True)
    if noted and noted[0] not in shown:
        shown[0] = noted[0]
    for hand_off in reversed(shown):
        name = hand_off_name(hand_off.at, hand_off.hash)
        lines = excerpt(hand_off, name, room - len(text) - 2)
        if not lines:
            break
        text += "\n" + "\n".join(lines) + "\n"
        begun = True
    return text if begun else ""


def _priors(ledger: Ledger) -> list[str]:
    standing = ledger.priors(standing=True)
    if not standing:
        return []
    hidden = len(standing) - _PRIORS
    more = [f"- ... and {hidden} older: `harness priors list`"] if hidden > 0 else []
    return ["## Priors", "", *(prior_line(prior) for prior in standing[-_PRIORS:]), *more]


def _failures(ledger: Ledger) -> list[str]:
    """The newest, each with its class."""
    newest = [one.id for one in ledger.experiments(newest=_FAILED)]
    lines = [f"- {one.line}" for one in post_mortems(ledger, newest)[-_FAILED:]]
    return ["## Failures", "", *lines] if lines else []


def _objective(overview: Overview) -> list[str]:
    plan = overview.plan
    if plan is None:
        return ["No plan is approved."]
    oracle: dict[str, Any] = plan.content.get("oracle") or {}
    tiers = ", ".join(
        f"{inline(str(name))} {value}"
        for name, value in (oracle.get("tiers") or {}).items()
        if value is not None
    )
    return [
        inline(str(plan.content.get("objective", plan.name)), 800),
        "",
        f"- plan: {inline(plan.name, 80)} version {plan.version}",
        f"- metric: {inline(metric_of(plan.content))},"
        f" {oracle.get('direction', 'direction unknown')}",
        f"- tiers: {tiers or 'none'}; seeds: {oracle.get('seeds', '?')}",
    ]


def _where(ledger: Ledger, overview: Overview) -> list[str]:
    lines = [f"- {counts_line(overview)}", f"- best: {best_line(ledger, overview)}"]
    lines += [*phase_lines(ledger, overview), *loop_line(overview)]
    tampering = ledger.open_tampering()
    if tampering:
        last = tampering[-1]
        lines.append(
            f"- tampering noticed {len(tampering)} times; last:"
            f" {inline(f'{last.what}: {last.path}', 300)}"
        )
    return lines


def _current(ledger: Ledger, overview: Overview) -> list[str]:
    lines: list[str] = []
    for current in overview.in_work[-_TREES:]:
        of = f" (opened in {tree_words(current)})" if len(overview.in_work) > 1 else ""
        lines.append(f"{current.id} is {current.status}{of}: {inline(current.hypothesis, 400)}")
        lines += [
            f"- {run.id}: seed {run.seed}, attempt {run.attempt}, {run.status}"
            f" {inline(run.reason, 160)}".rstrip()
            for run in ledger.runs(current.id)[-8:]
        ]
    return lines or ["None."]


def _verdict(overview: Overview) -> list[str]:
    verdict = overview.verdict
    if verdict is None:
        return ["None yet."]
    tier, gate = f", tier {verdict.tier}" if verdict.tier else "", spoken(verdict.gate)
    lines = [
        f"{verdict.verdict} for {verdict.experiment} at the {gate} gate ({verdict.id}){tier}."
    ]
    left = _FINDINGS_LIMIT
    for index, finding in enumerate(verdict.findings):
        line = f"- [{finding.code}] {inline(finding.message)} {inline(finding.hint)}"
        if len(line) > left:
            lines.append(
                f"- ... and {len(verdict.findings) - index} more: `harness gate check"
                f" {verdict.experiment}`"
            )
            break
        lines.append(line)
        left -= len(line)
    return [*lines, *(f"- noticed: {inline(note, 300)}" for note in verdict.notes[:_NOTES])]


def _decisions(ledger: Ledger) -> list[str]:
    lines = [
        f"- {one.id} {one.kind} {one.experiment or ''} by {inline(one.by, 40)}:"
        f" {inline(one.reason, 240)}"
        for one in ledger.decisions(newest=_DECISIONS)
    ]
    return lines or ["None yet."]
