"""STATE.md: where everything is now."""

from harness.domain.statuses import Split, spoken
from harness.ledger import Ledger
from harness.projections.overview import (
    UNFINISHED_SHOWN,
    Overview,
    best_line,
    counts_line,
    next_step,
    read_overview,
)
from harness.projections.text import BANNER, cell, inline, page, row, table

_RUNS_SHOWN = 50


def state_page(ledger: Ledger) -> str:
    overview = read_overview(ledger)
    return page(
        [BANNER],
        ["# State"],
        _summary(ledger, overview),
        ["## Unfinished experiments"],
        _experiments(overview),
        ["## Open runs"],
        _runs(overview),
        ["## Open sessions"],
        _sessions(ledger),
        ["## Noticed tampering"],
        [f"- {inline(f'{item.what}: {item.path}', 300)}" for item in ledger.tampering()[-20:]]
        or ["None."],
    )


def _summary(ledger: Ledger, overview: Overview) -> list[str]:
    plan, last = overview.plan, ledger.last_fact()
    named = (
        f"{inline(plan.name)} version {plan.version} ({plan.sha256[:12]}), by {inline(plan.by)}"
        if plan
        else "none"
    )
    verdict = overview.verdict
    judged = (
        f"{verdict.verdict} for {verdict.experiment} ({spoken(verdict.gate)}, {verdict.id})"
        if verdict
        else "none"
    )
    lines = [
        f"- plan: {named}",
        f"- {counts_line(overview)}",
        f"- best: {inline(best_line(ledger, overview))}",
        f"- last verdict: {judged}",
        f"- next step: {inline(next_step(overview))}",
        f"- last fact: {f'{last.kind} at {last.at}' if last else 'none'}",
    ]
    if plan is not None:
        allowed = (plan.content.get("oracle") or {}).get("queries", "?")
        lines.append(
            f"- looks at held-out: {ledger.queries(plan.name, Split.HELD_OUT)} of {allowed}"
        )
    return lines


def _experiments(overview: Overview) -> list[str]:
    if not overview.unfinished:
        return ["None."]
    rows = [
        row((cell(item.id), cell(item.status), cell(item.hypothesis)))
        for item in reversed(overview.unfinished)
    ]
    shown = table(("experiment", "status", "hypothesis"), rows)
    return (
        [*shown, "", f"The newest {UNFINISHED_SHOWN}."] if len(rows) == UNFINISHED_SHOWN else shown
    )


def _runs(overview: Overview) -> list[str]:
    if not overview.open_runs:
        return ["None."]
    rows = [
        row(
            (
                cell(f"{run.experiment}/{run.id}"),
                cell(run.status),
                str(run.seed),
                str(run.attempt),
                cell(run.sandbox),
            )
        )
        for run in overview.open_runs[:_RUNS_SHOWN]
    ]
    return table(("run", "status", "seed", "attempt", "sandbox"), rows)


def _sessions(ledger: Ledger) -> list[str]:
    lines = [
        f"- {inline(item.id)}: {inline(item.role)}, {inline(item.step)}, since {item.started_at}"
        for item in ledger.sessions(open_only=True)
    ]
    return lines or ["None."]
