"""How a loop of the real CLI ends: agents that stop at once, no gain, a person who approves, rejects
or overrides; each in the right state, with the right decisions."""

import os
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, play, write_scenario

from harness.decisions.person import approve, reject
from harness.domain.statuses import DecisionKind, ExperimentStatus, SandboxKind
from harness.ledger.project import Project
from harness.ledger.verify import verify
from harness.loop.steps import StopReason
from tests.centroids import TRAIN

WRONG = TRAIN.replace("np.save(path, centroids)", "np.save(path, centroids[::-1])")
"""Worse than guessing: below every tier, and no improvement."""


def planned(root: Path, **changes: str) -> Project:
    text = PLAN
    for change in changes.values():
        before, after = change.split(" -> ")
        assert before in text
        text = text.replace(before, after)
    made = make_project(root)
    (made / "plan.md").write_text(text, "utf-8")
    return approved(made, os.environ)


def kinds(project: Project) -> list[DecisionKind]:
    return [one.kind for one in project.ledger.decisions()]


def test_a_builder_that_stops_at_once_is_reminded_and_three_end_the_loop(
    sandbox: SandboxKind, tmp_path: Path
) -> None:
    def idle(attempt: int) -> dict[str, Any]:
        turns = [{"text": "All is done."}, {"text": "Nothing is left.", "expect": "start_run"}]
        return {"role": "model-builder", "experiment": 1, "attempt": attempt, "turns": turns}

    with planned(tmp_path / "idle") as project:
        scenario = write_scenario(tmp_path / "s.yaml", *map(idle, (1, 2, 3)), oracle(1))
        ended = play(project, scenario, sandbox=sandbox).ended
        assert ended.reason == StopReason.FAILURES
        assert "model-builder sessions of experiment 1" in ended.detail
        assert project.ledger.experiments() == []
        assert [one.outcome for one in project.ledger.sessions()] == ["finished"] * 3
        assert kinds(project) == []


def test_no_gain_for_as_long_as_the_plan_is_patient_ends_the_loop(
    sandbox: SandboxKind, tmp_path: Path
) -> None:
    with planned(tmp_path / "flat", patience="patience: 3 -> patience: 1") as project:
        scenario = write_scenario(
            tmp_path / "s.yaml", builder(1, train=WRONG), oracle(1), builder(2), oracle(2)
        )
        ended = play(project, scenario, sandbox=sandbox).ended
        assert ended.reason == StopReason.PATIENCE
        (one,) = project.ledger.experiments()
        assert one.status is ExperimentStatus.DISCARDED
        assert kinds(project) == [DecisionKind.DISCARD]


@pytest.mark.parametrize(
    ("said", "reason", "status"),
    [
        (DecisionKind.APPROVE, StopReason.TARGET, ExperimentStatus.KEPT),
        (DecisionKind.REJECT, StopReason.BUDGET, ExperimentStatus.DISCARDED),
        (DecisionKind.OVERRIDE, StopReason.TARGET, ExperimentStatus.KEPT),
    ],
)
def test_supervised_it_waits_and_does_what_a_person_says(
    said: DecisionKind,
    reason: StopReason,
    status: ExperimentStatus,
    sandbox: SandboxKind,
    tmp_path: Path,
) -> None:
    changes = {
        "mode": "loop: { -> gates: {mode: supervised}\nloop: {",
        "experiments": "experiments: 3 -> experiments: 1",
    }
    with planned(tmp_path / "asked", **changes) as project:
        scenario = write_scenario(tmp_path / "s.yaml", builder(1), oracle(1), builder(2))
        waiting = play(project, scenario, sandbox=sandbox).ended
        assert waiting.reason == StopReason.WAITING
        assert "passed both gates" in waiting.detail
        assert kinds(project) == []
        if said is DecisionKind.REJECT:
            reject(project, "exp-0001", by="human:ada", reason="It is too slow.")
        else:
            override = said is DecisionKind.OVERRIDE
            approve(project, "exp-0001", by="human:ada", reason="It is enough.", override=override)
        ended = play(project, scenario, sandbox=sandbox).ended
        assert ended.reason == reason, ended.detail
        (one,) = project.ledger.experiments()
        assert one.status is status
        assert kinds(project)[0] is said
        assert len(project.ledger.sessions()) == 2, "no further session was begun"
        assert verify(project.layout.ledger_db, project.layout.anchors) == []
