"""Making a new ledger file, and checking an existing one before it is opened."""

import contextlib
import os
import re
import secrets
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.domain.late import later
from harness.domain.team_ledger import Place
from harness.errors import LedgerDamagedError, NotFoundError
from harness.files import private_folder, sync_directory
from harness.ledger.anchors import Anchor, anchored_writers
from harness.ledger.database import FileDatabase
from harness.ledger.failures import damaged, translated
from harness.ledger.schema import meta
from harness.ledger.state_version import create_tables, require_state_version, update_state
from harness.ledger.store import Connection, Database
from harness.ledger.text_form import text_files

if TYPE_CHECKING:
    from harness.ledger import postgres
else:
    postgres = later("harness.ledger.postgres")  # SQLAlchemy: only where a server is asked for

_NETWORK_TYPES = (
    {"9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs"}
    | {"lustre", "ncpfs", "nfs", "nfs3", "nfs4", "orangefs", "pvfs2", "smb", "smb2", "smb3"}
    | {"smbfs", "virtiofs", "webdav"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)
_OCTAL = re.compile(r"\\([0-7]{3})")  # how /proc/mounts writes spaces in paths


class LedgerWarning(UserWarning):
    """The ledger works, but not as safely as it could."""


def open_database(
    place: Place,
    *,
    clock: Clock,
    read_only: bool,
    busy_seconds: float,
) -> Database:
    """An existing ledger, checked and (unless `read_only`) with state of this version. Raises
    LedgerError, and NotFoundError (ledger_missing)."""
    if isinstance(place, Path):
        return _open_file(place, clock=clock, read_only=read_only, busy_seconds=busy_seconds)
    return postgres.open_server(place, clock=clock, read_only=read_only, busy_seconds=busy_seconds)


def _open_file(path: Path, *, clock: Clock, read_only: bool, busy_seconds: float) -> Database:
    _require_file(path)
    # A warning, not an error: one machine that works alone on a network disk is safe.
    network = network_type(path.resolve())
    if network is not None:
        message = (
            f"{path} lies on a network file system ({network}): several machines that write at once"
            " can damage it. Put the state directory on a local disk: set XDG_STATE_HOME."
        )
        warnings.warn(message, LedgerWarning, stacklevel=4)
    database = FileDatabase(
        path,
        clock=clock,
        read_only=read_only,
        busy_seconds=busy_seconds,
        network=network is not None,
    )
    try:
        database.probe()
        _require_whole_pages(database)
        if read_only:
            with database.read() as connection:
                require_state_version(connection, path)
        else:
            database.set_journal()
            update_state(database)
    except BaseException:
        database.close()
        raise
    return database


def create_database(place: Place, *, writer: str, clock: Clock) -> None:
    """Make a new ledger; of two processes that do so at once the first one's stays."""
    if isinstance(place, Path):
        _create_file(place, writer=writer, clock=clock)
        return
    private_folder(place.folder)
    postgres.create_server(place, writer=writer, clock=clock)


def is_made(place: Place, clock: Clock) -> bool:
    """Whether there is something where the ledger belongs."""
    if isinstance(place, Path):
        return place.exists()
    return postgres.is_made(place, clock=clock)


def _create_file(path: Path, *, writer: str, clock: Clock) -> None:
    with translated(path):
        private_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        try:
            temporary.touch(mode=0o600, exist_ok=False)
            database = FileDatabase(
                temporary, clock=clock, read_only=False, busy_seconds=5.0, network=True
            )
            try:
                with database.write() as connection:
                    create_tables(connection)
                    connection.insert(meta, [{"key": "writer", "value": writer}])
            finally:
                database.close()
            # A link, not a rename: it fails where a ledger exists, and no reader ever sees a
            # half-made file.
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    sync_directory(path.parent)


def require_anchored(
    connection: Connection,
    anchors: Iterable[Anchor],
    place: Place,
    *,
    missing_allowed: bool = False,
) -> None:
    """Raises LedgerDamagedError when the ledger has not exactly the fact that an anchor names."""
    for anchor in anchors:
        stored_hash = connection.value(
            "SELECT hash FROM facts WHERE writer = :writer AND seq = :seq",
            writer=anchor.writer,
            seq=anchor.seq,
        )
        if stored_hash != anchor.hash and not (stored_hash is None and missing_allowed):
            what = "is missing" if stored_hash is None else "is another one"
            raise LedgerDamagedError(
                f"{place} was cut or replaced: fact {anchor.seq} of writer {anchor.writer}, which"
                f" its anchor names, {what}.",
                hint=(
                    "Run `harness ledger verify`, then restore a backup or run `harness ledger"
                    " import`."
                ),
            )


def require_never_made(place: Place, anchors: Path, clock: Clock) -> None:
    """Raises LedgerDamagedError when there are anchors of a ledger that is gone."""
    writers = anchored_writers(anchors)
    # looked at last: another process may just have made both
    if writers and not is_made(place, clock):
        way = "Restore the file from a backup, or run"
        if not isinstance(place, Path):
            way = "Move the facts there with `harness ledger migrate`, or run"
        raise LedgerDamagedError(
            f"{place} is gone, but {anchors} names facts of writer {', '.join(writers)}.",
            hint=f"{way} `harness ledger import` to read the text form.",
        )


def require_imported(anchors: Path, text: Path) -> None:
    """Of a ledger that is missing: raises NotFoundError when there never was one here and `text`
    holds facts: a clone."""
    if text_files(text) and not anchored_writers(anchors):
        raise not_imported(text)


def not_imported(text: Path) -> NotFoundError:
    return NotFoundError(
        f"{text} holds this project's facts, and this machine's ledger has none of them yet.",
        hint="A person reads them in, once in a clone: `harness ledger import`.",
        code="facts_not_imported",
    )


def _require_file(path: Path) -> None:
    # Never opened here: POSIX locks belong to the process, so closing a descriptor of our own would
    # drop SQLite's locks on the file (sqlite.org/howtocorrupt.html, section 2.2).
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotFoundError(
            f"There is no ledger at {path} yet.",
            hint=(
                "Approve a plan first: `harness plan approve`; in a clone `harness ledger import`"
                " reads the facts."
            ),
            code="ledger_missing",
        ) from error
    if stat.S_ISDIR(status.st_mode):
        raise damaged(path, "it is a folder")
    if status.st_size == 0:
        raise damaged(path, "it is empty (0 bytes)")


def _require_whole_pages(database: FileDatabase) -> None:
    with database.read() as connection:
        page = connection.value("PRAGMA page_size")
    size = database.path.stat().st_size
    if size % page:
        raise damaged(
            database.path, f"its size, {size} bytes, is not a whole number of pages: it was cut"
        )


def network_type(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that `path` lies on, or None for a local one.

    `mounts` replaces the text of /proc/mounts in tests; without either (macOS) a disk counts as
    local.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text("utf-8", errors="replace")
        except OSError:
            return None
    target = path if path.is_absolute() else path.absolute()
    longest, kind = -1, None
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), parts[1]))
        # >=: of two mounts at one point the later one hides the earlier.
        if target.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), parts[2]
    return kind if kind in _NETWORK_TYPES else None
