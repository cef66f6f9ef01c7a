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
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_file import rows_in
from harness.artifacts.resume_check import ResumeCheck
from harness.run_logger import RunLogger
from tests.metrics_rows import read_rows

Program = Callable[[RunLogger, Path], None]
_TIMES = ("summary/", "steps_per_second", "gpu_memory_mb", "seconds")


@dataclass(frozen=True, kw_only=True)
class Life:
    digest: str
    rows: list[Any]
    """What readers see: epoch, step, metrics, learning rate."""
    raw_epochs: int
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


def live(program: Program, folder: Path, *, kill_after: tuple[float, ...] = ()) -> Life:
    """Run to the end; kill it before so many seconds after each start, as far as it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    begun, kills = time.monotonic(), 0
    for wait in (*kill_after, None):
        child = start(program, folder)
        if wait is not None:
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
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
        order=order_in(folder),
        seconds=time.monotonic() - begun,
        kills=kills,
        inexact=inexact(folder),
    )


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

    The shortest of `unbroken_lives` says how long one is: the first one also waits for what is not
    compiled or not in memory yet, and kills drawn from its time come after the others have ended."""
    unbroken, *others = (live(program, folder / f"unbroken-{n}") for n in range(unbroken_lives))
    assert {other.digest for other in others} <= {unbroken.digest}
    seconds = min(life.seconds for life in (unbroken, *others))
    drawn, kills = random.Random(seed), 0
    for moment in range(moments):
        waits = drawn_waits(drawn, seconds, 1 + moment % 2)
        life = live(program, folder / f"moment-{moment:02d}", kill_after=waits)
        apart = differences(life, unbroken)
        said = life.inexact
        at = f"moment {moment}, killed after {waits} s of {seconds:.3f}"
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


def drawn_waits(drawn: random.Random, seconds: float, many: int) -> tuple[float, ...]:
    """Each within what the waits before it have left: a life goes on where the last one was."""
    waits: list[float] = []
    for _ in range(many):
        waits.append(drawn.uniform(0.0, seconds - sum(waits)))
    return tuple(waits)
