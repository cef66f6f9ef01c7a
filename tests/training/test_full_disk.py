"""Checkpoints on a disk of a few megabytes that is really full, and saves that are killed on it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

MEGABYTE = 1_000_000
PRELUDE = """
import os, random, signal, sys, time, warnings
from pathlib import Path
import torch
from harness.errors import RunError
from harness.training.checkpoint_store import CheckpointStore
from tests.training.test_checkpointer import GOAL, Checkpointer, log_in, names, parts, pointed

folder = Path(sys.argv[1])
root = folder / "checkpoints"
torch.set_num_threads(1)

def made():
    held = parts(10, 2, 7, width=40_000)
    for group in held["optimizer"].param_groups[0]["params"]:
        group.grad = torch.ones_like(group)
    held["optimizer"].step()
    return Checkpointer(log_in(folder), **held, goal=GOAL)
"""
FULL = """
keeper = made()
keeper.save(0, kept=True)
ballast = folder / "ballast"
ballast.write_bytes(b"x" * 3_000_000)
before = {path: path.read_bytes() for path in (root / "epoch-0000").iterdir()}
try:
    keeper.save(1)
except RunError as error:
    assert error.code == "checkpoint_not_saved", error
    assert "No space left on device" in error.message or "MB are free" in error.message, error.message
    assert "Earlier checkpoints are unchanged" in error.message, error.message
    assert "harness train EXP --resume" in error.hint and "Free disk space" in error.hint, error.hint
else:
    raise AssertionError("it fitted")
assert names(folder) == ["epoch-0000"], names(folder)
assert {path: path.read_bytes() for path in (root / "epoch-0000").iterdir()} == before
assert pointed(root, "latest") == "epoch-0000"
again = made()
assert again.resume().epoch == 1
ballast.unlink()
keeper.save(1)
assert pointed(root, "latest") == "epoch-0001"
at = made().resume()
assert (at.epoch, at.exact) == (2, True)
print("went on")
"""
KILLED = """
drawn, epoch = random.Random(26), 0
keeper = made()
begun = time.monotonic()
keeper.save(epoch)
usual = time.monotonic() - begun
partial = 0
for moment in range(10):
    child = os.fork()
    if not child:
        keeper.save(epoch + 1)
        os._exit(0)
    time.sleep(drawn.uniform(0.0, 1.2 * usual))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    partial += bool(list(root.glob("*.partial")))
    whole = CheckpointStore(root).complete()
    assert whole and all(item.problem() is None for item in whole), moment
    assert (root / "latest").read_text().strip() in {item.folder.name for item in whole}, moment
    at = keeper.resume()
    assert at.epoch in (epoch + 1, epoch + 2) and at.exact, (moment, at)
    assert not list(root.glob("*.partial")), moment
    epoch = at.epoch
    keeper.save(epoch)  # two fit the disk, not two and a half
print(f"went on, {partial} of 10 saves cut in their middle")
assert partial
"""


def on_a_small_disk(folder: Path, size: int, program: str) -> str:
    """What `program` prints when `folder` is a file system of `size` bytes; skips where none can be
    made here."""
    code = [sys.executable, "-W", "ignore", "-c", PRELUDE + program, str(folder)]
    mount = 'mount -t tmpfs -o size="$0" none "$1" && shift && exec "$@"'
    ways = [
        ["bwrap", "--dev-bind", "/", "/", "--size", str(size), "--tmpfs", str(folder), "--"],
        ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(size), str(folder)],
    ]
    for way in ways:
        if (
            shutil.which(way[0])
            and subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0
        ):
            done = subprocess.run(
                [*way, *code], capture_output=True, text=True, cwd=Path.cwd(), check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout
    pytest.skip("neither bwrap nor unshare may mount a small tmpfs here")


def test_case_26_a_full_disk_leaves_the_old_one_and_goes_on_when_there_is_space(
    tmp_path: Path,
) -> None:
    assert on_a_small_disk(tmp_path, 8 * MEGABYTE, FULL) == "went on\n"


def test_case_26_saves_killed_in_their_middle_leave_a_whole_one_and_no_disk_used(
    tmp_path: Path,
) -> None:
    assert on_a_small_disk(tmp_path, 7 * MEGABYTE, KILLED).startswith("went on")
