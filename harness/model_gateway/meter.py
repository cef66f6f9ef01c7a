"""The budget: what each role spent, and whether one more request fits in the worst case."""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.domain.prices import Price, price_of
from harness.ledger.spending import COUNTED, SpendingLog, Spent, tokens_of
from harness.model_gateway.costs import require_bounded, worst_case, worst_tokens
from harness.model_gateway.gateway import BUDGET_SPENT, Refusal
from harness.model_gateway.wire import RecordedRequest


@dataclass(frozen=True, kw_only=True)
class RoleSpending:
    """What one role has used."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    tokens: int = 0
    """All of the above; where a usage is not known, the most that it can be."""
    usd: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Reservation:
    role: str
    price: Price | None
    worst_usd: float
    worst_tokens: int
    asked_tokens: int
    """Of the worst tokens those that are read; the others are written."""
    line: str | None = None
    """Its name in the spending log."""


@dataclass
class Meter:
    """Keeps the budget: reserves a request's worst case before it is sent, settles its real cost
    after."""

    budget_usd: float | None = None
    budget_tokens: int | None = None
    """One of the two is set; where both are, both hold."""
    spent_before_usd: float = 0.0
    """By earlier sessions on the same budget, without what `log` holds."""
    spent_before_tokens: int = 0
    log: SpendingLog | None = None
    """Where every request is recorded, also those of another working tree's loop: what these cost
    is read before each request."""
    roles: dict[str, RoleSpending] = field(default_factory=dict)
    reserved_usd: float = 0.0
    reserved_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _own: set[str] = field(default_factory=set, repr=False)
    """Its reservations in `log`."""
    _others: Spent = field(default=Spent(0.0, 0), repr=False)

    @property
    def spent_usd(self) -> float:
        own = sum(spent.usd for spent in self.roles.values())
        return self.spent_before_usd + self._others.usd + own

    @property
    def spent_tokens(self) -> int:
        own = sum(spent.tokens for spent in self.roles.values())
        return self.spent_before_tokens + self._others.tokens + own

    def reserve(self, request: RecordedRequest) -> Reservation:
        """Raises Refusal when the price is unknown or the worst case exceeds the budget,
        GatewayError when the reservation cannot be recorded."""
        model = str(request.body.get("model", ""))
        price = price_of(model)
        if price is None and self.budget_usd is not None:
            raise Refusal(
                f"The price of the model {model!r:.100} is unknown, so the budget cannot be kept.",
                hint="Use another model, or set budget.tokens in place of budget.usd.",
                code="price_unknown",
            )
        require_bounded(request.body)
        usd, tokens = worst_case(request, price)
        line = None
        # The lock spans check and reservation: two requests must not both fit into the same rest.
        with self._lock, contextlib.nullcontext() if self.log is None else self.log.held():
            if self.log is not None:
                self._others = self.log.spent(without=self._own)
            self._require_room(request, usd, tokens)
            if self.log is not None:
                line = self.log.reserve(
                    session=request.asker.session,
                    role=request.asker.role,
                    usd=usd,
                    tokens=tokens,
                    model=model[:100],
                )
                self._own.add(line)
            self.reserved_usd += usd
            self.reserved_tokens += tokens
        return Reservation(
            role=request.asker.role,
            price=price,
            worst_usd=usd,
            worst_tokens=tokens,
            asked_tokens=worst_tokens(request),
            line=line,
        )

    def _require_room(self, request: RecordedRequest, usd: float, tokens: int) -> None:
        """Raises Refusal (budget_spent) where the worst case does not fit into a budget."""
        limit_usd, limit_tokens = self.budget_usd, self.budget_tokens
        paid = self.spent_usd + self.reserved_usd
        if limit_usd is not None and paid + usd > limit_usd:
            raise _over(
                request,
                "usd",
                f"${paid:.4f} of ${limit_usd:.4f} is",
                f"cost up to ${usd:.4f}",
            )
        used = self.spent_tokens + self.reserved_tokens
        if limit_tokens is not None and used + tokens > limit_tokens:
            raise _over(
                request,
                "tokens",
                f"{used:,} of {limit_tokens:,} tokens are",
                f"take up to {tokens:,}",
            )

    def settle(self, reservation: Reservation, usage: Mapping[str, Any] | None) -> float:
        """Replace a reservation by the real cost, and return it in dollars; without `usage` it is
        the worst case."""
        if usage is None:
            return self._close(reservation, reservation.worst_usd, {}, reservation.worst_tokens)
        counts = {name: tokens_of({name: usage.get(name)}) for name in COUNTED}
        price = reservation.price
        usd = 0.0 if price is None else price.cost(usage)
        return self._close(reservation, usd, counts, tokens_of(counts))

    def settle_cut(
        self, reservation: Reservation, usage: Mapping[str, Any], written: int
    ) -> float:
        """Settle an answer that broke off with what it can have cost: `usage` is what it told of
        itself, `written` the most tokens that the model can have written."""
        most = min(written, reservation.worst_tokens - reservation.asked_tokens)
        if isinstance(usage.get("input_tokens"), int):
            told = tokens_of({"output_tokens": usage.get("output_tokens")})
            return self.settle(reservation, {**usage, "output_tokens": max(most, told)})
        asked, price = reservation.asked_tokens, reservation.price
        usd = 0.0 if price is None else price.worst_case(asked, most)
        return self._close(reservation, usd, {}, asked + most)

    def _close(
        self,
        reservation: Reservation,
        usd: float,
        counts: Mapping[str, int],
        tokens: int,
    ) -> float:
        with self._lock:
            self._give_back(reservation)
            before = self.roles.get(reservation.role, RoleSpending())
            more = {name: getattr(before, name) + count for name, count in counts.items()}
            self.roles[reservation.role] = replace(
                before,
                requests=before.requests + 1,
                usd=before.usd + usd,
                tokens=before.tokens + tokens,
                **more,
            )
        self._write(reservation, usd, counts, tokens)
        return usd

    def release(self, reservation: Reservation) -> None:
        """Nothing was charged: the request was never sent, or the service refused it."""
        with self._lock:
            self._give_back(reservation)
        self._write(reservation, 0.0, {}, 0)

    def _give_back(self, reservation: Reservation) -> None:
        # Not below zero: a sum of floats that is taken apart again may end at -1e-17.
        left = self.reserved_usd - reservation.worst_usd
        self.reserved_usd = max(0.0, left)
        self.reserved_tokens -= reservation.worst_tokens

    def _write(
        self,
        reservation: Reservation,
        usd: float,
        counts: Mapping[str, int],
        tokens: int,
    ) -> None:
        if self.log is not None and reservation.line is not None:
            self.log.settle(
                reservation.line,
                usd=usd,
                usage=counts,
                tokens=tokens,
            )


def _over(request: RecordedRequest, name: str, spent: str, worst: str) -> Refusal:
    return Refusal(
        f"The budget would be exceeded: {spent} spent or reserved, and this request of"
        f" {request.where} may {worst}.",
        hint=f"Raise budget.{name} in the plan, approve it, and run `harness continue`.",
        code=BUDGET_SPENT,
    )
