"""The report of a plan for people: what was kept, what was tried, what it rests on and what it
took. One page of Markdown, no line of it wider than a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.artifacts.resources import in_words, merged
from harness.domain.grade import Grade
from harness.domain.plain_text import cell, in_quotes, inline, wrapped
from harness.domain.records import Experiment
from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    Split,
    Tier,
    spoken,
)
from harness.errors import RefusedError
from harness.evaluation.outcome import explain
from harness.evaluation.predict_sources import whose
from harness.evaluation.released import bits_limit, bits_told
from harness.ledger.facts import ApprovedPlan, Decision
from harness.ledger.project import Project
from harness.ledger.spending import spent
from harness.plans.approved import plan_of
from harness.projections.post_mortems import post_mortems
from harness.views.experiments import reproductions
from harness.views.report_series import logged_curves, spent_over_time
from harness.views.snapshot import experiment_row
from harness.views.tables import figure, score_text, status_words, tier_text

WIDTH = 80
_COLUMNS = ("id", "validation", "held-out", "verdict", "decision", "hypothesis")
"""The last one is left out where the others leave no room for its head; each hypothesis stands
below the table in full."""
_FINDING = ("code", "message")


def report(project: Project, named: Sequence[str] = ()) -> dict[str, Any]:
    """The plan in force, its experiments oldest first, and what they took; with `named` only those
    and their plan. Raises RefusedError (no_plan, plans_differ), NotFoundError."""
    ledger = project.ledger
    approved = _plan_of_all(project, named) if named else project.plan()
    everything = sorted(ledger.experiments(), key=lambda one: one.number)
    under = [one for one in everything if one.plan == approved.name]
    own = [one for one in under if not named or one.id in named]
    content = approved.content
    oracle, budget = content["oracle"], content["budget"]
    usd, tokens = budget.get("usd"), budget.get("tokens")
    paid = spent(ledger, project.layout, approved.name)
    return {
        "plan": {
            "name": approved.name,
            "version": approved.version,
            "path": approved.path,
            "objective": content["objective"],
            **{name: oracle[name] for name in ("metric", "direction", "tiers", "seeds")},
        },
        "experiments": [_experiment(project, one) for one in own],
        "of_other_plans": 0 if named else len(everything) - len(under),
        "looks": {
            "held_out": ledger.queries(approved.name, Split.HELD_OUT),
            "queries": oracle["queries"],
            "bits_told": round(bits_told(project, approved), 1),
            "bits": bits_limit(approved),
        },
        "budget": {
            "experiments": {"used": len(under), "of": budget["experiments"]},
            "minutes": {
                "used": round(ledger.training_seconds(approved.name) / 60, 1),
                "of": budget["total_minutes"],
            },
            "usd": None if usd is None else {"used": round(paid.usd, 2), "of": usd},
            "tokens": None if tokens is None else {"used": paid.tokens, "of": tokens},
        },
    }


def _plan_of_all(project: Project, named: Sequence[str]) -> ApprovedPlan:
    plans = {one: plan_of(project, project.ledger.experiment(one)) for one in named}
    names = {plan.name for plan in plans.values()}
    if len(names) > 1:
        raise RefusedError(
            f"{', '.join(named)} belong to several plans: {', '.join(sorted(names))}.",
            hint="A report is about one plan: name the experiments of one.",
            code="plans_differ",
        )
    return max(plans.values(), key=lambda plan: plan.version)


def series(project: Project, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the figures need beside the document: {curves {experiment: ...}, budget}."""
    names = [row["experiment"] for row in document["experiments"]]
    records = [project.ledger.experiment(name) for name in names]
    limit = document["budget"]["minutes"]["of"]
    return {
        "curves": {name: logged_curves(project, name) for name in names},
        "budget": spent_over_time(project, records, limit),
    }


def _experiment(project: Project, record: Experiment) -> dict[str, Any]:
    row = experiment_row(project, record)
    decided = [
        one for one in project.ledger.decisions(record.id) if one.kind is not DecisionKind.LOWER
    ]
    verdicts = project.ledger.verdicts(record.id)
    comparison = verdicts[-1].comparison if verdicts else None
    made = [_plain(one) for one in decided]
    return {
        **{name: row[name] for name in ("experiment", "status", "overridden", "hypothesis")},
        **{name: row[name] for name in ("parent", "tier", "verdict", "gate", "launches")},
        "resources": merged(
            (run.resources, run.seconds) for run in project.ledger.runs(record.id)
        ),
        "validation": row[Split.VALIDATION.value],
        "held_out": row[Split.HELD_OUT.value],
        "predict_code": whose(project, record.id),
        "compared": None if comparison is None else explain(comparison),
        "against": None if comparison is None else comparison["against"],
        "decision": made[-1] if made else None,
        "decisions": made,
        "reproductions": reproductions(project.ledger, record.id),
        "findings": [{name: one[name] for name in _FINDING} for one in row["findings"]],
        "failures": [one.line for one in post_mortems(project.ledger, [record.id])],
    }


def _plain(one: Decision) -> dict[str, Any]:
    return {"id": one.id, "kind": one.kind, "by": one.by, "reason": one.reason}


def page(document: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    plan, rows = document["plan"], document["experiments"]
    blocks = [
        [f"# Report: {inline(plan['name'], 60)}"],
        _wrapped(_plan_words(plan)),
        ["## Kept"],
        *_kept(rows),
        ["## Experiments"],
        *(_table(rows) if rows else [["None yet."]]),
        *_others(document["of_other_plans"]),
        *_failed(rows),
        ["## Not isolated"],
        _not_isolated(rows),
        ["## Spent"],
        list(_spent(document)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _plan_words(plan: Mapping[str, Any]) -> str:
    tiers = plan["tiers"]
    set_tiers = {tier: tiers[tier] for tier in map(str, Tier) if tiers.get(tier) is not None}
    named = ", ".join(f"{tier} {value:g}" for tier, value in set_tiers.items())
    seeds = plan["seeds"]
    objective = inline(in_quotes(plan["objective"], 600))
    return (
        f"{objective} Metric: {inline(plan['metric'], 60)},"
        f" {plan['direction']}; tiers: {named}; {seeds} seed{'s' if seeds != 1 else ''} an"
        f" experiment. Plan version {plan['version']}, {inline(plan['path'], 200)}."
    )


def _kept(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    kept = [row for row in rows if row["status"] == ExperimentStatus.KEPT]
    if not kept:
        yield ["Nothing is kept yet."]
    for row in kept:
        yield _wrapped(f"**{row['experiment']}**: {_quoted(row['hypothesis'])}")
        yield [line for text in _figures(row) for line in _wrapped(text, item=True)]


def scored_and_judged(row: Mapping[str, Any], words: Callable[[str, int], str]) -> Iterator[str]:
    """Scores and verdict of an experiment; `words` makes a foreign name fit the page."""
    for split in ("validation", "held_out"):
        if row[split]["metric"]:
            yield f"{words(row[split]['metric'], 60)} {score_text(row[split])}"
    if row["verdict"]:
        released = row[row["gate"]]["released"]
        reached = f", {tier_text(row['tier'], released)}" if row["tier"] else ""
        yield f"{row['verdict']} on {spoken(row['gate'])}{reached}"


def _figures(row: Mapping[str, Any]) -> Iterator[str]:
    yield from scored_and_judged(row, inline)
    if row["compared"]:
        yield f"against {row['against']}: {row['compared']}"
    if row["decision"]:
        yield _decided(row["decision"])
    yield from map(again, row["reproductions"])


def again(made: Mapping[str, Any]) -> str:
    """What a second training came to, in words."""
    changed = f"; not as it was then: {', '.join(made['changed'])}" if made["changed"] else ""
    return f"{made['outcome']} as {made['reproduction']}: {inline(made['why'])}{changed}"


def _decided(decision: Mapping[str, Any]) -> str:
    by, reason = inline(decision["by"], 80), _quoted(decision["reason"])
    return f"{decision['kind']} by {by}: {reason}"


def _quoted(text: str) -> str:
    return inline(in_quotes(text, 500))


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The table, then the hypotheses in full and why each was decided as it was."""
    cells = [
        [
            row["experiment"],
            figure(row["validation"]),
            figure(row["held_out"]),
            str(row["verdict"] or "-"),
            status_words(row),
        ]
        for row in rows
    ]
    head: tuple[str, ...] = _COLUMNS[:-1]
    left = WIDTH - sum(_widths(head, cells)) - 3 * len(head) - 4
    if left >= len(_COLUMNS[-1]):
        head = _COLUMNS
        for line, row in zip(cells, rows, strict=True):
            line.append(_fitting(row["hypothesis"], left))
    widths = _widths(head, cells)
    rule = "|".join("-" * (width + 2) for width in widths)
    yield [_row(head, widths), f"|{rule}|", *(_row(line, widths) for line in cells)]
    yield [line for row in rows for line in _wrapped(_told(row), item=True)]
    if any(row["validation"]["interval"] for row in rows):
        yield ["± is half of the 95% interval."]


def _failed(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """What went wrong, with its class; nothing where nothing did."""
    lines = [line for row in rows for one in row["failures"] for line in _wrapped(one, item=True)]
    if lines:
        yield ["## What went wrong"]
        yield lines


def _widths(head: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(head, *cells, strict=True)]


def _fitting(text: str, width: int) -> str:
    """The beginning of `text` that is no wider as a quoted cell."""
    fitting = (cell(in_quotes(text, limit)) for limit in range(width, 0, -1))
    return next(shown for shown in fitting if len(shown) <= width)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text.ljust(width) for text, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _told(row: Mapping[str, Any]) -> str:
    builds = f" (builds on {row['parent']})" if row["parent"] else ""
    why = f" {_decided(row['decision'])}" if row["decision"] else ""
    hypothesis = _quoted(row["hypothesis"])
    scored = f" Scored by the {row['predict_code']}." if row["predict_code"] else ""
    return f"{row['experiment']}{builds}: {hypothesis}{scored}{why}"


def _others(count: int) -> list[list[str]]:
    if not count:
        return []
    more = f"{count} experiment{'s' if count > 1 else ''} of other plans"
    return [_wrapped(f"{more}: `harness experiment list`.")]


def _not_isolated(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What lowers the grade of a score, for each experiment."""
    lines = []
    for row in rows:
        lacking = dict.fromkeys(
            _lacks(row[split]) for split in ("validation", "held_out") if row[split]["evidence"]
        )
        if told := "; ".join(filter(None, lacking)):
            lines += _wrapped(f"{row['experiment']}: {told}", item=True)
    if lines:
        return lines
    scored = any(row["validation"]["evidence"] for row in rows)
    return ["Nothing." if scored else "Nothing was scored yet."]


def _lacks(total: Mapping[str, Any]) -> str:
    _, _, lacks = total["evidence"].partition(f"{Grade().words}, ")
    return str(lacks)


def _spent(document: Mapping[str, Any]) -> Iterator[str]:
    looks, budget = document["looks"], document["budget"]
    yield f"- looks at held-out: {looks['held_out']} of {looks['queries']}"
    yield f"- told of secret labels: {looks['bits_told']:g} of {looks['bits']:g} bits"
    experiments, minutes = budget["experiments"], budget["minutes"]
    yield f"- experiments: {experiments['used']} of {experiments['of']}"
    yield f"- training: {minutes['used']:g} of {minutes['of']:g} minutes"
    for row in document["experiments"]:
        if told := ", ".join(in_words(row["resources"])):
            used = f"{row['experiment']} used at most: {told}"
            yield from _wrapped(used, item=True)
    if budget["usd"] is not None:
        yield f"- models: {budget['usd']['used']:.2f} of {budget['usd']['of']:.2f} USD"
    if budget["tokens"] is not None:
        tokens = budget["tokens"]
        yield f"- models: {tokens['used']:,} of {tokens['of']:,} tokens"


def _wrapped(text: str, *, item: bool = False) -> list[str]:
    return wrapped(text, WIDTH, "- ", "  ") if item else wrapped(text, WIDTH)
