"""Minting one experiment, with every projection brought up to date, in projects of 100, 1,000 and
10,000 experiments.

    python bench/mint.py [--repeats 9] [--mints 3] [--folder DIR] [--record]

Prints each median time and its ratio to the one at the smallest size of the same run. Commits and
their syncs count. Each size gets a fresh project whose experiments were judged and closed; one line
of JSON ends the output. Exits with 1 when a ratio is beyond its aim. With --record it writes
docs/evidence/mint.json.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from _record import record, wants_record

from harness.artifacts.locate import Layout
from harness.clock import SystemClock, iso
from harness.domain.ids import experiment_id
from harness.ledger import Ledger
from harness.ledger.chain import FIRST_PREV, seal
from harness.ledger.exchange import import_facts
from harness.ledger.facts import (
    DecisionRecorded,
    ExperimentMoved,
    ExperimentOpened,
    Fact,
    PlanApproved,
    VerdictRecorded,
)
from harness.projections.refresh import refresh
from harness.settings import Settings

SIZES = (100, 1000, 10000)
AIM = 1.5
"""The largest ratio to the smallest size; beyond it the exit code is 1."""


def plan() -> PlanApproved:
    oracle = {
        "metric": "accuracy",
        "direction": "maximize",
        "tiers": {"must": 0.9},
        "seeds": 3,
        "queries": 20,
        "bits": 40.0,
    }
    content = {"name": "bench", "objective": "Measure the ledger", "oracle": oracle}
    return PlanApproved(
        name="bench",
        version=1,
        path="plan.md",
        sha256="0" * 64,
        content=content,
        splits={},
        scorer={},
        by="human",
    )


def life(number: int) -> list[Fact]:
    """An experiment that was opened, judged below the goal and discarded."""
    name = experiment_id(number)
    mean = 0.5 + number % 397 / 1000
    finding = {
        "code": "below_must",
        "message": f"accuracy {mean:.3f} is below 0.9.",
        "hint": "Try another.",
        "data": {},
    }
    score = {
        "metric": "accuracy",
        "split": "validation",
        "mean": mean,
        "n_seeds": 3,
        "evidence": "recomputed",
    }
    verdict = f"v-{number:06d}"
    return [
        ExperimentOpened(
            experiment=name,
            plan="bench",
            plan_version=1,
            hypothesis=f"a network of width {number} classifies better than the one before it",
            parent=experiment_id(number - 1) if number > 1 else None,
            by="model-builder",
        ),
        VerdictRecorded(
            verdict_id=verdict,
            experiment=name,
            gate="validation",
            verdict="FAIL",
            findings=[finding],
            evidence={"metrics": "1" * 64},
            score=score,
            tier=None,
            comparison=None,
        ),
        ExperimentMoved(experiment=name, status="judged", why="judged"),
        DecisionRecorded(
            decision=f"d-{number:04d}",
            kind="DISCARD",
            experiment=name,
            by="loop",
            context="after the verdict",
            choice="try a wider network",
            alternatives="keep it",
            reason="below must",
            confidence="high",
            verdict=verdict,
        ),
        ExperimentMoved(experiment=name, status="discarded", why="decided"),
    ]


def write_facts(folder: Path, size: int) -> None:
    """The text form of a project with `size` closed experiments, for a quick import."""
    began, prev = SystemClock().now() - timedelta(days=1), FIRST_PREV
    facts: list[Fact] = [plan(), *(fact for number in range(1, size + 1) for fact in life(number))]
    folder.mkdir(parents=True)
    with (folder / "bench.jsonl").open("wb") as stream:
        for seq, fact in enumerate(facts, 1):
            at = iso(began + timedelta(milliseconds=seq))
            sealed = seal(
                writer="bench", seq=seq, prev=prev, at=at, kind=fact.KIND, body=fact.body()
            )
            stream.write(sealed.data + b"\n")
            prev = sealed.hash


def build(folder: Path, size: int) -> tuple[Ledger, Layout]:
    """A project with `size` closed experiments and all its projections."""
    settings = Settings(
        root=folder / "project",
        state=folder / "state",
        project_id="bench",
        interpreter=None,
        memory_dir=".harness/memory",
        readable=(),
    )
    layout = Layout(settings)
    write_facts(folder / "facts", size)
    ledger = Ledger.open(
        layout.ledger_db, anchors=layout.anchors, clock=SystemClock(), writer="bench"
    )
    import_facts(ledger, folder / "facts")
    refresh(ledger, layout, "")
    return ledger, layout


def mint(ledger: Ledger, layout: Layout) -> float:
    """Seconds for one experiment and the refresh after it; then it is closed, outside the measured
    time."""
    start = time.perf_counter()
    experiment = ledger.open_experiment(
        hypothesis="one more idea, as good as any", parent=None, by="model-builder"
    )
    refresh(ledger, layout, "")
    seconds = time.perf_counter() - start
    ledger.append(ExperimentMoved(experiment=experiment.id, status="discarded", why="measured"))
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--mints", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, default=None, help="a folder on the disk to measure"
    )
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        opened = {}
        for size in SIZES:
            print(f"building a project of {size} experiments", flush=True)
            opened[size] = build(Path(folder) / str(size), size)
        times: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(
            options.repeats
        ):  # sizes alternate, so that a busy machine hits all of them
            for size in SIZES:
                times[size].append(
                    statistics.median(mint(*opened[size]) for _ in range(options.mints))
                )
        for ledger, _ in opened.values():
            ledger.close()
    medians = {size: statistics.median(values) for size, values in times.items()}
    base = medians[SIZES[0]]
    for size in SIZES:
        spread = f"{min(times[size]) * 1000:.2f} to {max(times[size]) * 1000:.2f}"
        print(
            f"N={size:>6}: {medians[size] * 1000:6.2f} ms a mint ({spread}),"
            f" {medians[size] / base:.2f} x N={SIZES[0]}"
        )
    ratios = {str(size): round(medians[size] / base, 3) for size in SIZES}
    print(f"aim: at most {AIM:g} x N={SIZES[0]}")
    if wants_record():
        figures = {f"ratio_at_{size}": ratio for size, ratio in ratios.items()}
        record("mint", "python bench/mint.py --record", figures)
    print(json.dumps({"bench": "mint", "baseline": f"N={SIZES[0]}", "ratios": ratios, "aim": AIM}))
    return int(max(ratios.values()) > AIM)


if __name__ == "__main__":
    sys.exit(main())
