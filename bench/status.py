"""Start-up of `harness status` against the bare interpreter, both measured in this run.

Prints the ratio of medians for `harness --version` (no project), and for `harness status` in a
small project.


    python bench/status.py [--record]     # with --record it writes docs/evidence/status.json
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _record import record, wants_record

REPEATS = 9


def median_seconds(argv: list[str], environment: dict[str, str]) -> float:
    """Median wall seconds of `argv` over REPEATS runs, after one to warm the caches."""
    samples = []
    for number in range(REPEATS + 1):
        start = time.perf_counter()
        subprocess.run(argv, check=True, capture_output=True, env=environment)
        if number:
            samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
        }
        project = Path(folder) / "project"
        harness = [sys.executable, "-m", "harness"]
        subprocess.run(
            [*harness, "init", str(project)], check=True, capture_output=True, env=environment
        )
        subprocess.run(
            [*harness, "experiment", "list", "--project", str(project)],
            check=True,
            capture_output=True,
            env=environment,
        )
        bare = median_seconds([sys.executable, "-c", "pass"], environment)
        version = median_seconds([*harness, "--version"], environment)
        status = median_seconds([*harness, "status", "--project", str(project)], environment)
    print(f"baseline: python -c pass, median of {REPEATS}")
    print(f"harness --version  {version / bare:6.1f}x baseline")
    print(f"harness status     {status / bare:6.1f}x baseline")
    if wants_record():
        ratios = {
            "version_ratio": round(version / bare, 1),
            "status_ratio": round(status / bare, 1),
        }
        record("status", "python bench/status.py --record", ratios)


if __name__ == "__main__":
    main()
