"""The ledger: what happened, as facts that are only ever added."""

import contextlib
import secrets
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import sqlalchemy as sa

from harness.clock import Clock
from harness.errors import UsageError
from harness.ledger.anchors import read_anchors
from harness.ledger.creation import (
    create_database,
    open_database,
    require_anchored,
    require_imported,
    require_never_made,
)
from harness.ledger.database import Database
from harness.ledger.local_writer import forget_local_writer, local_writer, note_local_writer
from harness.ledger.migrations import MIGRATIONS, Migration
from harness.ledger.programs import LedgerPrograms
from harness.ledger.reads import LedgerReads
from harness.ledger.replay import rebuild_state
from harness.ledger.text_form import is_writer_name
from harness.ledger.views import LedgerViews


class Ledger(LedgerReads, LedgerViews, LedgerPrograms):
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
        path: Path,
        *,
        anchors: Path,
        clock: Clock,
        writer: str | None = None,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        restore: bool = False,
        text: Path | None = None,
        migrations: Mapping[int, Migration] = MIGRATIONS,
    ) -> "Ledger":
        """Open the ledger at `path`; for writing it is made when missing, and migrated after a
        backup.

        `writer` is whose chain new facts extend, by default the one that the file was made with.
        `restore` opens a ledger that was cut, or makes a new one though anchors of a lost one
        exist: for `import_facts`, which brings the lost facts back; nothing can be appended before
        they are.

        `text` is where the project brings facts as text, e.g. in a clone: an empty ledger takes no
        fact of its own while they wait, since it would give their ids to other things.

        Raises NotFoundError (ledger_missing or facts_not_imported, when it is only to be read),
        LedgerError (ledger_too_new, ledger_too_old), LedgerDamagedError, LedgerReadOnlyError or
        LedgerBusyError. A file that cannot be read is left as it is.
        """
        if writer is not None and not is_writer_name(writer):
            raise UsageError(
                f"{writer!r} cannot name a writer.", hint="Use letters, digits, '.', '_' and '-'."
            )
        if not read_only and not path.exists():
            if not restore:
                require_never_made(path, anchors)
            forget_local_writer(anchors)
            create_database(
                path,
                writer=writer or f"w{secrets.token_hex(4)}",
                clock=clock,
                migrations=migrations,
            )
        if read_only and text is not None:
            require_imported(path, anchors, text)
        database = open_database(
            path, clock=clock, read_only=read_only, busy_seconds=busy_seconds, migrations=migrations
        )
        own = _checked_writer(database, path, anchors, read_only=read_only, restore=restore)
        return cls(
            database,
            anchors=anchors,
            clock=clock,
            writer=writer or own,
            restoring=restore,
            text=text,
        )

    @property
    def path(self) -> Path:
        return self._database.path

    @contextlib.contextmanager
    def connection(self) -> Iterator[sa.Connection]:
        """A read transaction; for the modules of harness.ledger."""
        with self._database.read() as connection:
            yield connection

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[sa.Connection]:
        """A write transaction that appends nothing of its own; for the modules of
        harness.ledger."""
        with self._database.write() as connection:
            yield connection

    def rebuild(self) -> None:
        """Make the state tables again from the facts; every projection counts as out of date
        afterwards.

        Raises LedgerDamagedError when the facts do not fit together; then nothing is changed.
        """
        with self._database.write() as connection:
            rebuild_state(connection)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _checked_writer(
    database: Database, path: Path, anchors: Path, *, read_only: bool, restore: bool
) -> str:
    """Whose chain the file's new facts extend, as it was noted; a file that is not as anchored is
    closed again."""
    try:
        known = [] if read_only or restore else read_anchors(anchors)
        with database.read() as connection:
            own = local_writer(connection, anchors, path)
            require_anchored(connection, known, path)
        if not read_only:
            note_local_writer(anchors, own)
    except BaseException:
        database.close()
        raise
    return own
