"""The places that a command names, for finding the projects that judge it."""

from pathlib import Path

import pytest

from harness.guard.hooks.mentioned_places import MOST, mentioned


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("here/sub", "other/deep", "with blank"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat /a/b.txt", "/a/b.txt"),
        ("cat ../other/x", "{}/other/x"),
        ("cd ../other && rm x/y", "{}/other/x/y"),
        ("cd ..; cd other; rm deep", "{}/other/deep"),
        ("git -C ../other rm a/b", "{}/other/a/b"),
        ("make -C../other", "{}/other"),
        ("tool --into=../other/x", "{}/other/x"),
        ("bash -c 'cd ../other; rm a/b'", "{}/other/a/b"),
        ("echo x >../other/y", "{}/other/y"),
        ("cat '../with blank/x'", "{}/with blank/x"),
        ("cat ../with\\ blank/x", "{}/with blank/x"),
        ("X=../other/x", "{}/other/x"),
        ("cat <<E\n../other/x\nE", "{}/other/x"),
        ("unclosed ' ../other/x", "{}/other/x"),
    ],
)
def test_a_command_names(folder: Path, command: str, named: str):
    found = mentioned("Bash", {"command": command}, str(folder / "here"))
    assert named.format(folder) in found
    assert found[0] == str(folder / "here")


def test_arguments_of_a_tool_name(folder: Path):
    given = {"files": [{"path": "../other/x"}, "/a/b"], "text": "some\nlines /not/a/path", "n": 3}
    found = mentioned("mcp__x__y", given, str(folder / "here"))
    assert {str(folder / "other/x"), "/a/b"} <= set(found)
    assert "/not/a/path" not in found


@pytest.mark.parametrize(
    "given",
    [
        {"path": "other/x"},
        {"files": {"other/x": "text"}},
        {"a": "first\nother/x\n"},
        {"uri": "FILE://localhost{}/other/x"},
        {"uri": "other%2Fx"},
        {"steps": [{"run": "rm other/x"}]},
        {"commandLine": ["rm", "other/x"]},
        {"program": "rm", "args": ["other/x"]},
        {"code": "open('other/x', 'w')"},
    ],
)
def test_arguments_of_any_form_name_from_each_base(folder: Path, given: dict):
    given = {
        key: value.format(folder) if isinstance(value, str) else value
        for key, value in given.items()
    }
    found = mentioned("mcp__x__y", given, str(folder / "here"), str(folder))
    assert str(folder / "other/x") in found


@pytest.mark.parametrize(
    "given", [{}, {"command": None}, {"command": 3}, {"command": "\0 a/\ud800"}]
)
def test_nothing_that_names_a_place(folder: Path, given: dict):
    assert mentioned("Bash", given, str(folder)) == [str(folder)]


def test_a_command_of_any_size_is_looked_through(folder: Path):
    long = " ".join(f"a/{number}" for number in range(3 * MOST))
    assert len(mentioned("Bash", {"command": long}, str(folder))) <= MOST + 1
