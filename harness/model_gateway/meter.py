"""The budget: what each role spent, and whether one more request fits in the worst case."""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.ledger.spending import SpendingLog
from harness.model_gateway.costs import Price, price_of, require_bounded, worst_case_usd
from harness.model_gateway.gateway import BUDGET_SPENT, Refusal
from harness.model_gateway.wire import RecordedRequest

COUNTED = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


@dataclass(frozen=True, kw_only=True)
class RoleSpending:
    """What one role has used."""

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
    line: str | None = None
    """Its name in the spending log."""


@dataclass
class Meter:
    """Keeps the budget: reserves a request's worst case before it is sent, settles its real cost
    after."""

    budget_usd: float
    prices: Mapping[str, Price] = field(default_factory=dict)
    spent_before_usd: float = 0.0
    """By earlier sessions on the same budget, without what `log` holds."""
    log: SpendingLog | None = None
    """Where every request is recorded, also those of another working tree's loop: what these cost
    is read before each request."""
    roles: dict[str, RoleSpending] = field(default_factory=dict)
    reserved_usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _own: set[str] = field(default_factory=set, repr=False)
    """Its reservations in `log`."""
    _others_usd: float = field(default=0.0, repr=False)

    @property
    def spent_usd(self) -> float:
        own = sum(spent.usd for spent in self.roles.values())
        return self.spent_before_usd + self._others_usd + own

    def reserve(self, request: RecordedRequest) -> Reservation:
        """Raises Refusal when the price is unknown or the worst case exceeds the budget,
        GatewayError when the reservation cannot be recorded."""
        model = str(request.body.get("model", ""))
        price = price_of(model, self.prices)
        if price is None:
            raise Refusal(
                f"The price of the model {model!r:.100} is unknown, so the budget cannot be kept.",
                hint="Use another model, or give its price to the model gateway.",
                code="price_unknown",
            )
        require_bounded(request.body)
        worst = worst_case_usd(request, price)
        line = None
        # The lock spans check and reservation: two requests must not both fit into the same rest.
        with self._lock, contextlib.nullcontext() if self.log is None else self.log.held():
            if self.log is not None:
                self._others_usd = self.log.spent_usd(without=self._own)
            committed = self.spent_usd + self.reserved_usd
            if committed + worst > self.budget_usd:
                raise Refusal(
                    f"The budget would be exceeded: ${committed:.4f} of ${self.budget_usd:.4f} is"
                    f" spent or reserved, and this request of {request.where} may cost up to"
                    f" ${worst:.4f}.",
                    hint="Raise budget.usd in the plan, approve it, and run `harness continue`.",
                    code=BUDGET_SPENT,
                )
            if self.log is not None:
                line = self.log.reserve(
                    session=request.asker.session, role=request.asker.role, usd=worst
                )
                self._own.add(line)
            self.reserved_usd += worst
        return Reservation(role=request.asker.role, price=price, worst_usd=worst, line=line)

    def settle(self, reservation: Reservation, usage: Mapping[str, Any] | None) -> float:
        """Replace a reservation by the real cost, and return it in dollars; without `usage` it is
        the worst case."""
        usd = reservation.worst_usd if usage is None else reservation.price.cost(usage)
        counts = {name: usage.get(name, 0) for name in COUNTED} if usage is not None else {}
        with self._lock:
            # Not below zero: a sum of floats that is taken apart again may end at -1e-17.
            self.reserved_usd = max(0.0, self.reserved_usd - reservation.worst_usd)
            before = self.roles.get(reservation.role, RoleSpending())
            more = {name: getattr(before, name) + (count or 0) for name, count in counts.items()}
            self.roles[reservation.role] = replace(
                before, requests=before.requests + 1, usd=before.usd + usd, **more
            )
        self._write(reservation, usd, counts)
        return usd

    def release(self, reservation: Reservation) -> None:
        """Nothing was charged: the request was never sent, or the service refused it."""
        with self._lock:
            self.reserved_usd = max(0.0, self.reserved_usd - reservation.worst_usd)
        self._write(reservation, 0.0, {})

    def _write(self, reservation: Reservation, usd: float, counts: Mapping[str, Any]) -> None:
        if self.log is not None and reservation.line is not None:
            self.log.settle(reservation.line, usd=usd, usage=counts)
