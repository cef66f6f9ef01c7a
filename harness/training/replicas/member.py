"""One replica as its crew sees it: process, output, rows, state."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from harness.training.replicas.merge import ReplicaRows
from harness.training.replicas.standing import FILE, State, kept_rounds, read_standing

_LINES = 40


class Member:
    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder
        self.process: subprocess.Popen[bytes] | None = None
        self.state = State.STOPPED
        self.round = 0
        self.since = time.monotonic()
        """When it was last seen to go on."""
        self.stepped = False
        """Whether it ever made a step: a program that never did fails again."""
        self.given_up = False
        self.checkpoints: list[Mapping[str, Any]] = []
        self.last_lines: deque[str] = deque(maxlen=_LINES)
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = ReplicaRows(folder / "metrics.jsonl")
        self._step, self._change = -1, 0
        self._copying: list[threading.Thread] = []

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def kept(self) -> set[int]:
        return kept_rounds(self.folder)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Raises OSError."""
        (self.folder / FILE).unlink(missing_ok=True)
        self.last_lines.clear()
        self._step, self._change, self.state = -1, 0, State.STARTING
        self.round = 0
        self.since = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._copying = [
            self._copied(self.process.stdout, sys.stdout.fileno(), None),
            self._copied(self.process.stderr, sys.stderr.fileno(), self.last_lines),
        ]

    def look(self, stalled_s: float) -> list[tuple[State, int]]:
        """Take in what it told; `state` says STALLED when it has made no step for so long. Returns
        the states that it went through since the last look, each with its round."""
        told = read_standing(self.folder)
        step, state = told.get("step", -1), State(told.get("state", State.STARTING))
        self.round = told.get("round", self.round)
        self.stepped = self.stepped or step > 0
        now = time.monotonic()
        if step != self._step or (state is not self.state and self.state is not State.STALLED):
            self._step, self.since = step, now
        # Who waits for others makes no step either, and is not to blame.
        waits = state is State.WAITING
        is_stalled = not waits and now - self.since > stalled_s
        changes = [each for each in told.get("changes", ()) if each[0] > self._change]
        self._change = changes[-1][0] if changes else self._change
        self.state = State.STALLED if is_stalled else state
        news = [(State(name), at) for _, name, at in changes]
        return [*news, (State.STALLED, self.round)] if is_stalled else news

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None and self.alive:
            self.process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """For its end, and for its last lines."""
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._copying:
            thread.join(1.0)

    def _copied(self, stream: IO[bytes], target: int, last: deque[str] | None) -> threading.Thread:
        """Lines with the replica's number before them: those of several come mixed."""
        head = f"[replica {self.number}] ".encode()

        def copy() -> None:
            with stream:
                for line in stream:
                    os.write(target, head + line)
                    if last is not None:
                        last.append(line.decode("utf-8", "replace").rstrip())

        thread = threading.Thread(target=copy, name=head.decode(), daemon=True)
        thread.start()
        return thread
