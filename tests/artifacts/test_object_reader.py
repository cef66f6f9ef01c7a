"""Objects of a repository, read by one git process: one that ends early is an error with a hint."""

import sys
from pathlib import Path

import pytest

from harness.artifacts import git
from harness.artifacts.git import GitFailedError, object_reader

ANSWERS = "import sys; sys.stdin.readline(); print({!r}, end='', flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        "pass",
        ANSWERS.format("name blob 10\nshort"),
        ANSWERS.format("name missing\n"),
        ANSWERS.format(""),
    ],
)
def test_bytes_that_do_not_come_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(git, "git_line", lambda *_: [sys.executable, "-I", "-S", "-c", program])
    with object_reader(tmp_path) as read:
        for _ in range(2):  # the second one finds the pipe broken
            with pytest.raises(GitFailedError, match="not all bytes of the object name") as failed:
                read("name")
    assert "git -C" in failed.value.hint


def test_bytes_that_come_are_the_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ANSWERS.format("name blob 4\na\nb\n\n")
    monkeypatch.setattr(git, "git_line", lambda *_: [sys.executable, "-I", "-S", "-c", program])
    with object_reader(tmp_path) as read:
        assert read("name") == b"a\nb\n"
