"""What one row costs through the run logger and the detectors together, against a bare write and
flush of the line.

The detectors are fed the row as the supervisor does: parsed from the line. Prints both ratios, and
the last tenth of the rows against the first: it must not grow with the run. Times are processor
time, so that other work on the machine does not count. Exits with 1 beyond the aim.

    python bench/detect_rows.py [--rows 1000000] [--record]

--record writes docs/evidence/detect_rows.json.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import orjson
from _record import record, wants_record

from harness.detectors.watch import RunWatch
from harness.run_logger import RunLogger

SLICE = 1_000
AIM = 20.0
"""The largest ratio to the bare write."""
FLAT = 1.5


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_known_args()[0].rows
    random, watch = Random(0), RunWatch()
    losses = [
        {key: value + 0.01 * random.random() for key, value in _METRICS.items()}
        for _ in range(SLICE)
    ]
    written, logged, watched = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="bench", seed=0)
        log.start(total_epochs=rows)
        path = folder / "metrics.jsonl"
        with (folder / "bare.jsonl").open("ab") as bare, path.open("rb") as new:
            new.read()
            for first in range(0, rows, SLICE):
                begin = time.process_time()
                for number, metrics in enumerate(losses, first):
                    log.epoch(number, metrics, step=number * 100, learning_rate=1e-3)
                middle = time.process_time()
                lines = new.readlines()
                parsed = [orjson.loads(line) for line in lines]
                before = time.process_time()
                for row in parsed:
                    watch.feed(row)
                after = time.process_time()
                for line in lines:
                    bare.write(line)
                    bare.flush()
                written.append(time.process_time() - after)
                logged.append(middle - begin)
                watched.append(after - before)
    return _told(rows, written, logged, watched)


_METRICS = {"train/loss": 0.123456789, "val/loss": 0.223456789, "val/accuracy": 0.912345678}


def _told(rows: int, written: list[float], logged: list[float], watched: list[float]) -> int:
    """Seconds a slice of rows each; ratios are of neighbouring slices, so that a busy machine
    weighs on both alike."""
    ratios = [
        (log + watch) / bare for bare, log, watch in zip(written, logged, watched, strict=True)
    ]
    part = max(1, len(watched) // 10)
    relative = [watch / bare for bare, watch in zip(written, watched, strict=True)]
    growth = statistics.median(relative[-part:]) / statistics.median(relative[:part])
    ratio, detectors = statistics.median(ratios), statistics.median(relative)
    micro = 1e6 / SLICE
    print(f"rows {rows}, medians over slices of {SLICE}")
    print(f"bare write + flush   {statistics.median(written) * micro:8.2f} us a row")
    print(f"run logger           {statistics.median(logged) * micro:8.2f} us a row")
    print(
        f"detectors            {statistics.median(watched) * micro:8.2f} us a row ="
        f" {detectors:.1f}x bare"
    )
    print(f"logger + detectors   {ratio:8.2f}x bare   (aim: at most {AIM:g})")
    print(f"last / first tenth   {growth:8.2f}   (aim: at most {FLAT:g})")
    if wants_record():
        figures = {
            "rows": rows,
            "ratio": round(ratio, 1),
            "detectors": round(detectors, 1),
            "growth": round(growth, 2),
        }
        record("detect_rows", "python bench/detect_rows.py --record", figures, seed=0)
    return int(ratio > AIM or growth > FLAT)


if __name__ == "__main__":
    sys.exit(main())
