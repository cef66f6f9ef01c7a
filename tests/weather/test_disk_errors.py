"""What a disk refuses is a sentence that names the path, its disk and the next step: exit 3, or 2
for what lies in a file's place."""

import errno
import os
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.domain import disk_errors
from harness.domain.disk_errors import disk_error, written_to
from harness.files import atomic_write, lock

NAMED = {
    errno.ENOSPC: ("disk_full", 3, "Free some space"),
    errno.EDQUOT: ("disk_quota", 3, "Your quota"),
    errno.EROFS: ("disk_read_only", 3, "mounted read-only"),
    errno.ENOLCK: ("disk_no_locks", 3, "XDG_STATE_HOME"),
    errno.EFBIG: ("file_too_large", 3, "ulimit -f"),
    errno.EIO: ("disk_failed", 3, "The disk fails"),
    errno.ESTALE: ("disk_failed", 3, "The network disk is gone"),
    errno.EACCES: ("path_forbidden", 3, "the right to it"),
    errno.EISDIR: ("path_not_a_file", 2, "Move away"),
    errno.ENOTDIR: ("path_not_a_file", 2, "Move away"),
    errno.ENXIO: ("path_not_a_file", 2, "Move away"),
}


@pytest.mark.parametrize("number", NAMED, ids=lambda number: errno.errorcode[number])
def test_an_error_of_a_disk_names_the_path_and_what_to_do(number: int, tmp_path: Path) -> None:
    code, exit_code, hint = NAMED[number]
    path = tmp_path / "not there" / "x.json"
    error = disk_error(OSError(number, os.strerror(number), str(path)), [])
    assert error is not None
    assert (error.code, error.exit_code) == (code, exit_code)
    assert str(path) in error.message
    assert hint in error.hint
    if exit_code == 3:
        assert "It lies on the disk /" in error.message
        assert "MB free)" in error.message


def test_a_full_disk_is_found_where_the_error_names_no_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    monkeypatch.chdir(project)
    environment = {"XDG_STATE_HOME": str(state), "TMPDIR": str(tmp_path)}
    places = written_to(environment)
    monkeypatch.setattr(disk_errors, "_mount", lambda path: path)
    free = {state: 0}
    monkeypatch.setattr(disk_errors, "_free", lambda path: free.get(path, 10**9))
    full = disk_error(OSError(errno.ENOSPC, "No space left on device"), places)
    assert full is not None
    assert full.message.endswith(f"It lies on the disk {state} (0 MB free).")
    quota = disk_error(OSError(errno.EDQUOT, "Disk quota exceeded"), places)
    assert quota is not None
    assert f"{project} (1,000 MB free) or the disk {state}" in quota.message


def test_other_errors_are_no_disks(tmp_path: Path) -> None:
    assert disk_error(OSError("no number"), []) is None
    assert disk_error(OSError(errno.ECONNREFUSED, "refused"), []) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_write_that_a_disk_refuses_leaves_the_old_file_and_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "a.json"
    atomic_write(path, "old")

    def refused(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match=r"a\.json") as caught:
        atomic_write(path, "new")
    assert caught.value.filename == str(path)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]


def test_a_disk_without_locks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("harness.files.fcntl.flock", none)
    with pytest.raises(OSError, match=r"a\.lock") as caught, lock(tmp_path / "a.lock"):
        pass
    known = disk_error(caught.value, [])
    assert known is not None
    assert known.code == "disk_no_locks"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EISDIR])
def test_a_command_ends_with_the_sentence_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    number: int,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "x"))

    monkeypatch.setattr("harness.cli.main.harness.main", refused)
    with pytest.raises(SystemExit) as stopped:
        main(["status"])
    said = capsys.readouterr().err
    assert stopped.value.code == NAMED[number][1]
    assert str(tmp_path / "x") in said
    assert "Traceback" not in said
