"""Files that cannot be read or written: a clear error that names the file, and nothing is
overwritten."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_samples import TickingClock, decided, full_ledger, life, open_ledger, place

from harness.errors import LedgerDamagedError, LedgerError, LedgerReadOnlyError, NotFoundError
from harness.ledger.creation import LedgerWarning
from harness.ledger.failures import translate
from harness.ledger.verify import verify

ROOT = Path(__file__).parents[2]
CASE_35 = (
    "",
    '{"experiments": [{"id": "exp-001"',
    '{"experiments": [{"id": "exp-001", "status": "done"}, {"id": null}]}',
)
BWRAP = shutil.which("bwrap")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("text", CASE_35)
def test_case_35_a_file_that_is_no_ledger_is_never_read_as_an_empty_one(tmp_path, text, read_only):
    path = tmp_path / "ledger.db"
    path.write_text(text)
    with pytest.raises(LedgerDamagedError, match=r"ledger\.db is not a ledger") as error:
        open_ledger(tmp_path, read_only=read_only)
    assert "ledger import" in error.value.hint
    assert path.read_text() == text
    assert [item.name for item in tmp_path.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("part", [0, 1, 16, 60, 100, 4096, 0.5, -1])
def test_w3_a_truncated_ledger_is_noticed_and_left_alone(tmp_path, part):
    with full_ledger(tmp_path):
        pass
    path = tmp_path / "ledger.db"
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * part) if isinstance(part, float) else part]
    path.write_bytes(cut)
    for read_only in (True, False):
        with pytest.raises(LedgerDamagedError, match=r"ledger\.db"):
            open_ledger(tmp_path, read_only=read_only)
    assert path.read_bytes() == cut
    assert verify(path, tmp_path / "anchors")[0].kind == "database"


def test_damage_in_the_middle_of_the_file_is_an_error_not_less_data(tmp_path):
    with full_ledger(tmp_path):
        pass
    path = tmp_path / "ledger.db"
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        damaged = whole[: page * 4096] + b"\xaa" * 4096 + whole[(page + 1) * 4096 :]
        path.write_bytes(damaged)
        assert verify(path, tmp_path / "anchors") != [], page
    assert path.read_bytes() == damaged


def test_another_programs_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("CREATE TABLE facts (x)")
    connection.close()
    with pytest.raises(LedgerDamagedError, match="not one of this harness"):
        open_ledger(tmp_path)


def test_a_folder_in_its_place_is_refused(tmp_path):
    (tmp_path / "ledger.db").mkdir()
    with pytest.raises(LedgerDamagedError, match="is a folder"):
        open_ledger(tmp_path)


def test_a_ledger_that_is_gone_is_not_made_anew(tmp_path):
    with full_ledger(tmp_path):
        pass
    (tmp_path / "ledger.db").unlink()
    for _ in range(2):
        with pytest.raises(
            LedgerDamagedError, match=r"is gone, but .*anchors names facts of writer alice"
        ):
            open_ledger(tmp_path)
    assert not (tmp_path / "ledger.db").exists()


def test_reading_makes_nothing(tmp_path):
    with pytest.raises(NotFoundError, match="There is no ledger") as error:
        open_ledger(tmp_path, read_only=True)
    assert error.value.code == "ledger_missing"
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_ledger_appends_nothing(tmp_path):
    with full_ledger(tmp_path) as ledger:
        position = ledger.position()
    with open_ledger(tmp_path, read_only=True) as reader:
        with pytest.raises(LedgerReadOnlyError, match="reading only"):
            life(reader)
        assert reader.position() == position


def test_a_full_disk_says_so_and_loses_nothing(tmp_path):
    with full_ledger(tmp_path) as ledger:
        with ledger.connection() as connection:  # the one that is used again
            connection.value("PRAGMA max_page_count = 1")  # the present size when that is larger
        before = ledger.position()
        with pytest.raises(
            LedgerError, match=r"ledger\.db cannot grow: the disk is full"
        ) as error:
            decided(ledger, None, context="x" * 2_000_000)
        assert error.value.code == "ledger_disk_full"
        acknowledged = ledger.position()
        assert acknowledged >= before
    with open_ledger(tmp_path) as ledger:
        assert ledger.position() == acknowledged
    assert verify(place(tmp_path), tmp_path / "anchors") == []


PROGRAM = """
import sys
from pathlib import Path
from harness.clock import SystemClock
from harness.errors import HarnessError
from harness.ledger import Ledger
folder = Path(sys.argv[1])
try:
    reading, path = sys.argv[2] == "r", folder / "ledger.db"
    with Ledger.open(path, anchors=folder / "a", clock=SystemClock(), read_only=reading, busy_seconds=1) as ledger:
        print(len(ledger.experiments()))
        if not reading:
            while True:
                ledger.open_experiment(hypothesis="x" * 20000, parent=None, by="me")
except HarnessError as error:
    print(type(error).__name__, error.code, error.message)
"""


PROGRAM_ON_A_FULL_DISK = """
import os, shutil
shutil.copytree({state!r}, {disk!r}, dirs_exist_ok=True)
with open({disk!r} + "/filler", "wb", buffering=0) as stream:
    for size in (65536, 512, 1):
        try:
            while True:
                stream.write(bytes(size))
        except OSError:
            pass
"""


def sandboxed(folder, mode, *options, before=""):
    command = [
        BWRAP,
        "--dev-bind",
        "/",
        "/",
        *options,
        sys.executable,
        "-c",
        before + PROGRAM,
        str(folder),
        mode,
    ]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(BWRAP is None, reason="bwrap makes the read-only folder")
def test_case_34_a_read_only_folder(tmp_path):
    state, empty = tmp_path / "state", tmp_path / "empty"
    empty.mkdir()
    with full_ledger(state):
        pass
    read_only = ("--ro-bind", str(tmp_path), str(tmp_path))
    assert sandboxed(state, "r", *read_only) == "3\n"
    assert sandboxed(state, "w", *read_only).startswith("LedgerReadOnlyError ledger_read_only")
    assert str(empty) in sandboxed(empty, "w", *read_only)
    assert "LedgerReadOnlyError" in sandboxed(empty / "further", "w", *read_only)
    assert list(empty.iterdir()) == []


@pytest.mark.skipif(BWRAP is None, reason="bwrap makes the small disk")
def test_a_disk_that_fills_up(tmp_path):
    out = sandboxed(tmp_path, "w", "--size", "2000000", "--tmpfs", str(tmp_path))
    assert "LedgerError ledger_disk_full" in out
    assert str(tmp_path / "ledger.db") in out


@pytest.mark.skipif(BWRAP is None, reason="bwrap makes the small disk")
def test_a_full_disk_is_named_and_what_it_holds_is_read(tmp_path):
    state, disk = tmp_path / "state", tmp_path / "disk"
    with full_ledger(state):
        pass
    disk.mkdir()
    # The ledger lies on a disk of its own, which is filled before it is opened.
    filled = PROGRAM_ON_A_FULL_DISK.format(state=str(state), disk=str(disk))
    small = ("--size", "4000000", "--tmpfs", str(disk))
    assert sandboxed(disk, "r", *small, before=filled) == "3\n"
    out = sandboxed(disk, "w", *small, before=filled)
    assert "LedgerError ledger_disk_full" in out
    assert str(disk / "ledger.db") in out


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("SQLITE_IOERR_LOCK", LedgerError, "gives no locks"),
        ("SQLITE_PROTOCOL", LedgerError, "gives no locks"),
        ("SQLITE_READONLY_DIRECTORY", LedgerReadOnlyError, "cannot be written"),
        ("SQLITE_CORRUPT_INDEX", LedgerDamagedError, "not a ledger that can be read"),
        ("SQLITE_FULL", LedgerError, "the disk is full"),
        ("SQLITE_NEW_ONE", LedgerError, "failed"),
    ],
)
def test_case_36_sqlites_errors_become_ours(name, kind, words):
    original = sqlite3.OperationalError("it went wrong")
    original.sqlite_errorname = name
    error = translate(original, Path("/some/ledger.db"))
    assert type(error) is kind
    assert words in error.message
    assert "/some/ledger.db" in error.message
    assert error.hint


def test_case_36_a_network_disk_gets_a_warning_and_the_classic_journal(tmp_path, monkeypatch):
    with full_ledger(tmp_path):
        pass
    monkeypatch.setattr("harness.ledger.creation.network_type", lambda path: "nfs4")
    with pytest.warns(LedgerWarning, match=r"ledger\.db lies on a network file system \(nfs4\)"):
        ledger = open_ledger(tmp_path, clock=TickingClock())
    with ledger:
        life(ledger)
        assert not (tmp_path / "ledger.db-wal").exists()
    assert sqlite3.connect(tmp_path / "ledger.db").execute("PRAGMA journal_mode").fetchone() == (
        "delete",
    )
    monkeypatch.undo()
    with open_ledger(tmp_path) as ledger:
        assert len(ledger.experiments()) == 4
        assert (tmp_path / "ledger.db-wal").exists()
