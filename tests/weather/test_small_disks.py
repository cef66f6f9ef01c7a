"""A full or read-only disk below the project, or below the state: commands that look still answer,
those that write end with a sentence that names that disk and exit 3; with room, all goes on."""

import json
from pathlib import Path

import pytest

from tests.centroids import TRAIN
from tests.cli.journey import Again, Journey
from tests.weather.disks import FILL, FREE, Told, needs_bwrap, on_disk

STEPS = (
    ("init", "--hooks", "none"),
    ("plan", "approve"),
    ("experiment", "new", "--hypothesis", "centroids are enough"),
)
LOOKS = (
    ("status", "--json"),
    ("watch", "exp-0001", "--once"),
    ("experiment", "list", "--json"),
    ("ledger", "verify", "--json"),
)
WRITES = (
    ("train", "exp-0001", "--json"),
    ("gate", "check", "exp-0001", "--json"),
    ("handoff", "--note", "Go on.", "--json"),
    ("experiment", "result", "exp-0001", "--summary", "It learned.", "--json"),
    ("try", "another idea", "--json"),
)
ROOM = 30_000_000
SAID = {
    "full": ("disk_full", "ledger_disk_full"),
    "read-only": ("disk_read_only", "ledger_read_only"),
}


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("small"), *STEPS)


def place(again: Again, which: str) -> tuple[Journey, Path, Path]:
    """The project, the folder that lies on the disk, and where that lies once more."""
    journey = again.journey()
    disk = journey.root if which == "project" else journey.home / "state"
    kept = journey.root.parents[1] / "kept"
    return journey, disk, kept / disk.relative_to(journey.root.parent)


def refused(answers: list[Told], disk: Path, how: str) -> None:
    for told in answers:
        said = told.error
        assert (told.code, said.get("code") in SAID[how]) == (3, True), told
        assert f"{disk}/" in said["message"], told
        assert f"It lies on the disk {disk} (" in said["message"], told
        assert said["hint"], told
        assert "Traceback" not in told.err


@needs_bwrap
@pytest.mark.parametrize("which", ["project", "state"])
def test_a_full_disk(again: Again, which: str) -> None:
    journey, disk, kept = place(again, which)
    after = (*LOOKS[2:], WRITES[0], WRITES[2], LOOKS[-1])
    small = ("--size", str(ROOM), "--tmpfs", str(disk))
    steps = [(FILL,), *LOOKS, *WRITES, (FREE,), *after]
    answers = on_disk(journey, disk, kept, steps, *small)
    looks, writes, free = answers[:4], answers[4:9], answers[9:]
    assert [told.code for told in looks] == [0] * 4, looks
    refused(writes, disk, "full")
    assert [told.code for told in free] == [0] * 5, free
    before, later = (json.loads(told.out)["experiments"] for told in (looks[2], free[0]))
    assert [one["experiment"] for one in before] == ["exp-0001"]
    assert [one["hypothesis"] for one in later][:1] == [before[0]["hypothesis"]]


FILLS = """\
    filled = log.checkpoint_dir / "filled"
    if log.checkpoint_dir.parent.name == "run-01" and not filled.exists():
        filled.touch()
        with open(log.checkpoint_dir / "big.bin", "wb", buffering=0) as stream:
            for size in (65536, 512, 1):
                try:
                    while True:
                        stream.write(bytes(size))
                except OSError:
                    print("full")
"""


@needs_bwrap
def test_a_training_that_fills_the_disk_is_resumed_where_there_is_room(again: Again) -> None:
    journey, disk, kept = place(again, "project")
    line = "    log.epoch(0,"
    assert line in TRAIN
    (kept / "train.py").write_text(TRAIN.replace(line, FILLS + line))
    big = ".harness/experiments/exp-0001/runs/run-01/checkpoints/big.bin"
    steps = [WRITES[0], *LOOKS, (FREE, big), (*WRITES[0], "--resume"), LOOKS[-1]]
    try:
        answers = on_disk(journey, disk, kept, steps, "--size", str(ROOM), "--tmpfs", str(disk))
    finally:
        (kept / "train.py").write_text(TRAIN)
    refused(answers[:1], disk, "full")
    assert answers[0].err == ""
    assert [told.code for told in answers[1:5]] == [0] * 4, answers
    assert [told.code for told in answers[5:]] == [0, 0], answers
    assert {run["status"] for run in json.loads(answers[5].out)["runs"]} == {"completed"}


@needs_bwrap
@pytest.mark.parametrize("which", ["project", "state"])
def test_a_read_only_disk(again: Again, which: str) -> None:
    journey, disk, kept = place(again, which)
    read_only = ("--ro-bind", str(kept), str(disk))
    answers = on_disk(journey, disk, None, [*LOOKS, *WRITES], *read_only)
    assert [told.code for told in answers[:4]] == [0] * 4, answers
    refused(answers[4:], disk, "read-only")
    for words in (("handoff", "--note", "Go on."), ("ledger", "verify")):
        assert journey.harness(*words).exit_code == 0, words
