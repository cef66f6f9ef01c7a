"""`harness gc` on a small project: what goes, what stays, and that a verdict is the same before and
after."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from harness.artifacts.content import hash_path
from harness.audit.changes import recorded_changes
from harness.cli.main import harness
from harness.domain.statuses import ExperimentStatus, GateName, Split, Verdict
from harness.errors import RefusedError
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.ledger.facts import CheckpointRecorded, CheckpointRemoved
from harness.run_logger import RunLogger
from harness.runs.lock import supervising
from harness.training.checkpoint_store import CheckpointStore
from harness.views.experiments import details
from tests.world import InProcess, World

RUN = ".harness/experiments/exp-0001/runs/run-01"


def four_epochs(log: RunLogger, folder: Path, cut: float) -> None:
    with log:
        log.start(total_epochs=4)
        for epoch, accuracy in enumerate((0.5, 0.9, 0.6, 0.7)):
            log.epoch(epoch, {"accuracy": accuracy})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, epoch=1, final=True)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One experiment; its first run saved after four epochs, and told of its rows as if they were a
    checkpoint."""
    made = World.make(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    made.open()
    made.train("exp-0001", log=four_epochs)
    store = CheckpointStore(made.root / RUN / "checkpoints")
    for epoch in range(4):
        told = {"epoch": epoch, "step": epoch, "done": True, "kept": True, "value": None}
        files = {
            "model.pt": lambda path, epoch=epoch: path.write_bytes(b"w%d" % epoch),
            "training.pt": large,
        }
        saved = store.save(f"epoch-{epoch:04d}", files, described=told)
        record(made, saved.folder / "model.pt", epoch)
    record(made, made.root / RUN / "metrics.jsonl", 0)
    evaluate_experiment(
        made.project,
        "exp-0001",
        Split.VALIDATION,
        InProcess(),
        environment={},
        shuffle_seed=7,
        admit=require_validation_passed,
    )
    made.result("exp-0001")
    yield made
    made.project.close()


def large(path: Path) -> None:
    path.write_bytes(b"o" * 5000)


def record(world: World, path: Path, epoch: int) -> None:
    where = {
        "experiment": "exp-0001",
        "run": "run-01",
        "path": world.project.layout.relative(path),
    }
    world.project.ledger.append(
        CheckpointRecorded(
            **where,
            checkpoint=hash_path(path),
            bytes=path.stat().st_size,
            epoch=epoch,
            final=False,
        )
    )


def gc(world: World, *words: str) -> dict[str, Any]:
    ended = CliRunner().invoke(harness, ["gc", *words, "--project", str(world.root), "--json"])
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = orjson.loads(ended.stdout)
    return document


def names(document: dict[str, Any]) -> list[str]:
    return sorted(Path(item["path"]).name for item in document["removed"])


def folders(world: World) -> list[str]:
    return sorted(
        path.name for path in (world.root / RUN / "checkpoints").iterdir() if path.is_dir()
    )


def test_what_nothing_rests_on_goes_and_the_verdict_stays(world: World, tmp_path: Path) -> None:
    first = check_gate(world.project, "exp-0001", GateName.VALIDATION)
    assert first.verdict is Verdict.PASS, first.findings
    place, copy = world.root / RUN / "checkpoints", tmp_path / "before"
    shutil.copytree(place, copy)
    before = {path: path.read_bytes() for path in world.root.rglob("*") if path.is_file()}
    facts = world.project.ledger.position()

    dry = gc(world, "--dry-run")
    assert {path: path.read_bytes() for path in world.root.rglob("*") if path.is_file()} == before
    assert world.project.ledger.position() == facts
    with supervising(world.project.layout, "exp-0001"):
        assert gc(world)["removed"] == []
    done = gc(world, "exp-0001")
    assert done == {**dry, "dry_run": False}
    assert (names(done), folders(world)) == (
        ["epoch-0000", "epoch-0002"],
        ["epoch-0001", "epoch-0003"],
    )
    assert done["bytes"] > 10_000
    assert [item["sha256"] for item in done["removed"]] == [
        hash_path(copy / name) for name in names(done)
    ]
    why = {
        Path(item["path"]).name: item["why"] for item in done["kept"] if "run-01" in item["path"]
    }
    assert set(why) == {"metrics.jsonl", "last.json", "epoch-0001", "epoch-0003"}
    for name, word in (
        ("metrics.jsonl", "outside"),
        ("last.json", "read it"),
        ("epoch-0001", "best"),
    ):
        assert word in why[name]
    assert check_gate(world.project, "exp-0001", GateName.VALIDATION) == first
    assert list(recorded_changes(world.project)) == [], "what gc recorded is no change"
    shown = details(world.project, world.project.ledger.experiment("exp-0001"))["checkpoints"]
    lineage = [(item["run"], item["epoch"]) for item in shown if item["removed"] is not None]
    assert lineage == [("run-01", 0), ("run-01", 2)]

    # as a kill leaves it: recorded and still there, and set aside and still there
    facts = world.project.ledger.position()
    shutil.copytree(copy / "epoch-0000", place / "epoch-0000")
    shutil.copytree(copy / "epoch-0002", place / ".epoch-0002.removed")
    assert names(gc(world)) == names(done)
    assert (folders(world), world.project.ledger.position()) == (
        ["epoch-0001", "epoch-0003"],
        facts,
    )
    assert gc(world)["removed"] == []


def test_of_a_discarded_experiment_only_what_was_read_stays(world: World) -> None:
    late = world.train_one("exp-0001", world.seed(1), 0.01)  # never evaluated
    (final,) = world.project.ledger.checkpoints("exp-0001", late.id)
    gone = {"experiment": "exp-0001", "run": late.id, "checkpoint": final.id, "path": final.path}
    with pytest.raises(RefusedError, match="final one"):
        world.project.ledger.append(
            CheckpointRemoved(**gone, sha256=final.id, bytes=1, by="agent")
        )
    (world.root / RUN / "checkpoints/epoch-0001/model.pt").write_bytes(b"other")
    world.project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "worse")
    assert names(gc(world)) == ["epoch-0000", "epoch-0002", "epoch-0003", "last.json"]
    assert folders(world) == ["epoch-0001"], "other bytes than were recorded are evidence"
    assert not (world.root / final.path).exists()
    assert (world.root / RUN / "checkpoints/last.json").exists()
    assert [item.path for item in recorded_changes(world.project)] == []
    codes = {
        item.code for item in check_gate(world.project, "exp-0001", GateName.VALIDATION).findings
    }
    assert "checkpoint_removed" in codes
    assert "checkpoint_changed" not in codes
    shown = details(world.project, world.project.ledger.experiment("exp-0001"))["checkpoints"]
    assert sum(item["removed"] is not None for item in shown) == 4
    unknown = CliRunner().invoke(harness, ["gc", "exp-0009", "--project", str(world.root)])
    assert "exp-0009" in str(unknown.exception)
