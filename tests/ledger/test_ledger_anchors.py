"""An anchor only ever moves forward, whoever comes last."""

import threading
from pathlib import Path

import pytest

from harness.files import atomic_write
from harness.ledger import anchors
from harness.ledger.anchors import Anchor, read_anchor, write_anchor


def anchor(seq: int) -> Anchor:
    return Anchor(writer="w", seq=seq, hash=f"hash of {seq}")


def test_a_newer_anchor_that_came_between_compare_and_write_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "anchors"
    write_anchor(folder, anchor(4))
    other = threading.Thread(target=write_anchor, args=(folder, anchor(6)))

    def slow_write(path: Path, data: bytes, *, durable: bool) -> None:
        if (
            b"hash of 5" in data
        ):  # 4 was read, 5 is not written yet: now another process is done with 6
            other.start()
            other.join(timeout=0.5)
        atomic_write(path, data, durable=durable)

    monkeypatch.setattr(anchors, "atomic_write", slow_write)
    write_anchor(folder, anchor(5))
    other.join(timeout=10)
    assert read_anchor(folder, "w") == anchor(6)


def test_an_older_anchor_is_not_written(tmp_path: Path) -> None:
    write_anchor(tmp_path, anchor(6))
    write_anchor(tmp_path, anchor(5))
    assert read_anchor(tmp_path, "w") == anchor(6)
    assert anchors.anchored_writers(tmp_path) == ["w"]
