"""A refresh of `harness watch` on a log of 5 million rows against one of 50 thousand, both measured
in this run.

A refresh reads 100 new rows, feeds the detectors and draws the screen. Each log is followed from
its start in a process of its own, whose peak memory counts. Exit 1 when a refresh grows with the
log, or memory passes 200 MB.

    python bench/watch.py [--record]     # with --record it writes docs/evidence/watch.json
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _record import record, wants_record

from harness.clock import SystemClock
from harness.views.dashboard import draw
from harness.views.follow_logs import LogFollower

SMALL, LARGE = 50_000, 5_000_000
REFRESHES, NEW_ROWS = 41, 100
MOST_RATIO, MOST_MB = 2.0, 200.0


def write(path: Path, first: int, rows: int) -> None:
    with path.open("a") as stream:
        for step in range(first, first + rows):
            loss = 2.0 / (1 + step / 1e6) + (step % 7) / 1000
            stream.write(
                f'{{"step": {step}, "loss": {loss:.6f}, "grad_norm": {1 + step % 5}, "lr":'
                " 0.0003}\n"
            )


def measure(path: Path, rows: int) -> dict[str, float]:
    """Median seconds of a refresh, seconds of reading what was there, and the peak of this process
    in MB."""
    follower = LogFollower([path], SystemClock())
    start = time.perf_counter()
    follower.poll(seconds=float("inf"))
    caught_up = time.perf_counter() - start
    samples = []
    for number in range(REFRESHES):
        write(path, rows + number * NEW_ROWS, NEW_ROWS)
        start = time.perf_counter()
        follower.poll(seconds=1.0)
        draw(follower, width=120, height=40)
        samples.append(time.perf_counter() - start)
    assert follower.views()[0].picture.rows == rows + REFRESHES * NEW_ROWS
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "refresh_s": statistics.median(samples),
        "caught_up_s": caught_up,
        "peak_mb": kilobytes / 1024,
    }


def measured_apart(folder: Path, rows: int) -> dict[str, float]:
    path = folder / f"{rows}.jsonl"
    write(path, 0, rows)
    command = [sys.executable, __file__, "--measure", str(path), str(rows)]
    answer: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    path.unlink()
    return answer


def main() -> None:
    if "--measure" in sys.argv:
        path, rows = sys.argv[sys.argv.index("--measure") + 1 :][:2]
        print(json.dumps(measure(Path(path), int(rows))))
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = (measured_apart(Path(folder), rows) for rows in (SMALL, LARGE))
    ratio = large["refresh_s"] / small["refresh_s"]
    print(
        f"baseline: a refresh on {SMALL:,} rows, {1000 * small['refresh_s']:.1f} ms, median of"
        f" {REFRESHES}"
    )
    print(f"a refresh on {LARGE:,} rows   {ratio:6.2f}x baseline")
    print(
        f"peak memory on {LARGE:,} rows {large['peak_mb']:6.0f} MB (on {SMALL:,}:"
        f" {small['peak_mb']:.0f} MB)"
    )
    print(
        f"reading {LARGE:,} rows at first, detectors included:"
        f" {1e6 * large['caught_up_s'] / LARGE:.0f} us a row"
    )
    if wants_record():
        figures = {
            "refresh_ratio": round(ratio, 2),
            "refresh_ms": round(1000 * large["refresh_s"], 1),
            "peak_mb": round(large["peak_mb"]),
            "first_read_us_a_row": round(1e6 * large["caught_up_s"] / LARGE),
            "rows": LARGE,
        }
        record("watch", "python bench/watch.py --record", figures)
    sys.exit(0 if ratio <= MOST_RATIO and large["peak_mb"] < MOST_MB else 1)


if __name__ == "__main__":
    main()
