"""Evaluating an experiment's seeds side by side, against one after the other in the same run.

Each round evaluates the same trained experiment, copied, both ways in turn; a ratio is that of the
two medians. With one core, or a GPU, both are the same.

    python bench/side_by_side.py [--record]   # --record writes docs/evidence/side_by_side.json
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _record import record, wants_record

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from tests.cli.journey import Journey, make_project  # noqa: E402  it needs the line above

ROUNDS, SEEDS = 5, 3
EVALUATE = """
import sys
from harness.cli.main import main
from harness.evaluation import side_by_side
if sys.argv.pop(1) == "alone":
    side_by_side._cores = lambda: 1
main(sys.argv[1:])
"""


def trained(base: Path) -> Journey:
    """A project with one experiment, whose seeds are trained and not evaluated."""
    journey = make_project(base / "project", base / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
        ("train", "exp-0001"),
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    return journey


def seconds(journey: Journey, how: str) -> float:
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", EVALUATE, how, "evaluate", "exp-0001"],
        cwd=journey.root,
        env=journey.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - begun


def main() -> None:
    taken: dict[str, list[float]] = {"alone": [], "together": []}
    with tempfile.TemporaryDirectory() as name:
        base, kept = Path(name).resolve() / "used", Path(name).resolve() / "kept"
        journey = trained(base)
        shutil.copytree(base, kept, symlinks=True)
        for number in range(2 * ROUNDS):
            how = ("alone", "together")[(number + number // 2) % 2]
            shutil.rmtree(base)
            shutil.copytree(kept, base, symlinks=True)
            taken[how].append(seconds(journey, how))
    alone, together = (statistics.median(taken[how]) for how in ("alone", "together"))
    ratio = together / alone
    print(f"{SEEDS} seeds on {os.cpu_count()} cores: side by side takes {ratio:.2f} of the time")
    if wants_record():
        figures = {"seeds": SEEDS, "ratio": round(ratio, 2)}
        record("side_by_side", "python bench/side_by_side.py --record", figures)


if __name__ == "__main__":
    main()
