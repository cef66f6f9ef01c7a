"""What `harness init --example NAME` and `harness try "first"` take, beside `python -c pass`.

python bench/examples.py [NAME ...] [--record]

Of each example, or of those named: processor time of all processes, and time from start to end,
both as multiples of `python -c pass`. With --record, of all, it writes docs/evidence/examples.json.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from _record import record

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


def chosen() -> tuple[list[Example], bool]:
    """Those to measure, and whether to record them. Exits with 2 where the record would lack some:
    its command names all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--record", action="store_true")
    asked, known = parser.parse_args(), {one.name: one for one in examples()}
    for name in asked.names:
        if name not in known:
            parser.error(f"there is no example {name!r}; known: {', '.join(known)}")
    lacking = {
        one.name: missing
        for one in known.values()
        if (missing := [module for module in one.needs if find_spec(module) is None])
    }
    if asked.record and asked.names:
        parser.error("--record is of all examples: leave the names out, or leave --record out")
    if asked.record and lacking:
        parser.error(f"--record is of all examples, and packages are missing: {lacking}")
    names = asked.names or known
    return [known[name] for name in names if name not in lacking], asked.record


def main() -> None:
    figures: dict[str, float] = {}
    measured, is_recorded = chosen()
    for one in measured:
        with tempfile.TemporaryDirectory() as folder:
            cpu, wall = judged(one, Path(folder))
        print(f"{one.name:14} {cpu:6.0f} times the processor time, {wall:6.0f} times the time")
        figures |= {f"{one.name} cpu": round(cpu), f"{one.name} time": round(wall)}
    if is_recorded:
        record("examples", "python bench/examples.py --record", figures)


if __name__ == "__main__":
    main()
