"""How often a 95% interval holds the true score, for each metric of the harness that has one.

Samples of 30, 200 and 2,000 rows, and of 30 groups of 20 that have much in common, are drawn
from the tasks of `_covered.py`; the share of samples whose interval holds the true score is the
coverage. Of a metric whose interval costs 200 calls a tenth of the samples are drawn.

    python bench/coverage.py [--repeats 1000] [--record]

--record writes docs/evidence/coverage.json. Exits with 1 below LEAST.
"""

import argparse
import sys

from _covered import METRICS_MEASURED, coverage, is_resampled
from _record import record, wants_record

SIZES = (30, 200, 2000)
GROUPS = 30
GROUP_ROWS = 600
LEAST = {30: 0.88, 200: 0.91, 2000: 0.93, GROUP_ROWS: 0.89}
"""Fewer rows of a long tail hold less of it."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1000)
    repeats = parser.parse_known_args()[0].repeats
    figures: dict[str, float | str] = {"repeats": repeats}
    failed = False
    print(f"{'metric':22}" + "".join(f"{n:>8}" for n in SIZES) + f"{'30 x 20':>10}")
    for metric in METRICS_MEASURED:
        drawn = repeats // 10 if is_resampled(metric) else repeats
        row = {n: coverage(metric, n, repeats=drawn, seed=n) for n in SIZES}
        row[GROUP_ROWS] = coverage(metric, GROUP_ROWS, repeats=drawn, seed=1, groups=GROUPS)
        figures |= {f"{metric}_{n}": round(share, 3) for n, share in row.items()}
        failed = failed or any(share < LEAST[n] for n, share in row.items())
        print(
            f"{metric:22}" + "".join(f"{row[n]:8.3f}" for n in SIZES) + f"{row[600]:10.3f}",
            flush=True,
        )
    if wants_record():
        record("coverage", "python bench/coverage.py --record", figures, seed=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
