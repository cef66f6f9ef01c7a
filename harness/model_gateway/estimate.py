"""What a night of the loop is expected to cost, before it begins.

A session that was metered here says what one of its role takes; until then the loads below are
assumed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.contract.phases import PHASES
from harness.contract.profiles import PROFILES, Profile, profile_of
from harness.domain.prices import DEFAULT_MODEL, Price, model_of, price_of
from harness.ledger.facts import ApprovedPlan
from harness.ledger.ledger import Ledger
from harness.ledger.spending import Paid, tokens_of


@dataclass(frozen=True, kw_only=True)
class Load:
    """One session of a role, as it is assumed."""

    sessions: float
    """For each experiment."""
    requests: int
    prompt: int
    """Tokens of the first request."""
    growth: int
    """Tokens that each further one adds."""
    answer: int
    """Tokens of each answer."""

    @property
    def usage(self) -> dict[str, int]:
        """Each request writes what is new to the cache and reads the rest from it."""
        more = self.requests - 1
        read = sum(self.prompt + self.growth * turn for turn in range(more))
        return {
            "input_tokens": 0,
            "output_tokens": self.requests * self.answer,
            "cache_creation_input_tokens": self.prompt + self.growth * more,
            "cache_read_input_tokens": read,
        }


LOADS: dict[str, Load] = {
    "model-builder": Load(
        sessions=1,
        requests=25,
        prompt=6_000,
        growth=1_500,
        answer=700,
    ),
    "oracle": Load(
        sessions=1,
        requests=6,
        prompt=5_000,
        growth=1_000,
        answer=500,
    ),
    "training-checker": Load(
        sessions=0.5,
        requests=10,
        prompt=5_000,
        growth=2_000,
        answer=600,
    ),
}
"""Role -> what is assumed of it. A research-scout works only where the plan names references."""
PHASE = Load(
    sessions=1,
    requests=10,
    prompt=6_000,
    growth=2_000,
    answer=700,
)
"""A session that works on a phase, of whatever role; `sessions` is for each phase."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    tokens: float = 0.0
    usd: float | None = 0.0
    """None where the model has no price here."""

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        both = self.usd is not None and other.usd is not None
        return Cost(
            tokens=self.tokens + times * other.tokens,
            usd=(self.usd or 0.0) + times * (other.usd or 0.0) if both else None,
        )


_OF_PHASES = frozenset(phase.role for phase in PHASES if phase.role is not None)


def assumed(role: str, model: str) -> Cost:
    """One session of the role on the model."""
    load = LOADS.get(role) or (PHASE if role in _OF_PHASES else None)
    if load is None:
        return Cost()
    price, usage = price_of(model), load.usage
    return Cost(
        tokens=tokens_of(usage),
        usd=None if price is None else _dollars(price, load),
    )


def _dollars(price: Price, load: Load) -> float:
    # Request by request: a long prompt may have a price of its own.
    total, before = 0.0, 0
    for turn in range(load.requests):
        prompt = load.prompt + load.growth * turn
        total += price.cost(
            {
                "cache_creation_input_tokens": prompt - before,
                "cache_read_input_tokens": before,
                "output_tokens": load.answer,
            }
        )
        before = prompt
    return total


def measured(paid: Sequence[Paid]) -> dict[str, Cost]:
    """Role -> the mean of its sessions that were metered."""
    sums: dict[str, Cost] = {}
    sessions: dict[str, set[str]] = {}
    for one in paid:
        before = sums.get(one.role, Cost())
        now = Cost(tokens=one.tokens, usd=one.usd)
        sums[one.role] = before.plus(now)
        sessions.setdefault(one.role, set()).add(one.session)
    return {role: Cost().plus(total, 1 / len(sessions[role])) for role, total in sums.items()}


def work_left(experiments: int, phases: int) -> str:
    """E.g. "1 experiment and 2 phases"."""
    parts = [(experiments, "experiment"), *([(phases, "phase")] if phases else [])]
    return " and ".join(f"{n} {name}{'' if n == 1 else 's'}" for n, name in parts)


@dataclass(frozen=True, kw_only=True)
class Night:
    """What a loop is expected to take, and the most that it can."""

    experiments: int
    phases: int
    """Of which sessions are due."""
    model: str
    expected: Cost
    from_measured: tuple[str, ...]
    """Roles of which sessions were metered; the others are assumed."""
    most_usd: float | None
    most_tokens: int | None

    @property
    def words(self) -> str:
        about = f"about {self.expected.tokens / 1e6:.1f} million tokens"
        if self.expected.usd is not None:
            about += f" (${self.expected.usd:.2f} at list prices)"
        basis = "assumed loads, docs/cost.md"
        if self.from_measured:
            basis = f"measured here: {', '.join(self.from_measured)}"
        work = work_left(self.experiments, self.phases)
        return (
            f"models: {about} expected for {work} on {self.model} ({basis}); at most {self._most}"
        )

    @property
    def _most(self) -> str:
        parts = []
        if self.most_usd is not None:
            parts.append(f"${self.most_usd:.2f} (budget.usd)")
        if self.most_tokens is not None:
            parts.append(f"{self.most_tokens:,} tokens (budget.tokens)")
        return " and ".join(parts)


def left_of(
    ledger: Ledger,
    plan: ApprovedPlan,
    environment: Mapping[str, str],
    profile: Profile | None = None,
) -> tuple[int, str]:
    """How many experiments are left, and the model that sessions ask, by the plan and the profile;
    by default the profile that the plan names."""
    used = profile or PROFILES[profile_of(plan.content)]
    budget: int = plan.content["budget"]["experiments"]
    most = min(budget, used.experiments or budget)
    opened = sum(one.plan == plan.name for one in ledger.experiments())
    return max(0, most - opened), used.model or model_of(environment)


def night(
    experiments: int,
    paid: Sequence[Paid],
    *,
    model: str = DEFAULT_MODEL,
    phases: Sequence[str] = (),
    most_usd: float | None = None,
    most_tokens: int | None = None,
) -> Night:
    """`phases`: the role of each one that a session has still to work on; `most_usd`,
    `most_tokens`: what is left of the budget."""
    known, total = measured(paid), Cost()
    for role, load in LOADS.items():
        each = known.get(role) or assumed(role, model)
        total = total.plus(each, experiments * load.sessions)
    for role in phases:
        total = total.plus(known.get(role) or assumed(role, model))
    return Night(
        experiments=experiments,
        phases=len(phases),
        model=model,
        expected=total,
        from_measured=tuple(role for role in dict.fromkeys([*LOADS, *phases]) if role in known),
        most_usd=most_usd,
        most_tokens=most_tokens,
    )
