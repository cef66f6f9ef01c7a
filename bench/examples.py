"""What `harness init --example NAME` and `harness try "first"` take, beside `python -c pass`.

python bench/examples.py [NAME ...] [--record]

Of each example: processor time of all processes, and time from start to end, both as multiples of
`python -c pass`. With --record it writes docs/evidence/examples.json.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from _record import record, wants_record

from harness.install.examples import Example, examples

_PASS = 20


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """(processor seconds of all that it started, seconds). Raises CalledProcessError."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return user + system, end - start


def bare(folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Of one `python -c pass`: the least of several."""
    found = [timed([sys.executable, "-c", "pass"], folder, environment) for _ in range(_PASS)]
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def judged(one: Example, folder: Path) -> tuple[float, float]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_STATE_HOME": f"{folder}/state",
    }
    root = folder / "try-it"
    root.mkdir()
    harness = [sys.executable, "-m", "harness"]
    init = timed([*harness, "init", "--hooks", "none", "--example", one.name], root, environment)
    tried = timed([*harness, "try", "first"], root / one.project, environment)
    cpu, wall = bare(root, environment)
    return (init[0] + tried[0]) / cpu, (init[1] + tried[1]) / wall


def main() -> None:
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    figures: dict[str, float] = {}
    for one in examples():
        lacking = [module for module in one.needs if find_spec(module) is None]
        if lacking or (asked and one.name not in asked):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cpu, wall = judged(one, Path(folder))
        print(f"{one.name:14} {cpu:6.0f} times the processor time, {wall:6.0f} times the time")
        figures |= {f"{one.name} cpu": round(cpu), f"{one.name} time": round(wall)}
    if wants_record():
        record("examples", "python bench/examples.py --record", figures)


if __name__ == "__main__":
    main()
