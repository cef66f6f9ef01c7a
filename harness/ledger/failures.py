"""SQLite's errors, translated once: every one becomes a LedgerError that names the file and the
next step."""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from harness.domain.disk_errors import disk_error, disk_of, refusal
from harness.domain.team_ledger import Place
from harness.errors import (
    LedgerBusyError,
    LedgerDamagedError,
    LedgerError,
    LedgerReadOnlyError,
    UsageError,
)

_BUSY = {"SQLITE_BUSY", "SQLITE_LOCKED"}
_DAMAGED = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_MISMATCH"}
_READ_ONLY = {"SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"}
_SHARED_MEMORY = {"SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMMAP"}
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota there is used up",
    errno.EFBIG: "a limit on the size of files is met, see `ulimit -f`",
}
_LOCKING = {
    "SQLITE_IOERR_LOCK",
    "SQLITE_IOERR_UNLOCK",
    "SQLITE_IOERR_RDLOCK",
    "SQLITE_PROTOCOL",
    "SQLITE_NOLFS",
}


def error_name(error: BaseException) -> str:
    """SQLite's name of the error, e.g. "SQLITE_BUSY_RECOVERY"; "" for what is not SQLite's."""
    return str(getattr(error, "sqlite_errorname", "") or "")


def _is(name: str, names: set[str]) -> bool:
    # Extended codes carry the primary one's name: SQLITE_BUSY_RECOVERY, SQLITE_CORRUPT_INDEX.
    return any(name == known or name.startswith(known + "_") for known in names)


def is_busy(error: BaseException) -> bool:
    return _is(error_name(error), _BUSY)


def is_unopenable(error: BaseException) -> bool:
    """Whether the files that SQLite makes beside the database could not be made: in a folder that
    is read-only, or on a full disk."""
    return _is(error_name(error), {"SQLITE_CANTOPEN", "SQLITE_READONLY", *_SHARED_MEMORY})


def translate(error: BaseException, path: Path) -> LedgerError:
    """The harness's error for one of SQLite's."""
    name, detail = error_name(error), str(error)
    if _is(name, _LOCKING) or (_is(name, _BUSY) and _without_locks(path)):
        return LedgerError(
            f"{path} lies on a file system that gives no locks ({detail}): {disk_of(path)}.",
            hint=(
                "Nothing was written. Put the state directory on a local disk: set XDG_STATE_HOME."
            ),
            code="ledger_no_locks",
        )
    if _is(name, _BUSY):
        return LedgerBusyError(
            f"{path} is being written by another process, which did not finish in time ({detail}).",
            hint="Nothing was written. Try again; `fuser` on the file shows who holds it.",
        )
    if _is(name, _DAMAGED):
        return damaged(path, detail)
    if _is(name, _READ_ONLY):
        return LedgerReadOnlyError(
            f"{path} cannot be written, or its folder cannot ({detail}). It lies on"
            f" {disk_of(path)}.",
            hint="Make both writable for you, or use a command that only reads.",
        )
    full = _is(name, {"SQLITE_FULL"})
    # SQLite does not tell which error of the system it met.
    refused = refusal(path.parent) if full or _is(name, {"SQLITE_IOERR"}) else None
    if full or (refused is not None and refused.errno in _FULL):
        why = _FULL[refused.errno if refused and refused.errno in _FULL else errno.ENOSPC]
        return LedgerError(
            f"{path} cannot grow: {why} ({detail}). It lies on {disk_of(path)}.",
            hint=(
                "Nothing was written. Free some space on its disk, or move the state directory to"
                " another one (XDG_STATE_HOME), and try again."
            ),
            code="ledger_disk_full",
        )
    return LedgerError(f"{path} failed: {detail}.", hint="Run `harness ledger verify`.")


def _without_locks(path: Path) -> bool:
    """SQLite takes ENOLCK for a lock that another process holds (its sqliteErrorFromPosixError)."""
    refused = refusal(path.parent)
    return refused is not None and refused.errno == errno.ENOLCK


def damaged(place: Place, detail: str) -> LedgerDamagedError:
    return LedgerDamagedError(
        f"{place} is not a ledger that can be read: {detail}. It was left as it is.",
        hint=(
            "Copy it aside, then restore a backup of it, or move it away with its anchors and run "
            "`harness ledger import` from the text form in memory/facts/."
        ),
    )


def _elsewhere(error: OSError, path: Path) -> str:
    """How the state directory is moved, where it is the one."""
    name = error.filename
    of_state = name is None or Path(os.fsdecode(name)).is_relative_to(path.parent)
    return " The state directory can be moved by XDG_STATE_HOME." if of_state else ""


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of sqlite3 and of the disk leave as LedgerErrors about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OverflowError as error:
        raise UsageError(
            f"A number is too large for {path}: {error}.", hint="Use at most 64 bits."
        ) from error
    except OSError as error:
        known = disk_error(error, [path.parent, Path.cwd()])
        if known is not None and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LedgerReadOnlyError(known.message, hint=known.hint) from error
        if known is not None and error.errno in _FULL:
            raise LedgerError(
                known.message, hint=known.hint + _elsewhere(error, path), code="ledger_disk_full"
            ) from error
        raise
