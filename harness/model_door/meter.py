"""Money: what each role spent, and whether one more request can still be paid in the worst case."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.model_door.door import Refusal
from harness.model_door.prices import Price, price_of
from harness.model_door.wire import RecordedRequest

OVERHEAD_TOKENS = 2_000
"""What the service adds to a request for tools and the like, at most."""
CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "memory_", "computer_", "tool_search_tool_")
USUAL = {"speed": "standard", "inference_geo": "global"}
COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Of one role."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Reservation:
    role: str
    price: Price
    worst_usd: float


@dataclass
class Meter:
    """Holds the budget. Reserves a request's worst case before it is sent and settles what it really cost after."""

    budget_usd: float
    prices: Mapping[str, Price] = field(default_factory=dict)
    spent_before_usd: float = 0.0
    """By earlier sessions on the same budget."""
    roles: dict[str, Spent] = field(default_factory=dict)
    reserved_usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def spent_usd(self) -> float:
        return self.spent_before_usd + sum(spent.usd for spent in self.roles.values())

    def reserve(self, request: RecordedRequest) -> Reservation:
        """Raises Refusal when the price is not known or the worst case would pass the budget."""
        model = str(request.body.get("model", ""))
        price = price_of(model, self.prices)
        if price is None:
            raise Refusal(
                f"The price of the model {model!r} is not known, so its budget cannot be kept.",
                mend="Use another model, or give its price to the model door.",
                code="price_unknown",
            )
        _refuse_unpriced(request.body)
        worst = worst_case_usd(request, price)
        with self._lock:
            committed = self.spent_usd + self.reserved_usd
            if committed + worst > self.budget_usd:
                raise Refusal(
                    f"The budget would be passed: ${committed:.4f} of ${self.budget_usd:.4f} is spent or reserved, "
                    f"and this request of {request.where} may cost up to ${worst:.4f}.",
                    mend="Raise budget.usd in the plan, or lower CLAUDE_CODE_MAX_OUTPUT_TOKENS.",
                    code="budget_spent",
                )
            self.reserved_usd += worst
        return Reservation(role=request.role, price=price, worst_usd=worst)

    def settle(self, reservation: Reservation, usage: Mapping[str, Any] | None) -> float:
        """Replace a reservation by what was used; None, when nobody can say, is the worst case. Returns dollars."""
        usd = reservation.worst_usd if usage is None else reservation.price.cost(usage)
        counts = {name: usage.get(name, 0) for name in COUNTED} if usage is not None else {}
        with self._lock:
            self.reserved_usd = max(0.0, self.reserved_usd - reservation.worst_usd)
            before = self.roles.get(reservation.role, Spent())
            more = {name: getattr(before, name) + (count or 0) for name, count in counts.items()}
            self.roles[reservation.role] = replace(before, requests=before.requests + 1, usd=before.usd + usd, **more)
        return usd

    def release(self, reservation: Reservation) -> None:
        """Nothing was charged: the request was never sent, or was refused by the service."""
        with self._lock:
            self.reserved_usd = max(0.0, self.reserved_usd - reservation.worst_usd)


def worst_case_usd(request: RecordedRequest, price: Price) -> float:
    """A token is at least one byte, so the size bounds the input; max_tokens bounds the output."""
    limit = request.body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise Refusal("The request has no max_tokens, so its cost has no bound.", mend="Send max_tokens.")
    return price.worst_case(request.bytes + OVERHEAD_TOKENS, limit)


def _refuse_unpriced(body: Mapping[str, Any]) -> None:
    """What is billed beyond tokens or at another rate: tools that the service runs, and faster tiers."""
    kinds = [str(tool.get("type") or "custom") for tool in body.get("tools") or () if isinstance(tool, dict)]
    if server := [kind for kind in kinds if not kind.startswith(CLIENT_TOOLS)]:
        raise Refusal(
            f"The tool {server[0]!r} may be run by the service and billed apart.",
            mend="Leave it out of the role's tools.",
            code="price_unknown",
        )
    for name, usual in USUAL.items():
        if body.get(name) not in (None, usual):
            raise Refusal(f"{name} {body[name]!r} has a price of its own.", mend="Leave it out.", code="price_unknown")
