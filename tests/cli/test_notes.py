"""What was noticed in the metrics is told by `gate check` and `experiment show`, beside the
verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import experiment as experiment_verbs
from harness.cli import gate as gate_verbs
from harness.domain.statuses import Split
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import require_validation_passed
from harness.run_logger import RunLogger
from tests.world import InProcess, World

NOTE = "exp-0001/run-01: 1 values are not finite, the first at 0"


def with_a_nan(log: RunLogger, folder: Path, cut: float) -> None:
    with log:
        log.start()
        log.epoch(0, {"grad_norm": float("nan")})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, final=True)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    world = World.make(tmp_path)
    opened = world.open().id
    world.train(opened, log=with_a_nan)
    evaluate_experiment(
        world.project,
        opened,
        Split.VALIDATION,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )
    world.result(opened)
    world.project.close()
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return world.root


def asked(group: Any, *words: str) -> str:
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_notes_stand_beside_the_verdict_and_change_nothing(root: Path) -> None:
    check = ("check", "exp-0001", "--project", str(root))
    assert f"  noticed: {NOTE}\n" in asked(gate_verbs.command, *check)
    document = json.loads(asked(gate_verbs.command, *check, "--json"))
    assert (document["verdict"], document["notes"][0], document["findings"]) == ("PASS", NOTE, [])
    show = ("show", "exp-0001", "--project", str(root))
    assert f"  noticed: {NOTE}\n" in asked(experiment_verbs.command, *show)
    assert (
        json.loads(asked(experiment_verbs.command, *show, "--json"))["verdicts"][-1]["notes"][0]
        == NOTE
    )
