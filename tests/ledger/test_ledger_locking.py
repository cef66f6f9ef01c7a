"""Which disks count as shared, and waiting for a lock."""

import sqlite3
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.ledger.creation import network_type
from harness.ledger.database import retry_busy
from harness.ledger.failures import is_busy

MOUNTS = r"""/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/me/scratch xfs rw 0 0
//nas/x /mnt/with\040space cifs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
broken line
tmpfs /home/me/scratch/deep tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/x", None),
        ("/home/you/.local/state", "nfs4"),
        ("/home/me/scratch/state", None),
        ("/homestead", None),
        ("/mnt/with space/state", "cifs"),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/home/me/scratch/deep/er", None),
    ],
)
def test_network_type(path, expected):
    assert network_type(Path(path), MOUNTS) == expected


def busy(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("locked")
    error.sqlite_errorname = name
    return error


def test_retry_goes_on_until_it_works_or_the_time_is_over():
    clock, left = (
        ManualClock(),
        [busy("SQLITE_BUSY"), busy("SQLITE_BUSY_RECOVERY"), busy("SQLITE_LOCKED")],
    )

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    assert retry_busy(attempt, is_busy=is_busy, clock=clock, seconds=5.0) == "done"
    assert 0.006 <= clock.monotonic() <= 0.15


def test_retry_gives_up_with_the_last_error_and_passes_others_on():
    clock = ManualClock()
    tries = []

    def always() -> None:
        tries.append(1)
        raise busy("SQLITE_BUSY")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        retry_busy(always, is_busy=is_busy, clock=clock, seconds=1.0)
    assert clock.monotonic() >= 1.0
    assert len(tries) > 10

    def other() -> None:
        tries.append(2)
        raise busy("SQLITE_CORRUPT")

    with pytest.raises(sqlite3.OperationalError):
        retry_busy(other, is_busy=is_busy, clock=clock, seconds=1.0)
    assert tries.count(2) == 1
