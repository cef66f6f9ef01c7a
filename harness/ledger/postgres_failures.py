"""PostgreSQL's errors, translated once: every one becomes a LedgerError that names the server and
the next step. SQLAlchemy's own text would show the facts in the statement."""

import contextlib
from collections.abc import Iterator

from sqlalchemy import exc

from harness.domain.team_ledger import TeamLedger
from harness.errors import (
    HarnessError,
    LedgerBusyError,
    LedgerError,
    LedgerReadOnlyError,
    UsageError,
)

_STARTING = ("starting up", "shutting down", "recovery mode", "too many clients")
_AWAY = ("refused", "No such file", "closed the connection", "reset by peer", *_STARTING)
_REFUSED_RIGHT = {"42501": "lacks the right", "25006": "may only read"}
_LOCK, _FULL = "55P03", "53100"


def lost(error: exc.DBAPIError) -> bool:
    """Whether the server went away under a statement."""
    return bool(error.connection_invalidated)


def unanswered(error: exc.DBAPIError, *, met: bool) -> bool:
    """Whether a connection that failed is worth another try: the server starts, or, where it
    was `met` before, it is away for now."""
    text = str(error.orig)
    return any(word in text for word in (_AWAY if met else _STARTING))


def translate(error: exc.DBAPIError, place: TeamLedger) -> HarnessError:
    """The harness's error for one of PostgreSQL's."""
    state = getattr(error.orig, "sqlstate", None) or ""
    detail = " ".join(str(error.orig).split())
    if state == _LOCK:
        return LedgerBusyError(
            f"{place} is being written by another process, which did not finish in time"
            f" ({detail}).",
            hint="Nothing was written. Try again; pg_locks shows who holds it.",
        )
    if state in _REFUSED_RIGHT:
        return LedgerReadOnlyError(
            f"{place}: this role {_REFUSED_RIGHT[state]} ({detail}).",
            hint="Nothing was written. `harness ledger grants` prints what a role needs.",
        )
    if state == _FULL:
        return LedgerError(
            f"{place} cannot grow: the server's disk is full ({detail}).",
            hint="Nothing was written. Free some space there and try again.",
            code="ledger_disk_full",
        )
    if isinstance(error, exc.DataError):
        return UsageError(
            f"A value cannot be kept in {place}: {detail}.",
            hint="Use text without NUL, and whole numbers of at most 64 bits.",
        )
    if lost(error) or state[:2] in ("08", "57"):
        return LedgerError(
            f"{place} went away in the middle of a step ({detail}).",
            hint="Nothing of this step was written. Run the command again: it waits for the"
            " server.",
            code="ledger_connection_lost",
        )
    if isinstance(error, exc.ProgrammingError) and not state:
        return LedgerError(
            f"{place} is no address of a server: {detail}.",
            hint="Nothing was written. Correct `ledger` in .harness/config.toml, or the URL that"
            " was given.",
            code="ledger_unreachable",
        )
    if isinstance(error, exc.OperationalError):
        return LedgerError(
            f"{place} cannot be reached: {detail}.",
            hint="Nothing was written. Is the server up, and does ~/.pgpass or PGPASSWORD hold the"
            " password?",
            code="ledger_unreachable",
        )
    return LedgerError(f"{place} failed: {detail}.", hint="Run `harness ledger verify`.")


@contextlib.contextmanager
def translated(place: TeamLedger) -> Iterator[None]:
    """Errors of the server leave as LedgerErrors about `place`."""
    try:
        yield
    except exc.DBAPIError as error:
        raise translate(error, place) from error
