"""`harness ledger verify` needs no more memory for a large ledger: it reads row by row."""

import tracemalloc
from pathlib import Path

from ledger_samples import open_ledger, place, plan

from harness.domain.ids import experiment_id
from harness.ledger.facts import ExperimentMoved, ExperimentOpened, VerdictRecorded
from harness.ledger.verify import verify

FEW, MANY = 15, 150


def filled(folder: Path, count: int) -> Path:
    folder.mkdir()
    with open_ledger(folder) as ledger, ledger.transaction() as writer:
        writer.append(plan())
        for number in range(1, count + 1):
            name = experiment_id(number)
            writer.append(
                ExperimentOpened(
                    experiment=name,
                    plan="digits",
                    plan_version=1,
                    hypothesis="wider is better " * 10,
                    parent=None,
                    by="me",
                )
            )
            writer.append(
                VerdictRecorded(
                    verdict_id=f"v-{number:06d}",
                    experiment=name,
                    gate="validation",
                    verdict="FAIL",
                    findings=[],
                    evidence={f"part {part}": "1" * 64 for part in range(8)},
                    score=None,
                    tier=None,
                    comparison=None,
                )
            )
            writer.append(ExperimentMoved(experiment=name, status="discarded", why="measured"))
    return folder


def peak(folder: Path) -> int:
    tracemalloc.start()
    try:
        assert verify(place(folder), folder / "anchors") == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_peak_does_not_grow_with_the_ledger(tmp_path: Path) -> None:
    few, many = (filled(tmp_path / str(count), count) for count in (FEW, MANY))
    peak(few)  # what is loaded and compiled once
    assert peak(many) * 3 < peak(few) * MANY / FEW
