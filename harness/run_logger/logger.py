"""RunLogger: writes one row per epoch to metrics.jsonl, and training_status.json beside it."""

import json
import os
import sys
import threading
from collections.abc import (
    Mapping,
    Sequence,
)
from pathlib import Path
from types import TracebackType
from typing import (
    Any,
    Self,
)

from harness.clock import (
    Clock,
    SystemClock,
)
from harness.domain import variables
from harness.domain.plain_text import plain
from harness.errors import (
    RefusedError,
    UsageError,
)
from harness.run_logger.ranks import (
    is_other,
    launch,
    rank_of,
    several,
    started_again,
)
from harness.run_logger.run_files import (
    RowFile,
    StatusFile,
    attempt_of,
    new_folder,
    right_command,
    shown_path,
)
from harness.run_logger.values import (
    UNSAID,
    Config,
    Stamp,
    further,
    inside,
    members,
    number,
    plain_config,
    whole,
)

_GIVEN = (
    variables.RUN_DIR,
    variables.EXPERIMENT,
    variables.RUN,
    variables.TOKEN,
    variables.SEED,
)
_STATUS_SECONDS = 1.0
_forks = 0
"""Forks between the launched process and this one: a data loader's worker inherits the logger, and
would log the run's rows a second time."""


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class RunLogger:
    """Logs one run. Made by `from_environment()`: inside a command that `harness train` launched
    the run that it registered, elsewhere an unregistered one.

    Safe to use from several threads. In all processes of a training but the first, and in forked
    children, every call does nothing. A row is one O_APPEND write without fsync; the status file is
    replaced at most once a second and at state changes. A full disk raises OSError: no row is
    dropped silently.
    """

    def __init__(
        self,
        *,
        run_dir: Path,
        experiment: str,
        run: str,
        token: str,
        seed: int,
        attempt: int = 1,
        checkpoint_every: int | None = None,
        rank: int = 0,
        config: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        registered: bool = True,
    ) -> None:
        self.experiment, self.run, self.seed, self.attempt = experiment, run, seed, attempt
        self.checkpoint_every = checkpoint_every
        self.config = Config(config or {})
        """What config.yaml and `--set` say; empty outside `harness train`."""
        self.checkpoint_dir = run_dir / "checkpoints"
        self.registered = registered
        """False outside `harness train`: such a run counts for no experiment."""
        self._token, self._run_dir, self._rank = token, run_dir, rank
        self._clock: Clock = clock or SystemClock()
        self._stamp = Stamp(self._clock)
        self._forks = _forks
        # Reentrant: a row before start() calls start() with the lock held.
        self._lock = threading.RLock()
        self._rows = RowFile(run_dir / "metrics.jsonl")
        self._head = ""  # the fields that every row repeats
        self._status_path = run_dir / "training_status.json"
        self._status = StatusFile(run=f"{experiment}/{run}", seed=seed, attempt=attempt)
        self._status_due = 0.0
        self._resumed: str | None = None  # a resume row that waits for the start row
        # The first epoch of earlier attempts, until this one says what it restored.
        self._unsaid: int | None = None
        self._state = "new"  # then running, then ended
        if run_dir.is_dir() or not self._silent():
            self.checkpoint_dir.mkdir(parents=True, exist_ok=True)

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        *,
        command: Sequence[str] | None = None,
    ) -> "RunLogger":
        """The logger of the run that the supervisor launched; in a notebook, a debugger or a CI job
        that of an unregistered run below `./harness-runs/`.

        Raises RefusedError when the supervisor's variables are there in part.
        """
        values = os.environ if environ is None else environ
        missing = [name for name in _GIVEN if not values.get(name)]
        again = sys.orig_argv if command is None else command
        if not any(values.get(name) for name in _GIVEN if name != variables.SEED):
            return cls._unregistered(values, again, clock)
        if missing:
            raise RefusedError(
                f"Of what `harness train` sets, this is not set: {', '.join(missing)}. Its numbers"
                " would belong to no run.",
                hint=f"Start it with `{right_command(values, again)}`.",
                code="not_supervised",
            )
        every = values.get(variables.CHECKPOINT_EVERY)
        return cls(
            run_dir=Path(values[variables.RUN_DIR]),
            experiment=values[variables.EXPERIMENT],
            run=values[variables.RUN],
            token=values[variables.TOKEN],
            seed=_seed_of(values),
            attempt=int(values.get(variables.ATTEMPT) or 1),
            checkpoint_every=int(every) if every else None,
            config=json.loads(values.get(variables.CONFIG) or "{}"),
            rank=rank_of(values),
            clock=clock,
        )

    @classmethod
    def _unregistered(
        cls, values: Mapping[str, str], command: Sequence[str], clock: Clock | None
    ) -> "RunLogger":
        rank, seed = rank_of(values), _seed_of(values)
        folder = new_folder(launch(values), make=rank == 0, again=started_again(values))
        if rank == 0:
            told = (
                f"harness: unregistered run, logged to {shown_path(folder)}; it counts for no"
                f" experiment. To count: `{right_command(values, command)}`."
            )
            sys.stderr.write(f"{plain(told)}\n")
        return cls(
            run_dir=folder,
            experiment="unregistered",
            run=folder.name,
            token="",
            seed=seed,
            rank=rank,
            clock=clock,
            registered=False,
        )

    def start(
        self,
        total_epochs: int | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        resumed_at: int | None = None,
    ) -> None:
        """Write the first row; an `attempt` row when the command was restarted in the same folder.

        `resumed_at` is the first epoch that will be logged again: readers drop earlier rows from
        there on. Without it they take the next epoch row.
        """
        if self._silent():
            return
        total_epochs = None if total_epochs is None else whole("epoch", total_epochs)
        with self._lock:
            if self._state != "new":
                raise UsageError(
                    "start() was called twice.", hint="Call it once, before the first epoch."
                )
            earlier = self._rows.last_row()
            self._state = "running"
            row: dict[str, Any] = {"token": self._token, "seed": self.seed}
            row |= {} if self.registered else {"registered": False}
            row |= several(os.environ)
            if earlier is not None:
                row["resumed_at"] = None if resumed_at is None else whole("epoch", resumed_at)
                self.attempt = max(self.attempt, attempt_of(earlier) + 1)
                self._status.carry_over(self._status_path)
            self._head = inside({"run": self._status.run, "attempt": self.attempt})
            row |= {"total_epochs": total_epochs, "config": plain_config(config or {})}
            now = self._row("start" if earlier is None else "attempt", inside(row))
            self._status.attempt = self.attempt
            self._status.started_at = self._status.started_at or now
            self._status.total_epochs = (
                total_epochs if total_epochs is not None else self._status.total_epochs
            )
            if earlier is not None and self._resumed is None:
                self._unsaid = self._rows.first_epoch()
            if self._resumed is not None:
                now, self._resumed = self._row("resume", self._resumed), None
            self._write_status(now)

    def resumed(self, missing: Sequence[str] = ()) -> None:
        """Log that the training continues from a checkpoint, without the parts in `missing`.

        A call before `start` is written after the start row. A training that goes on and never
        calls it is told as not exact. What `harness.training` has calls it.
        """
        if self._silent():
            return
        row = inside({"exact": not missing, "missing": [str(name) for name in missing]})
        with self._lock:
            if self._state == "new":
                self._resumed = row
            else:
                self._require_running()
                self._row("resume", row)
                self._unsaid = None

    def epoch(
        self,
        epoch: int,
        metrics: Mapping[str, Any],
        *,
        step: int | None = None,
        learning_rate: Any = None,
        **more: Any,
    ) -> None:
        """Log one epoch, counted from 0. Values are numbers or scalar tensors, also non-finite
        ones.

        Readers merge two calls for one epoch. `more` are other numbers of the row, e.g.
        `seconds=1.5`. Raises UsageError with the key of a value that is not a number.
        """
        if self._silent():
            return
        index = whole("epoch", epoch)
        plain, bad = members(metrics)
        at = "null" if step is None else repr(whole("step", step))
        rate = "null" if learning_rate is None else number("learning_rate", learning_rate)
        row = f'"epoch":{index},"step":{at},"metrics":{{{plain}}},"learning_rate":{rate}'
        if more:
            row = f"{row},{further(more)}"
        with self._lock:
            if self._state != "running":
                self._require_running()
            if self._unsaid is not None:
                if index > self._unsaid:
                    self._row("resume", UNSAID)
                self._unsaid = None
            now = self._row("epoch", row)
            self._status.note_epoch(index, at, rate, plain)
            if bad:
                self._status.note_non_finite(bad, index)
            # Not at every epoch: replacing the file costs more than the row.
            if self._clock.monotonic() >= self._status_due:
                self._write_status(now)

    def checkpoint_saved(
        self,
        path: str | Path,
        *,
        epoch: int | None = None,
        final: bool = False,
        initial: bool = False,
    ) -> None:
        """Log a finished checkpoint, a file or folder below the run's folder.

        `final` is to be scored; `initial` are the weights before training: a gate refuses an equal
        final one. Raises UsageError when it does not exist, is elsewhere, or is marked as both.
        """
        if self._silent():
            return
        if initial and final:
            raise UsageError(
                "A checkpoint cannot be both initial and final.",
                hint="Train, then save another one.",
            )
        relative = self._inside(Path(path))
        with self._lock:
            self._require_running()
            entry = {
                "path": relative,
                "epoch": None if epoch is None else whole("epoch", epoch),
                "final": bool(final),
            }
            entry |= {"initial": True} if initial else {}
            now = self._row("checkpoint", inside(entry))
            self._status.checkpoints += 1
            self._status.checkpoint = entry
            self._write_status(now)

    def end(self, status: str = "completed", *, error: str | None = None) -> None:
        """Write the last row, "completed" or "failed". A second call does nothing."""
        if status not in ("completed", "failed"):
            raise UsageError(f"A run cannot end {status!r}.", hint='Use "completed" or "failed".')
        if self._silent():
            return
        with self._lock:
            if self._state == "ended":
                return
            self._require_running()
            row: dict[str, Any] = {"status": status}
            row |= {"error": error} if error else {}
            unread = self.config.unread()
            row |= {"unread": unread} if unread else {}
            now = self._row("end", inside(row))
            self._status.status, self._status.error = status, error
            self._write_status(now)
            self._rows.close()
            self._state = "ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.end()
        else:
            self.end("failed", error=f"{type(error).__name__}: {error}"[:500])

    def _row(self, event: str, row: str) -> str:
        now = self._stamp.now()
        self._rows.append(
            f'{{"t":"{now}","event":"{event}",{self._head},{row}}}\n'.encode("ascii")
        )
        self._status.rows += 1
        return now

    def _write_status(self, now: str) -> None:
        self._status.updated_at = now
        self._status.write(self._status_path)
        self._status_due = self._clock.monotonic() + _STATUS_SECONDS

    def _require_running(self) -> None:
        if self._state == "new":
            self.start()
        elif self._state == "ended":
            raise UsageError(
                "This run has ended already.", hint="Call end() once, after the last row."
            )

    def _silent(self) -> bool:
        return self._forks != _forks or self._rank > 0 or is_other()

    def _inside(self, path: Path) -> str:
        home, target = self._run_dir.resolve(), path.resolve()
        if not target.exists() or home not in target.parents:
            raise UsageError(
                f"The checkpoint {path}"
                f" {'is outside the run' if target.exists() else 'does not exist'}; expected a"
                f" file or folder below {self.checkpoint_dir}.",
                hint="Save it under `log.checkpoint_dir` first, then call checkpoint_saved.",
                code="checkpoint_outside",
            )
        return target.relative_to(home).as_posix()


def _seed_of(values: Mapping[str, str]) -> int:
    given = values.get(variables.SEED) or "0"
    try:
        return int(given)
    except ValueError:
        raise UsageError(
            f"{variables.SEED} is {given!r}; expected a whole number.",
            hint=f"Set it to one, e.g. `{variables.SEED}=1`, or leave it out: then it is 0.",
        ) from None
