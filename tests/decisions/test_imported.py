"""Logs of other programs in the record: what they say, with their hash, and never more than
logged."""

import hashlib
import json
from pathlib import Path

import pytest

from harness.decisions.imported import import_log
from harness.errors import NotFoundError, UsageError
from harness.gates.check import check_gate, due_gate
from harness.ledger.verify import verify
from harness.views.experiments import details
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def test_what_a_log_says_is_recorded_with_its_hash_and_decides_nothing(world: World) -> None:
    project = world.project
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me")
    path = project.layout.root / "old.csv"
    path.write_text("epoch,loss,accuracy\n0,2.0,0.5\n1,nan,0.99\nepoch,loss,accuracy\n0,3.0,0.1\n")
    import_log(project, path, experiment=experiment.id, by="human:ada")
    (said,) = project.ledger.imported_logs(experiment.id)
    assert (said["path"], said["format"]) == ("old.csv", "CSV")
    assert said["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    first, second = said["runs"]
    assert (first["rows"], first["epoch"], second["metrics"]["loss"]["last"]) == (2, 1, 3.0)
    assert first["metrics"]["loss"] == {
        "last": 2.0,
        "smallest": 2.0,
        "largest": 2.0,
        "not_finite": 1,
    }
    assert [item["log"] for item in details(project, experiment)["imported"]] == ["old.csv"]
    verdict = check_gate(project, experiment.id, due_gate(project, experiment.id))
    assert "old.csv" not in json.dumps([item.plain() for item in verdict.findings])
    assert verdict.verdict.value != "PASS"
    assert verify(project.layout.ledger_db, project.layout.anchors, project.layout.facts_dir) == []


def test_what_is_no_log_or_no_experiment_is_refused(world: World) -> None:
    project = world.project
    path = project.layout.root / "prose.txt"
    path.write_text("nothing here trains\n")
    with pytest.raises(UsageError, match="holds no row"):
        import_log(project, path, experiment=None, by="human:ada")
    with pytest.raises(NotFoundError):
        import_log(project, path.with_name("missing.csv"), experiment=None, by="human:ada")
    with pytest.raises(NotFoundError, match="exp-0009"):
        import_log(project, path, experiment="exp-0009", by="human:ada")
