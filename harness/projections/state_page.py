"""STATE.md, and the overview of the project that the briefing shares with it."""

from typing import Any

from harness.domain.late import Late, dataclass
from harness.domain.plain_text import cell, inline
from harness.domain.records import Experiment, Run
from harness.domain.statuses import CLOSED_EXPERIMENTS, Direction, ExperimentStatus, Split, spoken
from harness.evaluation.released import bits_limit
from harness.ledger import Ledger
from harness.ledger.facts import ApprovedPlan, LoopEnded, RecordedVerdict
from harness.ledger.phases import phase_line
from harness.projections.scores import Shown, direction_of, metric_of, shown_score
from harness.projections.text import BANNER, page, row, table

UNFINISHED_SHOWN = 50
_UNFINISHED = [status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS]


@dataclass(frozen=True, kw_only=True)
class Overview(Late):
    plan: ApprovedPlan | None
    counts: dict[str, Any]
    unfinished: list[Experiment]
    """The newest ones, oldest first."""
    open_runs: list[Run]
    verdict: RecordedVerdict | None
    end: LoopEnded | None

    @property
    def in_work(self) -> list[Experiment]:
        """The newest unfinished experiment of each working tree, oldest first."""
        newest = {one.tree and one.tree.id: one for one in self.unfinished}
        return sorted(newest.values(), key=lambda one: one.number)


def read_overview(ledger: Ledger) -> Overview:
    return Overview(
        plan=ledger.plan(),
        counts=ledger.counts(),
        unfinished=ledger.experiments(newest=UNFINISHED_SHOWN, statuses=_UNFINISHED),
        open_runs=ledger.open_runs(),
        verdict=ledger.newest_verdict(),
        end=ledger.loop_end(),
    )


def loop_line(overview: Overview) -> list[str]:
    """How the loop ended, where nothing was begun since."""
    end = overview.end
    return [] if end is None else [f"- the loop ended ({end.reason}): {inline(end.detail, 300)}"]


def phase_lines(ledger: Ledger, overview: Overview) -> list[str]:
    """The phase that is due, and overrides of phases, which stand for ever."""
    line = phase_line(ledger, overview.plan)
    if overview.plan is None or not line:
        return []
    over = [
        f"- OVERRIDE by {inline(one.by)} ({one.decision}): the phase {one.phase} was passed without"
        f" {', '.join(one.missing)}"
        for one, _ in ledger.phases_passed(overview.plan.name)
        if one.override
    ]
    return [f"- phase: {inline(line)}", *over]


def counts_line(overview: Overview) -> str:
    """E.g. "3 experiments: 1 open, 2 discarded; 4 verdicts; 2 decisions"."""
    by_status = overview.counts["experiments"]
    total = sum(by_status.values())
    parts = ", ".join(f"{count} {status}" for status, count in by_status.items())
    rest = f"{overview.counts['verdicts']} verdicts; {overview.counts['decisions']} decisions"
    return f"{total} experiments{f': {parts}' if parts else ''}; {rest}"


def tree_words(experiment: Experiment) -> str:
    """Where its files are."""
    tree = experiment.tree
    return "-" if tree is None else inline(tree.words, 120)


def best_line(ledger: Ledger, overview: Overview) -> str:
    """The best validation score under the approved plan: of kept, else undecided experiments.

    If there are only discarded ones, their best, and the line says so.
    """
    if overview.plan is None:
        return "none yet"
    content = overview.plan.content
    if direction_of(content) is None:
        return "unknown: the plan states no direction"
    best = _best_of_all(ledger, overview)
    return "none yet" if best is None else _best_text(ledger, metric_of(content), *best)


def best_figure(ledger: Ledger, overview: Overview) -> str:
    """Only the number of `best_line`; empty where there is none."""
    best = _best_of_all(ledger, overview)
    return "" if best is None or best[1].mean is None else f"{best[1].mean:.4g}"


def _best_of_all(ledger: Ledger, overview: Overview) -> tuple[Experiment, Shown] | None:
    direction = None if overview.plan is None else direction_of(overview.plan.content)
    if overview.plan is None or direction is None:
        return None
    for statuses in ([ExperimentStatus.KEPT], _UNFINISHED, [ExperimentStatus.DISCARDED]):
        best = _best(ledger, overview.plan.name, direction, statuses)
        if best is not None:
            return best
    return None


def _best_text(ledger: Ledger, metric: str, experiment: Experiment, score: Shown) -> str:
    discarded = experiment.status is ExperimentStatus.DISCARDED
    of = "none kept; best discarded: " if discarded else ""
    status = "" if discarded else f" ({experiment.status})"
    held_out = shown_score(ledger.summary(experiment.id), Split.HELD_OUT)
    beyond = f"; held-out {held_out.figure}, {held_out.evidence}" if held_out else ""
    return (
        f"{of}{experiment.id}{status}: {metric} {score.figure} on validation, "
        f"seeds: {score.n_seeds}, {score.evidence}{beyond} - {inline(experiment.hypothesis, 200)}"
    )


def _best(
    ledger: Ledger, plan: str, direction: Direction, statuses: list[ExperimentStatus]
) -> tuple[Experiment, Shown] | None:
    best: tuple[Experiment, Shown] | None = None
    for status in statuses:
        identifier = ledger.best_experiment(plan, Split.VALIDATION, direction, status)
        score = shown_score(ledger.summary(identifier), Split.VALIDATION) if identifier else None
        if identifier is None or score is None or score.mean is None:
            continue
        most = None if best is None else best[1].mean
        ahead = most is None or (score.mean > most) == (direction is Direction.MAXIMIZE)
        if most is None or (ahead and score.mean != most):
            best = ledger.experiment(identifier), score
    return best


_RUNS_SHOWN = 50


def state_page(ledger: Ledger, next_steps: str) -> str:
    """`next_steps`: what is due, of this working tree first."""
    overview = read_overview(ledger)
    return page(
        [BANNER],
        ["# State"],
        _summary(ledger, overview, next_steps),
        ["## Unfinished experiments"],
        _experiments(overview),
        ["## Open runs"],
        _runs(overview),
        ["## Open sessions"],
        _sessions(ledger),
        ["## Noticed tampering"],
        [f"- {inline(f'{one.what}: {one.path}', 300)}" for one in ledger.tampering()[-20:]]
        or ["None."],
    )


def _summary(ledger: Ledger, overview: Overview, next_steps: str) -> list[str]:
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
        *phase_lines(ledger, overview),
        *loop_line(overview),
        f"- next step: {next_steps}",
        f"- last fact: {f'{last.kind} at {last.at}' if last else 'none'}",
    ]
    if plan is not None:
        allowed = (plan.content.get("oracle") or {}).get("queries", "?")
        lines.append(
            f"- held-out evaluations: {ledger.queries(plan.name, Split.HELD_OUT)} of {allowed}"
        )
        told, limit = ledger.bits_told(plan.name), bits_limit(plan)
        lines.append(f"- told of secret labels: {told:.1f} of {limit:g} bits")
    return lines


def _experiments(overview: Overview) -> list[str]:
    if not overview.unfinished:
        return ["None."]
    rows = [
        row((cell(one.id), cell(one.status), cell(tree_words(one)), cell(one.hypothesis)))
        for one in reversed(overview.unfinished)
    ]
    shown = table(("experiment", "status", "opened in", "hypothesis"), rows)
    return (
        [*shown, "", f"Only the newest {UNFINISHED_SHOWN} are shown."]
        if len(rows) == UNFINISHED_SHOWN
        else shown
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
        f"- {inline(one.id)}: {inline(one.role)}, {inline(one.step)}, since {one.started_at}"
        for one in ledger.sessions(open_only=True)
    ]
    return lines or ["None."]
