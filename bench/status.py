"""Start-up of commands that look, against the bare interpreter, all measured in this run.

Projects of SIZES experiments. Each figure is the median of pairs, the command and what it is
compared with one after the other, in seconds of the processor: a busy machine does not count.

    python bench/status.py [--record]     # with --record it writes docs/evidence/status.json
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from _record import record, wants_record
from mint import life, plan

from harness.clock import SystemClock
from harness.ledger.facts import Fact
from harness.ledger.project import open_project

AIM = 12.0
GROWTH = 3.0
SIZES = (10, 1000)
REPEATS = 9


def cpu_seconds(argv: list[str], environment: dict[str, str]) -> float:
    """Of the process and all that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(argv: list[str], base: list[str], environment: dict[str, str]) -> float:
    """The median over REPEATS pairs, after one to warm the caches."""
    pairs = [
        (cpu_seconds(argv, environment), cpu_seconds(base, environment))
        for _ in range(REPEATS + 1)
    ]
    return statistics.median(top / bottom for top, bottom in pairs[1:])


def fill(root: Path, environment: dict[str, str], size: int) -> None:
    """Closed experiments up to `size`, as facts."""
    approved = plan()
    more = {"workflow": "deep-learning", "gates": {"mode": "autonomous"}, "budget": {}}
    content = {**approved.content, **more}
    facts: list[Fact] = [replace(approved, content=content)]
    facts += [fact for number in range(1, size + 1) for fact in life(number)]
    with (
        open_project(root, environment, clock=SystemClock()) as project,
        project.ledger.transaction() as writer,
    ):
        for fact in facts:
            writer.append(fact)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.parse_args()
    bare = [sys.executable, "-c", "pass"]
    harness = [sys.executable, "-m", "harness"]
    figures: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
        }
        figures["version_ratio"] = round(ratio([*harness, "--version"], bare, environment), 1)
        lists: dict[int, list[str]] = {}
        for size in SIZES:
            root = Path(folder) / str(size)
            subprocess.run(
                [*harness, "init", str(root)], check=True, capture_output=True, env=environment
            )
            fill(root, environment, size)
            lists[size] = [*harness, "experiment", "list", "--project", str(root)]
        few, many = SIZES
        status = [*harness, "status", "--project", str(Path(folder) / str(few))]
        figures["status_ratio"] = round(ratio(status, bare, environment), 1)
        figures["list_ratio"] = round(ratio(lists[few], bare, environment), 1)
        figures["list_growth"] = round(ratio(lists[many], lists[few], environment), 2)
    print(f"python -c pass is 1; median of {REPEATS} pairs, seconds of the processor")
    for name, value in figures.items():
        print(f"{name:14} {value}")
    print(f"aims: at most {AIM:g}; list_growth at most {GROWTH:g}")
    if wants_record():
        record("status", "python bench/status.py --record", figures)
    print(json.dumps({"bench": "status", **figures}))
    slow = max(float(figures[name]) for name in ("status_ratio", "list_ratio")) > AIM
    return int(slow or float(figures["list_growth"]) > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
