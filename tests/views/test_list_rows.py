"""The rows of `experiment list` and `experiment show`: of one split each, and of what is there
now."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.decisions.claimed import claim_notes
from harness.decisions.person import approve
from harness.domain.statuses import GateName, RunStatus, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.views.experiments import details
from harness.views.report import page, report, series
from harness.views.report_blocks import blocks
from harness.views.report_html import html
from harness.views.snapshot import experiment_row
from harness.views.tables import experiments_table
from tests.world import InProcess, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()


@pytest.fixture
def passed(world: World) -> str:
    """PASS on validation; held-out is evaluated and not judged."""
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment, Split.VALIDATION)
    world.result(experiment)
    assert check_gate(world.project, experiment, GateName.VALIDATION).verdict is Verdict.PASS
    evaluate(world, experiment, Split.HELD_OUT)
    return experiment


def evaluate(world: World, experiment: str, split: Split) -> None:
    evaluate_experiment(
        world.project,
        experiment,
        split,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )


def test_a_row_is_of_one_split(world: World, passed: str) -> None:
    found = world.project.ledger.experiment(passed)
    row = experiment_row(world.project, found)
    assert (row["gate"], row["split"], row["verdict"]) == (
        "validation",
        "validation",
        Verdict.PASS,
    )
    check_gate(world.project, passed, GateName.HELD_OUT)
    later = experiment_row(world.project, found)
    assert (later["gate"], later["split"]) == ("held_out", "held_out")
    assert later["score"] != row["score"]


def test_of_a_stale_verdict_is_told_what_changed_and_what_to_do(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, statuses=[RunStatus.COMPLETED, RunStatus.COMPLETED, RunStatus.FAILED])
    assert check_gate(world.project, experiment).verdict is not Verdict.PASS
    found = world.project.ledger.experiment(experiment)
    before = {finding["code"] for finding in experiment_row(world.project, found)["findings"]}
    world.train_one(experiment, world.seed(3), 0.0, RunStatus.FAILED)
    row = experiment_row(world.project, found)
    (told,) = row["findings"]
    assert (row["verdict"], told["code"]) == (Verdict.STALE, "verdict_stale")
    assert "verdict_stale" not in before
    assert "run-04" in told["message"]
    assert told["hint"].startswith(f"Run `harness gate check {experiment}`")


def test_in_a_clone_a_kept_experiment_was_checked_elsewhere(world: World, passed: str) -> None:
    check_gate(world.project, passed, GateName.HELD_OUT)
    approve(world.project, passed, by="Ada", reason="good")
    kept = world.project.ledger.experiment(passed)
    here = details(world.project, kept)
    assert (here["standing"], here["checked"]) == (Verdict.PASS, "here")
    kept_checkpoint = world.run_path(passed, "checkpoints", "run-01") / "last.json"
    whole = kept_checkpoint.read_bytes()
    kept_checkpoint.write_text("{}")
    changed = details(world.project, kept)
    assert (changed["standing"], changed["checked"]) == (Verdict.STALE, "here")
    kept_checkpoint.write_bytes(whole)
    for run in world.project.ledger.runs(passed):
        shutil.rmtree(world.run_path(passed, "checkpoints", run.id))
    clone = details(world.project, kept)
    assert (clone["standing"], clone["checked"]) == (Verdict.PASS, "elsewhere")
    made = report(world.project)
    (row,) = made["experiments"]
    told = row["held_out"]["evidence"]
    assert re.fullmatch("recomputed, .*checked elsewhere", told)
    text = " ".join(page(made).split())
    assert f"{told} - PASS on held-out" in text
    assert f"## Not isolated - {passed}: {told.removeprefix('recomputed, ')}" in text
    parts = blocks({**made, "series": series(world.project, made)})
    html_text = html("Report", parts)
    assert f"{told}</li>" in html_text
    assert f">{told}</td>" in html_text
    shown = experiments_table([experiment_row(world.project, kept)])
    assert told in " ".join(shown.split())


def test_a_claim_is_told_what_was_recomputed_or_logged(world: World, passed: str) -> None:
    def codes(**claims: str) -> list[str]:
        return [found.code for found in claim_notes(world.project, passed, claims)]

    score = experiment_row(world.project, world.project.ledger.experiment(passed))["score"]
    assert codes(accuracy=f"{score:.4f}") == []
    (wrong,) = claim_notes(world.project, passed, {"accuracy": "0.1234"})
    assert wrong.code == "claim_disagrees"
    assert f"recomputed on validation: {score:.6g}" in wrong.message
    (logged,) = claim_notes(world.project, passed, {"loss": "0.5"})
    assert logged.code == "claim_unsupported"
    assert "run-01 logged 0.5" in logged.message
    assert codes(acuracy="0.9") == ["claim_unsupported"]
    assert (
        "Did you mean accuracy?" in claim_notes(world.project, passed, {"acuracy": "0.9"})[0].hint
    )
    another = world.open_another(passed)
    (nothing,) = claim_notes(world.project, another, {"accuracy": "0.9"})
    assert f"`harness evaluate {another}`" in nothing.hint
