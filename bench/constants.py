"""The constants of docs/scale.md: what one fact, one experiment, one supervisor and one metrics row
cost.

    python bench/constants.py [--facts 300] [--rows 200000] [--folder DIR] [--record]

Facts are appended as `harness` does, each in a transaction of its own that is synced; by one
process and by eight at once, which is told as a ratio. A supervisor is `harness train` while its
training sleeps. Rows are read as a gate reads them. One line of JSON ends the output; with
--record it writes docs/evidence/constants.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from _record import record
from mint import build, life

from harness.artifacts.metrics_file import rows_in
from harness.clock import SystemClock
from harness.domain.grade import PERSON
from harness.ledger import Ledger
from harness.ledger.facts import DecisionRecorded
from harness.ledger.project import open_project
from harness.plans.approval import approve_plan
from harness.process import harness_command

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from tests.blobs import PLAN, make_root  # noqa: E402  it needs the line above

SIZE, WRITERS = 1000, 8
TRAIN = """
import time
from harness.run_logger import RunLogger
with RunLogger.from_environment() as log:
    log.start(total_epochs=1)
    log.epoch(0, {"loss": 1.0})
    time.sleep(60)
"""
WRITE = """
import sys
sys.path.insert(0, "bench")
from constants import append
append(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""


def append(database: str, anchors: str, writer: str, count: int) -> float:
    """Seconds for `count` decisions, each a transaction."""
    ledger = Ledger.open(Path(database), anchors=Path(anchors), clock=SystemClock(), writer=writer)
    start = time.perf_counter()
    for number in range(count):
        ledger.append(
            DecisionRecorded(
                decision=f"d-{writer}-{number:06}",
                kind="LOWER",
                experiment=None,
                by="bench",
                context="while measuring",
                choice="one more fact",
                alternatives="none",
                reason="its time is measured",
                confidence="high",
                verdict=None,
            )
        )
    seconds = time.perf_counter() - start
    ledger.close()
    return seconds


def facts(folder: Path, count: int) -> dict[str, float]:
    ledger, layout = build(folder / "ledger", SIZE)
    ledger.close()
    size = layout.ledger_db.stat().st_size / SIZE
    program = [sys.executable, "-c", WRITE, str(layout.ledger_db), str(layout.anchors)]
    # Alternating, so that a busy machine hits both.
    alone, together = [], []
    for turn in range(3):
        alone.append(count / append(str(layout.ledger_db), str(layout.anchors), f"a{turn}", count))
        start = time.perf_counter()
        started = [
            subprocess.Popen([*program, f"b{turn}{number}", str(count // WRITERS)], cwd=ROOT)
            for number in range(WRITERS)
        ]
        assert [one.wait() for one in started] == [0] * WRITERS
        together.append(count / (time.perf_counter() - start))
    one = statistics.median(alone)
    return {
        "facts_a_second": round(one),
        "writers_ratio": round(statistics.median(together) / one, 2),
        "facts_an_experiment": len(life(1)),
        "ledger_bytes_an_experiment": round(size),
    }


def supervisor(folder: Path) -> dict[str, float]:
    root = make_root(folder / "project", plan=PLAN, train=TRAIN)
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment = {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    with open_project(root, environment, caller=PERSON) as project:
        approve_plan(project, root / "plan.md", by="bench")
        project.ledger.open_experiment(hypothesis="it sleeps", parent=None, by="bench")
    process = subprocess.Popen(
        harness_command("train", "exp-0001", "--project", str(root)),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    known = psutil.Process(process.pid)
    with open_project(root, environment, read_only=True) as project:
        while not any(run.supervisor for run in project.ledger.runs("exp-0001")):
            assert process.poll() is None, "the training did not start"
            time.sleep(0.1)
    time.sleep(3)
    began = known.cpu_times()
    time.sleep(15)
    ended = known.cpu_times()
    memory = known.memory_info().rss / 2**20
    process.terminate()
    process.wait()
    busy = (ended.user + ended.system - began.user - began.system) / 15
    return {"supervisor_mb": round(memory), "supervisor_cores": round(busy, 3)}


def rows(folder: Path, count: int) -> dict[str, float]:
    path = folder / "metrics.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            row = {
                "t": "2026-01-01T00:00:00.000Z",
                "event": "epoch",
                "run": "exp-0001/run-01",
                "attempt": 1,
                "epoch": number,
                "metrics": {"loss": 1 / (number + 1), "accuracy": 0.5, "grad_norm": 1.5},
            }
            stream.write(json.dumps(row) + "\n")
    start = time.perf_counter()
    assert sum(1 for _ in rows_in(path)) == count
    seconds = time.perf_counter() - start
    return {
        "row_bytes": round(path.stat().st_size / count),
        "row_read_us": round(seconds / count * 1e6, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=304)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        figures = facts(folder, options.facts) | rows(folder, options.rows)
        figures |= supervisor(folder)
    if options.record:
        record("constants", "python bench/constants.py --record", figures)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
