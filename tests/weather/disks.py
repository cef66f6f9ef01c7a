"""A project, or its state, on a small disk of its own that is full or read-only."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.journey import Journey

BWRAP = shutil.which("bwrap")
needs_bwrap = pytest.mark.skipif(BWRAP is None, reason="bwrap makes the small disk")
FILL, FREE = "FILL", "FREE"
"""Steps that are no commands: the disk has no room left; it has again, without the named file."""
INSIDE = """
import json, os, subprocess, sys
given = json.load(sys.stdin)
disk = given["disk"]
if given["whole"]:
    import shutil
    shutil.copytree(given["whole"], disk, dirs_exist_ok=True, symlinks=True)

def fill():
    with open(os.path.join(disk, "ballast"), "wb", buffering=0) as stream:
        for size in (65536, 512, 1):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                pass

def told(words):
    command = [sys.executable, "-m", "harness", *words]
    done = subprocess.run(command, cwd=given["root"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

answers = []
for step in given["steps"]:
    if step == ["FILL"]:
        fill()
    elif step[0] == "FREE":
        os.unlink(os.path.join(disk, *step[1:] or ["ballast"]))
    else:
        answers.append(told(step))
print(json.dumps(answers))
"""


@dataclass(frozen=True)
class Told:
    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def error(self) -> dict[str, Any]:
        """Code, message and hint of a `--json` answer; empty when there is none."""
        found: dict[str, Any] = json.loads(self.out).get("error", {}) if self.out else {}
        return found


def on_disk(
    journey: Journey, disk: Path, kept: Path | None, steps: list[tuple[str, ...]], *options: str
) -> list[Told]:
    """What the commands in `steps` say while `disk` is a file system of its own, made by `options`
    of bwrap and first filled with what lies in `kept`. FILL and FREE among them take and give all
    its room."""
    assert BWRAP is not None
    given = {"disk": str(disk), "whole": kept and str(kept), "root": str(journey.root)}
    done = subprocess.run(
        [BWRAP, "--dev-bind", "/", "/", *options, "--", sys.executable, "-c", INSIDE],
        input=json.dumps({**given, "steps": steps}),
        env=journey.environment(PYTHONPATH=str(Path(__file__).parents[2])),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verbs = [step for step in steps if step[0] not in (FILL, FREE)]
    return [
        Told(words, answer["code"], answer["out"], answer["err"])
        for words, answer in zip(verbs, json.loads(done.stdout), strict=True)
    ]
