"""`~/.claude.json` is copied in and merged back: nothing that either side changed is lost."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.judge.own_file import NAME, copied_in, put_back


class Places:
    def __init__(self, base: Path) -> None:
        self.home, self.folder, self.inside = base / "home", base / "s", base / "s/home"
        for path in (self.home, self.inside):
            path.mkdir(parents=True)

    def write(self, place: Path, value: Any) -> None:
        (place / NAME).write_text(json.dumps(value), "utf-8")

    def own(self) -> Any:
        return json.loads((self.home / NAME).read_text("utf-8"))

    def start(self) -> None:
        copied_in(self.home, self.folder, self.inside)

    def end(self) -> None:
        put_back(self.home, self.folder, self.inside)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_both_sides_are_kept(places: Places) -> None:
    places.write(places.home, {"kept": 1, "n": 1, "gone": 1, "out": 1, "p": {"/a": {"t": 1}}})
    places.start()
    inside = {"kept": 1, "n": 2, "out": 1, "p": {"/a": {"t": 1, "mcp": {}}}, "new": [1]}
    places.write(places.inside, inside)
    places.write(places.home, {"kept": 1, "n": 1, "gone": 1, "p": {"/a": {"t": 1}, "/b": {}}})
    places.end()
    expected = {"kept": 1, "n": 2, "p": {"/a": {"t": 1, "mcp": {}}, "/b": {}}, "new": [1]}
    assert places.own() == expected
    assert (places.home / NAME).stat().st_mode & 0o777 == 0o600
    assert not (places.home / f"{NAME}.lock").exists()


def test_what_nobody_changed_is_not_written(places: Places) -> None:
    places.write(places.home, {"n": 1})
    before = (places.home / NAME).stat().st_ino
    places.start()
    places.end()
    assert (places.home / NAME).stat().st_ino == before


def test_the_first_session_of_a_home_leaves_its_file(places: Places) -> None:
    places.start()
    places.write(places.inside, {"n": 1})
    places.end()
    assert places.own() == {"n": 1}


@pytest.mark.parametrize("inside", [b"no json", b"[" * 100_000, b""])
def test_a_damaged_copy_changes_nothing(places: Places, inside: bytes) -> None:
    places.write(places.home, {"n": 1})
    places.start()
    (places.inside / NAME).write_bytes(inside)
    places.end()
    assert places.own() == {"n": 1}


def test_a_link_that_was_made_inside_is_not_followed(places: Places, tmp_path: Path) -> None:
    """Else an agent would read through it what its sandbox hides."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"label": 1}')
    places.write(places.home, {"n": 1})
    places.start()
    (places.inside / NAME).unlink()
    (places.inside / NAME).symlink_to(secret)
    places.end()
    assert places.own() == {"n": 1}


def test_a_damaged_file_of_the_person_is_left_as_it_is(places: Places) -> None:
    places.write(places.home, {"n": 1})
    places.start()
    places.write(places.inside, {"n": 2})
    (places.home / NAME).write_text("half a")
    places.end()
    assert (places.home / NAME).read_text() == "half a"


def test_the_lock_of_the_cli_is_waited_for(places: Places) -> None:
    places.write(places.home, {"n": 1})
    places.start()
    places.write(places.inside, {"n": 2})
    lock = places.home / f"{NAME}.lock"
    lock.mkdir()
    ending = threading.Thread(target=places.end)
    ending.start()
    ending.join(timeout=0.3)
    assert places.own() == {"n": 1}
    lock.rmdir()
    ending.join(timeout=10)
    assert places.own() == {"n": 2}
