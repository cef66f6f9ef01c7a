"""`harness status` starts quickly: it imports no numerical library, no pydantic, no SDK."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.statuses import CLOSED_EXPERIMENTS, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from tests.cli.journey import make_project
from tests.fixtures import world
from tests.world import InProcess, World

__all__ = ["world"]

HEAVY = {
    "sqlalchemy",
    "numpy",
    "scipy",
    "pydantic",
    "torch",
    "claude_agent_sdk",
    "mcp",
    "transformers",
}
PROGRAM = """
import sys
from harness.cli.main import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
PLAN = ("plan", "approve")
EXPERIMENT = ("experiment", "new", "--hypothesis", "A wider net is better.")


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("status", "--briefing")])
def test_status_imports_no_heavy_library(tmp_path: Path, words: tuple[str, ...]) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for command in (("init",), PLAN, EXPERIMENT):
        answer = journey.harness(*command)
        assert answer.exit_code == 0, answer.stderr
    output, modules = _status(words, journey.root, journey.environment())
    assert "exp-0001" in output
    assert "harness.cli.status" in modules
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()


@pytest.mark.parametrize("words", [("status",), ("status", "--json")])
def test_status_of_a_verdict_imports_no_heavy_library(
    world: World, words: tuple[str, ...]
) -> None:
    experiment = world.open().id
    world.train(experiment)
    evaluate_experiment(
        world.project,
        experiment,
        Split.VALIDATION,
        InProcess(),
        admit=require_validation_passed,
    )
    world.result(experiment, accuracy="0.98")
    verdict = check_gate(world.project, experiment)
    assert verdict.evidence
    assert world.project.ledger.experiment(experiment).status not in CLOSED_EXPERIMENTS
    output, modules = _status(words, world.root, {**world.environment, "PATH": os.environ["PATH"]})
    assert verdict.verdict in output
    assert Verdict.STALE not in output
    assert "harness.gates.collect" in modules
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()


def _status(
    words: tuple[str, ...], root: Path, environment: dict[str, str]
) -> tuple[str, list[str]]:
    """Its output, and the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr.split()
