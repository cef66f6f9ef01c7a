"""What a replica does right now, in a file that its crew reads. Standard library only."""

import json
import os
import re
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.files import atomic_write

FILE = "replica.json"
GO = "go"
"""Beside the replicas' folders: all of them are there, the first round may begin."""
SAMPLES = "samples.json"
"""How often each row was trained on, as `Samples.report` gives it."""
_SECONDS = 0.2
_CHANGES = 50
"""Of the state, the newest so many: some last for less than two looks of the crew."""
_ROUND = re.compile(r"round-(\d+)\.pt")


class State(StrEnum):
    STARTING = "starting"
    """Its program has begun, and has not reached DiLoCo."""
    WAITING = "waiting for quorum"
    HEALING = "healing"
    """It takes over weights and optimizers of another replica."""
    TRAINING = "training"
    STALLED = "stalled"
    """It is alive and makes no step. Said by the crew: a heartbeat is no progress."""
    STOPPED = "stopped"
    """Its process ended before its training did."""
    ENDED = "ended"


class Standing:
    """Writes the file at each change of state, and a few times a second as steps go on."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._state = State.STARTING
        self._due = 0.0
        self._changes: list[tuple[int, State, int]] = []

    def tell(self, state: State, *, rounds: int, steps: int) -> None:
        now = time.monotonic()
        if state is self._state and now < self._due:
            return
        if state is not self._state:
            number = self._changes[-1][0] + 1 if self._changes else 1
            self._changes = [*self._changes[1 - _CHANGES :], (number, state, rounds)]
        self._state, self._due = state, now + _SECONDS
        told = {"state": state, "round": rounds, "step": steps, "pid": os.getpid()}
        told["changes"] = self._changes
        atomic_write(self._path, json.dumps(told), durable=False)


def read_standing(folder: Path) -> Mapping[str, Any]:
    """{state, round, step, pid, changes}; {} of a replica that has not told any."""
    try:
        told = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def kept_rounds(folder: Path) -> set[int]:
    """Whose state is kept there."""
    found = (_ROUND.fullmatch(path.name) for path in folder.glob("round-*.pt"))
    return {int(match.group(1)) for match in found if match}
