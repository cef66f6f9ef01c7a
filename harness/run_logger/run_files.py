"""The two files that a run's logger writes: metrics.jsonl and training_status.json."""

import contextlib
import itertools
import json
import os
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import (
    dataclass,
    fields,
)
from pathlib import Path
from typing import Any

from harness.domain import variables
from harness.domain.training_status import TrainingStatus
from harness.files import (
    atomic_write,
    pretty_json,
    set_aside,
)

MOST_METRICS = 200
_TAIL_BYTES = 64 * 1024
_OWN = frozenset({"run", "seed", "attempt", "status", "updated_at", "error", "_latest"})
"""Fields that a new attempt sets itself."""


def new_folder(name: str | None, *, make: bool, again: bool = False) -> Path:
    """The folder of an unregistered run, below the working directory, or below that of temporary
    files where nothing can be written there. `name`: what its processes share; None: a new one.
    `again`: they were started once more, and go on in theirs."""
    # Absolute: training may change the working directory.
    base = Path(variables.UNREGISTERED).absolute()
    own = time.strftime("%Y%m%d-%H%M%S") if name is None else _not_ended(base, name, again)
    if not make:
        return base / own
    try:
        return _made(base, own, shared=name is not None)
    except OSError:
        return _made(Path(tempfile.mkdtemp(prefix=f"{base.name}-")), own, shared=True)


def _not_ended(base: Path, name: str, again: bool) -> str:
    """All processes of a launch choose alike: none starts when the first has ended. One parent,
    e.g. a job's script, may start several launches, one after the other."""
    last = name
    for number in itertools.count(1):
        own = name if number == 1 else f"{name}-{number}"
        if not (base / own).exists():
            return last if again else own
        if not again and not _has_ended(base / own):
            return own
        last = own
    raise AssertionError("count ends nowhere")


def _has_ended(folder: Path) -> bool:
    try:
        status = json.loads((folder / "training_status.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(status, dict) and status.get("status") in ("completed", "failed")


def shown_path(folder: Path) -> Path:
    """Relative where it lies below the working directory."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def right_command(values: Mapping[str, str], command: Sequence[str]) -> str:
    experiment = values.get(variables.EXPERIMENT) or "EXP"
    words = command[1:]
    # In a notebook the command is the kernel's.
    words = ["train.py"] if any("ipykernel" in word for word in words) else words
    return f"harness train {experiment} -- {shlex.join(['python', *words])}"


def attempt_of(row: Mapping[str, Any]) -> int:
    value = row.get("attempt")
    return value if isinstance(value, int) else 0


def _made(base: Path, own: str, *, shared: bool) -> Path:
    base.mkdir(exist_ok=True)
    ignored = base / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n", "utf-8")
    for number in itertools.count(1):
        folder = base / (own if number == 1 else f"{own}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(exist_ok=shared)
            return folder
    raise AssertionError("count ends nowhere")


class RowFile:
    """metrics.jsonl of one writer, opened once. Each row is one O_APPEND write, not synced."""

    # The kernel appends such a write as a whole, so rows of several processes do not mix. A torn
    # last line is closed by the next row, which then starts on a line of its own.

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._torn = False

    def last_row(self) -> dict[str, Any] | None:
        """The last readable row of the last 64 KiB; {} if none is readable, None if it is empty."""
        try:
            with self._path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _TAIL_BYTES))
                lines = stream.read().split(b"\n")
        except FileNotFoundError:
            return None
        for line in reversed(lines):
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    return row
        return {} if any(line.strip() for line in lines) else None

    def first_epoch(self) -> int | None:
        """Of the first row of values in the first 64 KiB."""
        with self._path.open("rb") as stream:
            lines = stream.read(_TAIL_BYTES).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict) and row.get("event") == "epoch":
                    epoch = row.get("epoch")
                    return epoch if isinstance(epoch, int) else None
        return None

    def append(self, line: bytes) -> None:
        """Append a row with its line end. Raises OSError when the disk is full."""
        descriptor = self._open() if self._descriptor is None else self._descriptor
        payload = b"\n" + line if self._torn else line
        # Torn until it is written: after an error the next row closes what was written of this one.
        self._torn = True
        written = os.write(descriptor, payload)
        while written < len(payload):  # only a full disk or a signal gets here
            written += os.write(descriptor, payload[written:])
        self._torn = False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(descriptor).st_size
        self._torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        self._descriptor = descriptor
        return descriptor


@dataclass(kw_only=True)
class StatusFile(TrainingStatus):
    """training_status.json, in a size that does not grow with the epochs.

    Of more than 200 metrics the first 200 are written and the others counted.
    """

    _latest: tuple[int, str, str, str] | None = None

    def note_epoch(self, epoch: int, step: str, rate: str, metrics: str) -> None:
        """Keep the texts of the latest row; `write` parses them, for the few that are written."""
        self._latest = (epoch, step, rate, metrics)

    def note_non_finite(self, count: int, epoch: int) -> None:
        self.non_finite += count
        if self.first_non_finite_epoch is None:
            self.first_non_finite_epoch = epoch

    def write(self, path: Path) -> None:
        if self._latest is not None:
            self.epoch, step, rate, text = self._latest
            self.step = json.loads(step)
            if rate != "null":
                self.learning_rate = json.loads(rate)
            metrics = json.loads(f"{{{text}}}")
            self.metrics_left_out = max(0, len(metrics) - MOST_METRICS)
            self.metrics = dict(list(metrics.items())[:MOST_METRICS])
        shown = {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if entry.name != "_latest"
        }
        atomic_write(path, pretty_json(shown), durable=False)

    def carry_over(self, path: Path) -> None:
        """Keep what an earlier attempt in the same folder reached; set a damaged file aside."""
        try:
            earlier = json.loads(path.read_bytes())
            if not isinstance(earlier, dict):
                raise ValueError("not an object")
        except FileNotFoundError:
            return
        except (ValueError, RecursionError):
            with contextlib.suppress(FileNotFoundError):
                set_aside(path, "damaged")
            return
        # Training code may have written the file: a value of another type is left out.
        for entry in fields(self):
            mine, theirs = getattr(self, entry.name), earlier.get(entry.name)
            if entry.name not in _OWN and (mine is None or isinstance(theirs, type(mine))):
                setattr(self, entry.name, theirs)
        self.resumed += 1
