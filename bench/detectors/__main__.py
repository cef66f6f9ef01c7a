"""Injected faults in real training and in made rows, healthy runs of many shapes, and real logs:
what the detectors say of each.

    python -m bench.detectors [--record] [--cache DIR] [--processes 2]

Thresholds were set on even seeds of the faults and the first three seeds of each healthy shape;
what is printed is of the others. Kinds and shapes of `unseen` no threshold was set on; they are
reported apart, and no bar is asked of them. Exit 0 only if recall, false alarms, delay and the
labels of the real logs meet their bars. `--record` writes docs/evidence/detectors.json and the
table in docs/detectors.md; rows that `--cache` has are not made again.
"""

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from bench._record import record
from bench.detectors import measured_runs, odd_runs, real_logs, report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.cache or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        jobs = measured_runs.jobs()
        measured_runs.prepare(folder, [job for job in jobs if job.held_out], given.processes)
        kinds, quiet = report.faulty(folder, jobs), report.healthy(folder, jobs)
        halves = odd_runs.measured(folder)
    logs = real_logs.labels()
    figures = report.figures(kinds, quiet, logs) | odd_runs.figures(halves)
    text = f"{report.table(kinds, quiet, figures)}\n\n{odd_runs.table(halves)}"
    print(text)
    for name, (given_label, got) in logs.items():
        print(f"{name}: {got}" + ("" if got == given_label else f", expected {given_label}"))
    if given.record:
        record("detectors", "make detectors", figures, seed=0)
        report.write_page(text)
    print(report.last_line(figures))
    return 0 if report.passed(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
