"""Training in a forked process, killed -9 at seeded moments and started again, beside the unbroken
run."""

import itertools
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_file import rows_in
from harness.artifacts.resume_check import ResumeCheck
from harness.run_logger import RunLogger
from tests.metrics_rows import read_rows

Program = Callable[[RunLogger, Path], None]
Moment = tuple[int, float]
"""Rows written since the start, and seconds after them: a slow machine moves it along."""
_TIMES = ("summary/", "steps_per_second", "gpu_memory_mb", "seconds")


@dataclass(frozen=True, kw_only=True)
class Life:
    digest: str
    rows: list[Any]
    """What readers see: epoch, step, metrics, learning rate."""
    raw_epochs: int
    gaps: list[float]
    """Seconds before each row in its file, of every event: of the first one, since the start."""
    order: dict[str, str]
    """Optimizer step -> its rows of the data set, the same each time that it was made."""
    seconds: float
    kills: int
    inexact: str | None
    """Why a resume was not exact, as the rows say it."""


def start(program: Program, folder: Path) -> int:
    """The process id of a child that runs `program` in `folder`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with (folder / "stderr.txt").open("a") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        with RunLogger(
            run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=7
        ) as log:
            program(log, folder)
        code = 0
    except BaseException:  # noqa: BLE001 - a forked child must not return into pytest
        traceback.print_exc()
    finally:
        os._exit(code)


def live(program: Program, folder: Path, *, kill_at: tuple[Moment, ...] = ()) -> Life:
    """Run to the end; kill it at a moment after each start, as far as it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    begun, began, kills = time.monotonic(), datetime.now(UTC), 0
    for moment in (*kill_at, None):
        before = lines_in(folder)
        child = start(program, folder)
        status = (
            os.waitpid(child, 0)[1] if moment is None else ended(child, folder, before, moment)
        )
        if os.WIFSIGNALED(status):
            kills += 1
            continue
        assert os.WEXITSTATUS(status) == 0, (folder / "stderr.txt").read_text()[-3000:]
        break
    return Life(
        digest=(folder / "digest.txt").read_text(),
        rows=shown(folder),
        raw_epochs=sum(
            row["event"] == "epoch" for row in read_rows(folder / "metrics.jsonl").rows
        ),
        gaps=gaps_in(folder, began),
        order=order_in(folder),
        seconds=time.monotonic() - begun,
        kills=kills,
        inexact=inexact(folder),
    )


def ended(child: int, folder: Path, before: int, moment: Moment) -> int:
    """The status of a child that was killed at this moment, or had ended before it."""
    rows, seconds = moment
    while lines_in(folder) < before + rows:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # not yet waited for: the number is still its own
    return os.waitpid(child, 0)[1]


def lines_in(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def gaps_in(folder: Path, began: datetime) -> list[float]:
    times = [datetime.fromisoformat(row["t"]) for row in rows_in(folder / "metrics.jsonl")]
    return [(one - before).total_seconds() for before, one in itertools.pairwise([began, *times])]


def inexact(folder: Path) -> str | None:
    check = ResumeCheck()
    for row in rows_in(folder / "metrics.jsonl"):
        check.take(row)
    return check.newest


def shown(folder: Path) -> list[Any]:
    rows = [
        row for row in read_rows(folder / "metrics.jsonl").effective if row["event"] == "epoch"
    ]
    kept = []
    for row in rows:
        values = {
            key: value for key, value in row["metrics"].items() if not key.startswith(_TIMES)
        }
        kept.append((row["epoch"], row["step"], values, row["learning_rate"]))
    assert len({epoch for epoch, *_ in kept}) == len(kept), "an epoch is shown twice"
    return kept


def order_in(folder: Path) -> dict[str, str]:
    path, order = folder / "order.txt", {}
    for line in path.read_text().splitlines() if path.exists() else []:
        step, rows = line.split(" ", 1)
        assert order.setdefault(step, rows) in (rows, ""), (
            f"step {step} saw other rows the second time"
        )
    return order


def prove(
    program: Program,
    folder: Path,
    *,
    moments: int,
    seed: int,
    unbroken_lives: int,
    told: bool = False,
) -> int:
    """Kill at `moments` seeded moments, each in a life of its own; every one ends as the unbroken
    run did, to the last bit, or with `told` its rows say why not. Returns how many of the kills
    met a living process.

    The shortest of `unbroken_lives` says how long the rows take: the first one also waits for
    what is not compiled or not in memory yet."""
    unbroken, *others = (live(program, folder / f"unbroken-{n}") for n in range(unbroken_lives))
    assert {other.digest for other in others} <= {unbroken.digest}
    gaps = min((unbroken, *others), key=lambda life: life.seconds).gaps
    drawn, kills = random.Random(seed), 0
    for moment in range(moments):
        killed_at = drawn_moments(drawn, gaps, 1 + moment % 2)
        life = live(program, folder / f"moment-{moment:02d}", kill_at=killed_at)
        apart = differences(life, unbroken)
        said = life.inexact
        at = f"moment {moment}, killed at {killed_at} of {len(gaps)} rows"
        assert not apart or (told and said), f"{at}: {apart}"
        assert said is None or told, f"{at}: {said}"
        kills += life.kills
    return kills


def differences(life: Life, unbroken: Life) -> str:
    """What is not as in the unbroken run, with the first of each kind; empty when nothing is."""
    found = [] if life.digest == unbroken.digest else ["other weights"]
    for what, one, other in (
        ("rows", life.rows, unbroken.rows),
        ("order", list(life.order.items()), list(unbroken.order.items())),
    ):
        pairs = list(itertools.zip_longest(one, other))
        first = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if first is not None:
            found.append(f"{what}: {len(one)}, unbroken {len(other)}; {first[0]}, not {first[1]}")
    return "; ".join(found)


def drawn_moments(drawn: random.Random, gaps: list[float], many: int) -> tuple[Moment, ...]:
    """Each within the rows that the moments before it have left, and the time to the next row: a
    life goes on where the last one was."""
    moments: list[Moment] = []
    for _ in range(many):
        before = sum(rows for rows, _ in moments)
        rows = drawn.randrange(len(gaps) - before)
        # The first row of a life comes after its start, wherever it goes on.
        moments.append((rows, drawn.uniform(0.0, gaps[before + rows if rows else 0])))
    return tuple(moments)
