"""What one epoch costs through the run logger, as a ratio to a bare write and flush of the same
line.

Prints the median over repeats, and late epochs against early ones: both must not depend on how long
the run is. Exits with 1 when the ratio is beyond its aim.

    python bench/run_logger.py [EPOCHS] [REPEATS] [--record]

--record writes docs/evidence/run_logger.json.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _record import record, wants_record

from harness.run_logger import RunLogger

METRICS = {"train/loss": 0.123456789, "val/loss": 0.223456789, "val/accuracy": 0.912345678}
SLICE = 500
AIM = 8.0
"""The largest ratio to the bare write; beyond it the exit code is 1."""


def timed(work: Callable[[int], None], epochs: int) -> list[float]:
    """Seconds an epoch, one number for each slice of 500 epochs."""
    seconds = []
    for first in range(0, epochs, SLICE):
        begin = time.perf_counter()
        for epoch in range(first, first + SLICE):
            work(epoch)
        seconds.append((time.perf_counter() - begin) / SLICE)
    return seconds


def through_the_logger(folder: Path, epochs: int) -> tuple[list[float], bytes]:
    log = RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="bench", seed=0)
    log.start(total_epochs=epochs)
    seconds = timed(
        lambda epoch: log.epoch(epoch, METRICS, step=epoch * 100, learning_rate=1e-3), epochs
    )
    log.end()
    return seconds, (folder / "metrics.jsonl").read_bytes().split(b"\n")[-3] + b"\n"


def bare(folder: Path, line: bytes, epochs: int) -> list[float]:
    with (folder / "bare.jsonl").open("ab") as stream:

        def write(_: int) -> None:
            stream.write(line)
            stream.flush()

        return timed(write, epochs)


def main(epochs: int = 5_000, repeats: int = 7) -> int:
    ratios, growth, costs, baselines = [], [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            logged, line = through_the_logger(Path(name), epochs)
            plain = bare(Path(name), line, epochs)
        costs.append(statistics.median(logged))
        baselines.append(statistics.median(plain))
        ratios.append(costs[-1] / baselines[-1])
        growth.append(statistics.median(logged[-3:]) / statistics.median(logged[:3]))
    print(f"epochs {epochs}, repeats {repeats}, medians")
    print(
        f"bare write + flush   {statistics.median(baselines) * 1e6:8.2f} us an epoch ({len(line)}"
        " bytes)"
    )
    print(f"run logger           {statistics.median(costs) * 1e6:8.2f} us an epoch")
    print(f"ratio                {statistics.median(ratios):8.2f}   (aim: at most {AIM:g})")
    print(f"late / early epochs  {statistics.median(growth):8.2f}   (aim: about 1)")
    if wants_record():
        figures = {
            "ratio": round(statistics.median(ratios), 2),
            "late_to_early": round(statistics.median(growth), 2),
        }
        record("run_logger", "python bench/run_logger.py --record", figures)
    return int(statistics.median(ratios) > AIM)


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:] if argument != "--record")))
