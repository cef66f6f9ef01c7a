"""What models took so far, by role, experiment and day, beside what is projected."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.domain.prices import PRICES_OF, model_of
from harness.ledger.phases import sessions_due
from harness.ledger.project import Project
from harness.ledger.spending import Paid, read_spending, spent
from harness.model_gateway.estimate import Cost, assumed, left_of, measured, night, work_left
from harness.views.tables import render_table

NOT_IN_IT = "What your own `claude` sessions took is not in it: they do not ask the gateway."
_NO_EXPERIMENT = "none yet"


def costs(project: Project, environment: Mapping[str, str]) -> dict[str, Any]:
    """Of every request that the gateway metered, under all plans; the budget, and what is left by
    its profile, are of the one in force. `environment`: a person's, which may name a model."""
    ledger, layout = project.ledger, project.layout
    paid = list(read_spending(layout.spending).values())
    plan = ledger.plan()
    budget = {} if plan is None else plan.content["budget"]
    used = None if plan is None else spent(ledger, layout, plan.name)
    left, model = None, model_of(environment)
    if plan is not None:
        left, model = left_of(ledger, plan, environment)
    phases = [] if plan is None else sessions_due(ledger, plan)
    experiments = _experiments(project)
    return {
        "plan": None if plan is None else plan.name,
        "prices": {"of": PRICES_OF, "model": model},
        "total": _sum(paid),
        "budget": {
            "usd": _limit(budget.get("usd"), used and round(used.usd, 4)),
            "tokens": _limit(budget.get("tokens"), used and used.tokens),
        },
        "roles": _roles(paid, model),
        "experiments": _by("experiment", paid, lambda one: experiments.get(one.session)),
        "days": _by("day", paid, lambda one: one.at[:10]),
        "next": None if left is None else _next(left, paid, phases, model),
    }


def _limit(of: float | None, used: float | None) -> dict[str, float] | None:
    return None if of is None or used is None else {"used": used, "of": of}


def _next(experiments: int, paid: list[Paid], phases: list[str], model: str) -> dict[str, Any]:
    rest = night(experiments, paid, model=model, phases=phases)
    return {
        "model": model,
        "experiments": experiments,
        "phases": len(phases),
        "tokens": round(rest.expected.tokens),
        "usd": _cents(rest.expected.usd),
        "measured": list(rest.from_measured),
    }


def _experiments(project: Project) -> dict[str, str]:
    """Session -> the experiment that it served, or opened."""
    ledger = project.ledger
    served = {one.id: one.experiment for one in ledger.sessions()}
    opened = {one.session: one.id for one in ledger.experiments() if one.session is not None}
    known = {**opened, **{name: of for name, of in served.items() if of}}
    return {name: of for name, of in known.items() if name is not None}


def _roles(paid: list[Paid], model: str) -> list[dict[str, Any]]:
    """Measured and projected for one session of each role."""
    rows = _by("role", paid, lambda one: one.role)
    each = measured(paid)
    for row in rows:
        role = row["role"]
        row["a_session"] = {
            "measured": _plain(each[role]),
            "projected": _plain(assumed(role, model)),
        }
    return rows


def _plain(cost: Cost) -> dict[str, Any] | None:
    if not cost.tokens:
        return None
    return {"tokens": round(cost.tokens), "usd": _cents(cost.usd)}


def _cents(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 4)


def _by(
    name: str,
    paid: list[Paid],
    key: Callable[[Paid], str | None],
) -> list[dict[str, Any]]:
    groups: dict[str, list[Paid]] = {}
    for one in paid:
        groups.setdefault(key(one) or _NO_EXPERIMENT, []).append(one)
    return [{name: group, **_sum(groups[group])} for group in sorted(groups)]


def _sum(paid: Iterable[Paid]) -> dict[str, Any]:
    all_of = list(paid)
    return {
        "sessions": len({one.session for one in all_of}),
        "requests": len(all_of),
        "tokens": sum(one.tokens for one in all_of),
        "input": sum(one.took("input_tokens") for one in all_of),
        "cache_written": sum(one.took("cache_creation_input_tokens") for one in all_of),
        "cache_read": sum(one.took("cache_read_input_tokens") for one in all_of),
        "output": sum(one.took("output_tokens") for one in all_of),
        "usd": round(sum(one.usd for one in all_of), 4),
        "unknown": sum(not one.settled for one in all_of),
    }


def costs_text(document: Mapping[str, Any]) -> list[str]:
    total = document["total"]
    if not total["requests"]:
        lines = ["nothing was metered yet"]
    else:
        lines = [
            _table("role", document["roles"]),
            _against(document["roles"]),
            _table("experiment", document["experiments"]),
            _table("day", document["days"]),
            f"in all: {total['tokens']:,} tokens, ${total['usd']:.4f} at the list prices of"
            f" {document['prices']['of']}",
        ]
        if total["unknown"]:
            lines.append(
                f"{total['unknown']} requests broke off: the most that each can have taken counts"
            )
    for name, limit in document["budget"].items():
        if limit is not None:
            lines.append(f"budget.{name}: {limit['used']:,} of {limit['of']:,} used")
    rest = document["next"]
    if rest is not None:
        usd = "" if rest["usd"] is None else f", ${rest['usd']:.2f}"
        basis = "measured" if rest["measured"] else "assumed"
        work = work_left(rest["experiments"], rest["phases"])
        lines.append(
            f"expected of the {work} that the plan has left, on {rest['model']}:"
            f" {rest['tokens']:,} tokens{usd} ({basis}; docs/cost.md)"
        )
    return [*lines, NOT_IN_IT]


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    head = (name, "sessions", "requests", "tokens", "output", "cache read", "USD")
    cells = [
        (
            row[name],
            row["sessions"],
            row["requests"],
            f"{row['tokens']:,}",
            f"{row['output']:,}",
            f"{row['cache_read']:,}",
            f"{row['usd']:.4f}",
        )
        for row in rows
    ]
    return render_table("", head, cells)


def _against(roles: list[dict[str, Any]]) -> str:
    head = ("one session", "measured", "projected", "measured USD", "projected USD")
    cells = []
    for row in roles:
        told = row["a_session"]
        pair = (told["measured"], told["projected"])
        tokens = ["-" if one is None else f"{one['tokens']:,}" for one in pair]
        usd = ["-" if one is None or one["usd"] is None else f"{one['usd']:.4f}" for one in pair]
        cells.append((row["role"], *tokens, *usd))
    return render_table("", head, cells)
