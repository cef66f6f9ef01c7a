"""The cost of requests to the model service, in `spending.jsonl` of the state directory, which no
agent reaches.

Two synced lines a request: its worst case before it is sent, its real cost afterwards. A process
killed in between leaves the worst case, which then counts. A line torn by a power cut is skipped: a
torn first line was not sent, a torn second one leaves the worst case.
"""

import contextlib
import json
import os
import secrets
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.artifacts.locate import Layout
from harness.clock import Clock, SystemClock, iso
from harness.errors import GatewayError
from harness.files import (
    canonical_json,
    lock,
    open_file,
    owner_only,
    private_folder,
    sync_directory,
)
from harness.ledger.facts import ApprovedPlan
from harness.ledger.facts.plan import REHEARSAL
from harness.ledger.ledger import Ledger

COUNTED = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
"""What of an answer's usage is counted."""


@dataclass(frozen=True, kw_only=True)
class Paid:
    """One request: what it cost, or may cost at most while nobody knows."""

    plan: str
    session: str
    role: str
    usd: float
    tokens: int = 0
    """Read and written, from the cache or not."""
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    at: str = ""
    settled: bool = False

    def took(self, name: str) -> int:
        """The count `name` of its usage."""
        return _counted(self.usage.get(name))


class Spent(NamedTuple):
    usd: float
    tokens: int


class SpendingLog:
    """Writes down the requests of one plan. Safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        plan: str,
        clock: Clock | None = None,
    ) -> None:
        self._path, self._plan = path, plan
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else reserves meanwhile: loops of several working trees share a budget. Raises
        GatewayError."""
        with contextlib.ExitStack() as stack:
            try:
                private_folder(self._path.parent)
                stack.enter_context(lock(self._path.with_suffix(".lock")))
            except OSError as error:
                raise _not_written(self._path, error) from error
            yield

    def reserve(
        self,
        *,
        session: str,
        role: str,
        usd: float,
        tokens: int = 0,
        model: str = "",
    ) -> str:
        """Note the worst case before a request is sent; returns the request's id. Raises
        GatewayError: then do not send."""
        request = secrets.token_hex(8)
        self._append(
            {
                "id": request,
                "plan": self._plan,
                "session": session,
                "role": role,
                "worst_usd": usd,
                "worst_tokens": tokens,
                "model": model,
                "t": iso(self._clock.now()),
            }
        )
        return request

    def settle(
        self,
        request: str,
        *,
        usd: float,
        usage: Mapping[str, int],
        tokens: int | None = None,
    ) -> None:
        """Note the real cost; 0 when nothing was charged. `tokens`: where no usage tells them.
        Raises GatewayError: then the worst case stands."""
        counted = tokens_of(usage) if tokens is None else tokens
        self._append(
            {
                "id": request,
                "usd": usd,
                "tokens": counted,
                "usage": dict(usage),
            }
        )

    def spent(self, *, without: Container[str] = ()) -> Spent:
        """By all requests of the plan so far, but for those whose ids are in `without`. Raises
        GatewayError."""
        paid = read_spending(self._path)
        counted = [
            request
            for name, request in paid.items()
            if request.plan == self._plan and name not in without
        ]
        return Spent(
            sum(request.usd for request in counted),
            sum(request.tokens for request in counted),
        )

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self._lock:
                private_folder(self._path.parent)
                new = not self._path.exists()
                with open(self._path, "ab+", buffering=0, opener=owner_only) as stream:
                    stream.write(_break_after_torn(stream) + canonical_json(line) + b"\n")
                    os.fsync(stream.fileno())
                if new:
                    sync_directory(self._path.parent)
        except OSError as error:
            raise _not_written(self._path, error) from error


def _not_written(path: Path, error: OSError) -> GatewayError:
    return GatewayError(
        f"What a request costs cannot be written to {path}: {error}.",
        hint="Make room or give the right to write, then run `harness continue`.",
        code="spending_not_written",
    )


def read_spending(path: Path) -> dict[str, Paid]:
    """Request id -> its cost, in the order of sending. Raises GatewayError."""
    requests: dict[str, Paid] = {}
    try:
        with open_file(path) as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return requests
    except OSError as error:
        raise GatewayError(
            f"What was spent cannot be read from {path}: {error}.",
            hint="Make the file readable, then run `harness continue`.",
            code="spending_not_read",
        ) from error
    for line in lines:
        try:
            entry = json.loads(line)
            name = entry["id"]
            if "usd" in entry:
                requests[name] = replace(
                    requests[name],
                    usd=float(entry["usd"]),
                    tokens=int(entry["tokens"]),
                    usage=dict(entry["usage"]),
                    settled=True,
                )
            else:
                requests[name] = Paid(
                    plan=entry["plan"],
                    session=entry["session"],
                    role=entry["role"],
                    usd=float(entry["worst_usd"]),
                    tokens=int(entry["worst_tokens"]),
                    model=entry["model"],
                    at=entry["t"],
                )
        except (ValueError, KeyError, TypeError):
            continue
    return requests


def spent(ledger: Ledger, layout: Layout, plan: str) -> Spent:
    """Under the plan, all its versions together: what its budget.usd and budget.tokens limit."""
    here = SpendingLog(layout.spending, plan).spent()
    there = spent_elsewhere(ledger, layout, plan)
    return Spent(here.usd + there.usd, here.tokens + there.tokens)


def spent_elsewhere(ledger: Ledger, layout: Layout, plan: str) -> Spent:
    """By sessions that only the ledger knows: of another machine or a lost state directory."""
    here = {request.session for request in read_spending(layout.spending).values()}
    plans = ledger.plans()
    paid = [
        session
        for session in ledger.sessions()
        if session.cost_usd is not None
        and session.id not in here
        and _plan_at(plans, session.started_at) == plan
    ]
    return Spent(
        sum(session.cost_usd or 0.0 for session in paid),
        sum(tokens_of(session.usage) for session in paid),
    )


def tokens_of(usage: Mapping[str, Any]) -> int:
    return sum(_counted(usage.get(name)) for name in COUNTED)


def _counted(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def session_usd(layout: Layout, session: str) -> float | None:
    """By one session's requests; None when it sent none to a service that is paid."""
    paid = read_spending(layout.spending).values()
    costs = [request.usd for request in paid if request.session == session]
    return sum(costs) if costs else None


def _plan_at(plans: Sequence[ApprovedPlan], at: str) -> str | None:
    """The name of the plan that was in force then; `plans` are oldest first. Not of a scenario that
    a clone played meanwhile."""
    real = (plan for plan in plans if REHEARSAL not in plan.name)
    names = [plan.name for plan in real if plan.at <= at]
    return names[-1] if names else None


def _break_after_torn(stream: Any) -> bytes:
    """A line's end, when the last line has none."""
    if stream.seek(0, os.SEEK_END) == 0:
        return b""
    stream.seek(-1, os.SEEK_END)
    return b"" if stream.read(1) == b"\n" else b"\n"
