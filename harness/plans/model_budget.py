"""Whether a plan's budget for models pays a first request at all: the gateway sends none whose
worst case does not fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.domain.prices import DEFAULT_MODEL, price_of
from harness.errors import PlanError
from harness.plans.schema import Budget

FIRST_BYTES = 17_000
"""At least what the first request of a role's session has: prompt, tools and first message."""
MOST_OUTPUT = 128_000
"""max_tokens, as the CLI sends it."""
OVERHEAD_TOKENS = 2_000
"""The most that the service adds to a request, for tools and the like."""


@dataclass(frozen=True, kw_only=True)
class First:
    """The most that the first request of a session can take."""

    usd: float | None
    tokens: int


def first_request(model: str = DEFAULT_MODEL) -> First:
    asked = FIRST_BYTES + OVERHEAD_TOKENS
    price = price_of(model)
    usd = None if price is None else price.worst_case(asked, MOST_OUTPUT)
    return First(usd=usd, tokens=asked + MOST_OUTPUT)


def too_small(budget: Mapping[str, float | None], model: str = DEFAULT_MODEL) -> str | None:
    """Why a plan's `budget` pays no request at all; None when it pays one, or no model."""
    least, usd, tokens = first_request(model), budget.get("usd"), budget.get("tokens")
    if usd is not None and least.usd is not None and usd < least.usd:
        return (
            f"budget.usd is {usd:g}, but the first request of a session may cost up to"
            f" ${least.usd:.2f} on {model} (it may answer with {MOST_OUTPUT:,} tokens), so none"
            " would be sent"
        )
    if tokens is not None and tokens < least.tokens:
        return (
            f"budget.tokens is {tokens:g}, but the first request of a session may take up to"
            f" {least.tokens:,} tokens, so none would be sent"
        )
    return None


def least_budget(model: str = DEFAULT_MODEL) -> str:
    """What to write instead."""
    least = first_request(model)
    tokens = f"budget.tokens to {least.tokens:,} or more"
    if least.usd is None:
        return f"Set {tokens}."
    return (
        f"Set budget.usd to {least.usd:.2f} or more, or {tokens}; what is not used costs nothing."
    )


def budget_problems(budget: Budget, model: str) -> Iterator[PlanError]:
    why = too_small(budget.model_dump(), model)
    if why is not None:
        yield PlanError(
            f"{why}.",
            hint=least_budget(model),
            code="budget_too_small",
        )
