"""The ledger: what happened, as facts that are only ever added."""

import contextlib
import functools
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.domain.statuses import ExperimentStatus
from harness.domain.team_ledger import Place
from harness.errors import NotFoundError, UsageError
from harness.ledger.anchors import (
    forget_local_writer,
    local_writer,
    note_local_writer,
    read_anchors,
)
from harness.ledger.appending import LedgerWrites
from harness.ledger.chain import StoredFact
from harness.ledger.creation import (
    create_database,
    open_database,
    require_anchored,
    require_imported,
    require_never_made,
)
from harness.ledger.facts.checkpoint import CheckpointLedger
from harness.ledger.facts.control import ControlLedger
from harness.ledger.facts.decision import DecisionLedger
from harness.ledger.facts.evaluation import EvaluationLedger
from harness.ledger.facts.experiment import ExperimentLedger
from harness.ledger.facts.model import ModelLedger
from harness.ledger.facts.phase import PhaseLedger
from harness.ledger.facts.plan import PlanLedger
from harness.ledger.facts.prior import PriorLedger
from harness.ledger.facts.program import ProgramLedger
from harness.ledger.facts.release import ReleaseLedger
from harness.ledger.facts.reproduction import ReproductionLedger
from harness.ledger.facts.run import RunLedger
from harness.ledger.facts.session import SessionLedger
from harness.ledger.replay import rebuild_state, stored
from harness.ledger.store import Connection, Database
from harness.ledger.text_form import is_writer_name, writers
from harness.ledger.views import LedgerViews


class Ledger(
    LedgerWrites,
    PlanLedger,
    ExperimentLedger,
    RunLedger,
    CheckpointLedger,
    EvaluationLedger,
    ReleaseLedger,
    ReproductionLedger,
    PhaseLedger,
    DecisionLedger,
    PriorLedger,
    SessionLedger,
    ControlLedger,
    ProgramLedger,
    ModelLedger,
    LedgerViews,
):
    """One project's ledger. Use `Ledger.open`, as a context manager or with `close`."""

    def __init__(
        self,
        database: Database,
        *,
        anchors: Path,
        clock: Clock,
        writer: str,
        restoring: bool = False,
        text: Path | None = None,
    ) -> None:
        self._database = database
        self._active = threading.local()
        self.anchors = anchors
        self._clock = clock
        self.writer = writer
        self._restoring = restoring
        self._text = text

    @classmethod
    def open(
        cls,
        place: Place,
        *,
        anchors: Path,
        clock: Clock,
        writer: str | None = None,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        restore: bool = False,
        text: Path | None = None,
    ) -> "Ledger":
        """Open the ledger at `place`. For writing it is made when missing, and state tables of an
        older harness are rebuilt after a backup.

        `writer` is whose chain new facts extend, by default the file's own. `restore` opens a cut
        or lost ledger for `import_facts`; nothing can be appended before the lost facts are back.
        `text` holds the project's facts as text: an empty ledger takes no fact of its own while
        they wait, since it would give their ids to other things.

        Raises NotFoundError (ledger_missing, facts_not_imported), LedgerError (ledger_too_new,
        ledger_too_old), LedgerDamagedError, LedgerReadOnlyError or LedgerBusyError. A file that
        cannot be read is left as it is.
        """
        if writer is not None and not is_writer_name(writer):
            raise UsageError(
                f"{writer!r} cannot name a writer.", hint="Use letters, digits, '.', '_' and '-'."
            )
        opening = functools.partial(
            open_database, place, clock=clock, read_only=read_only, busy_seconds=busy_seconds
        )
        try:
            database = opening()
        except NotFoundError:
            if read_only:
                if text is not None:
                    require_imported(anchors, text)
                raise
            if not restore:
                require_never_made(place, anchors, clock)
            forget_local_writer(anchors)
            create_database(place, writer=writer or f"w{secrets.token_hex(4)}", clock=clock)
            database = opening()
        own = _checked_writer(database, anchors, read_only=read_only, restore=restore)
        return cls(
            database,
            anchors=anchors,
            clock=clock,
            writer=writer or own,
            restoring=restore,
            text=text,
        )

    @property
    def place(self) -> Place:
        return self._database.place

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A read transaction; for the modules of harness.ledger."""
        with self._database.read() as connection:
            yield connection

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """A write transaction without a Writer; for the modules of harness.ledger."""
        with self._database.write() as connection:
            yield connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the ledger as it was at the first one."""
        with self._database.read():
            yield

    def facts(self, after: int = 0) -> Iterator[StoredFact]:
        """Facts by their position in this database, from the one after `after`."""
        query = "SELECT * FROM facts WHERE position > :after ORDER BY position"
        with self._database.read() as connection:
            for row in connection.rows(query, after=after):
                yield stored(row)

    def position(self) -> int:
        """The position of the last fact in this database; 0 when there is none."""
        return int(self._value("SELECT max(position) FROM facts") or 0)

    def last_fact(self) -> StoredFact | None:
        """By the order of all facts, which is the same in every clone."""
        # By the index on times: to sort all facts for one would cost more with each.
        rows = self._rows(
            "SELECT * FROM facts WHERE at = (SELECT max(at) FROM facts)"
            " ORDER BY writer DESC, seq DESC LIMIT 1"
        )
        return StoredFact(**rows[0]) if rows else None

    def writers(self) -> list[str]:
        """Whose chains the ledger holds, by name."""
        with self._database.read() as connection:
            return writers(connection)

    def counts(self, plan: str | None = None) -> dict[str, Any]:
        """{"experiments": {status: n}, "verdicts": n, "decisions": n, "facts": n}; with `plan` only
        its experiments are counted."""
        of_plan = "" if plan is None else "WHERE plan = :plan"
        query = f"SELECT status, count(*) AS n FROM experiments {of_plan} GROUP BY status"
        with self._database.read():
            counts = {row["status"]: row["n"] for row in self._rows(query, plan=plan)}
            return {
                "experiments": {
                    status.value: counts[status] for status in ExperimentStatus if status in counts
                },
                "verdicts": self._value("SELECT max(number) FROM verdicts") or 0,
                "decisions": self._value("SELECT max(number) FROM decisions") or 0,
                "facts": self.position(),
            }

    def rebuild(self) -> None:
        """Replay the facts into the state tables; then every projection is out of date. Raises
        LedgerDamagedError, and changes nothing, when the facts do not fit together."""
        with self._database.write() as connection:
            rebuild_state(connection)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked_writer(database: Database, anchors: Path, *, read_only: bool, restore: bool) -> str:
    """Whose chain new facts extend. Raises LedgerDamagedError for a file that is not as anchored or
    noted, and closes it."""
    try:
        known = [] if read_only or restore else read_anchors(anchors)
        with database.read() as connection:
            own = local_writer(connection, anchors, database.place)
            require_anchored(connection, known, database.place)
        if not read_only:
            note_local_writer(anchors, own)
    except BaseException:
        database.close()
        raise
    return own
