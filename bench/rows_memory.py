"""Peak memory of the commands that read a run's rows, on a run of many rows against one of 10,000
rows, both measured in this run.

Each run is trained by `harness train`; its program appends the rows itself, which is faster than
the run logger. Then each command reads them in a process of its own, whose peak counts. Exit 1 when
one of them needs MOST_MB or more, or its memory follows the rows.

    python bench/rows_memory.py [--rows N] [--keys K] [--record]

`--record` writes docs/evidence/rows_memory.json; rows of other than three values have figures of
their own there, beside those that it has.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _record import FOLDER, record

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from tests.centroids import TRAIN  # noqa: E402  it needs the line above
from tests.cli.journey import Journey, make_project  # noqa: E402

FEW, MANY, KEYS = 10_000, 5_000_000, 3
MOST_MB, MOST_RATIO = 150.0, 1.5
WRITE = """\
    import datetime, random
    keys = ["loss", "accuracy", "grad_norm", *("part/%d" % n for n in range(KEYS))][:KEYS]
    draw = random.Random(1).random
    metrics = ",".join('"' + key + '":%.6f' for key in keys)
    row = '{"t":"%sZ","event":"epoch","run":"exp-0001/run-01","attempt":1,"epoch":%d,"step":%d,'
    row += '"metrics":{' + metrics + '}}\\n'
    with open(log.checkpoint_dir.parent / "metrics.jsonl", "a") as file:
        for step in range(1, ROWS):
            if step % 1000 == 1:
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")[:-6]
            file.write(row % (now, step, step, *(draw() + 1000.0 / step for _ in keys)))
"""
RESULT = "---\nclaims: {}\n---\n# Result\n\nAt the end the training loss was 7.123456.\n"
INSIDE = """
import resource, sys
from pathlib import Path
from harness.cli.main import main
try:
    main(sys.argv[2:])
finally:
    Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""
COMMANDS = {
    "gate_check": ("gate", "check", "exp-0001", "--json"),
    "experiment_show": ("experiment", "show", "exp-0001", "--json"),
    "watch": ("watch", "exp-0001", "--once"),
    "report": ("report",),
    "handoff": ("handoff", "--note", "Go on.", "--json"),
    "status": ("status", "--json"),
    "claims_audit": ("claims", "audit", ".harness/experiments", "--json"),
    "gc": ("gc", "--dry-run"),
}


def measured(journey: Journey, words: tuple[str, ...]) -> tuple[float, float]:
    """(peak in MB, seconds) of one command."""
    told = journey.home / "peak"
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", INSIDE, str(told), *words],
        cwd=journey.root,
        env=journey.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        said = done.stdout[-2000:] + done.stderr[-2000:]
        raise SystemExit(f"{words}: {done.returncode}\n{said}")
    return int(told.read_text()) / 1024, time.monotonic() - begun


def peaks(base: Path, rows: int, keys: int) -> dict[str, tuple[float, float]]:
    """Command -> (peak in MB, seconds), on a run of `rows` rows of `keys` values."""
    journey = make_project(base / "project", base / "home")
    plan = (journey.root / "plan.md").read_text().replace("seeds: 3", "seeds: 1")
    plan = plan.replace("run_minutes: 2, total_minutes: 20", "run_minutes: 90, total_minutes: 900")
    (journey.root / "plan.md").write_text(plan)
    line = "    log.epoch(0,"
    write = WRITE.replace("ROWS", str(rows)).replace("KEYS", str(keys))
    written = TRAIN.replace(line, write + line)
    (journey.root / "train.py").write_text(written)
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    found = {"train": measured(journey, ("train", "exp-0001", "--json"))}
    folder = journey.root / ".harness/experiments/exp-0001"
    logged = (folder / "runs/run-01/metrics.jsonl").stat().st_size
    print(f"{rows:,} rows of {keys}: {logged / 1e6:,.0f} MB", flush=True)
    (folder / "config.yaml").write_text("lr: 0.02\n")
    (folder / "result.md").write_text(RESULT)
    answer = journey.harness("evaluate", "exp-0001", "--json")
    assert answer.exit_code == 0, answer.stdout
    return found | {name: measured(journey, words) for name, words in COMMANDS.items()}


def write(figures: dict[str, float | str]) -> None:
    path = FOLDER / "rows_memory.json"
    known = json.loads(path.read_bytes())["figures"] if path.exists() else {}
    keys = figures["keys"]
    of_keys = "" if keys == KEYS else f"keys_{keys}_"
    new = {f"{of_keys}{name}": value for name, value in figures.items()}
    record("rows_memory", "python bench/rows_memory.py --record", {**known, **new})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=MANY)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        few = peaks(base / "few", FEW, given.keys)
        many = peaks(base / "many", given.rows, given.keys)
    figures: dict[str, float | str] = {"rows": given.rows, "keys": given.keys}
    worst = highest = 0.0
    for command, (peak, seconds) in many.items():
        ratio = peak / few[command][0]
        worst, highest = max(worst, ratio), max(highest, peak)
        slower = seconds / few[command][1]
        print(f"{command:16} {peak:6.0f} MB {ratio:6.2f}x baseline   time {slower:6.1f}x baseline")
        figures |= {f"{command}_ratio": round(ratio, 2), f"{command}_mb": round(peak)}
    if given.record:
        write(figures)
    return 0 if worst <= MOST_RATIO and highest < MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
