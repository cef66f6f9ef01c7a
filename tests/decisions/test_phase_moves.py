"""Phases are passed by evidence, by name and reason without it, and opened again; all recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.contract.phases import PHASES
from harness.decisions.experiments import decide
from harness.decisions.phases import (
    MOST_BY_AGENTS,
    note_phase,
    pass_phase,
    reopen_phase,
    require_due,
)
from harness.domain.statuses import DecisionKind
from harness.errors import RefusedError, UsageError
from harness.ledger.phases import due_phase, phase_line, phase_views
from harness.ledger.project import Project
from tests.world import PLAN, World

GATED = PLAN.replace("loop: {", "gates: {phases: true}\nloop: {")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path, GATED)
    yield made
    made.project.close()


def due(project: Project) -> str | None:
    project.clock.sleep(1.0)
    view = due_phase(project.ledger, project.plan())
    return None if view is None else view.name


def note(project: Project, text: str = "60 rows, two labels, no duplicate.") -> None:
    note_phase(project, text=text, sources=[], by="data-engineer", session="data-0-1")


def test_a_note_keeps_no_key(world: World) -> None:
    key = "hf_" + "q9Zt" * 6
    note(world.project, f"Rows come with {key}.")
    (noted, _), *_ = world.project.ledger.phase_notes(world.project.plan().name)
    assert noted.text == "Rows come with [SECRET]."


def passed(project: Project, **more: Any) -> str:
    return pass_phase(project, by="harness", reason="Its evidence is there.", **more).name


def kept(world: World) -> None:
    """An experiment that a person keeps."""
    opened = world.open().id
    world.project.ledger.move_experiment(opened, "judged", "a test")
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    for kind in (DecisionKind.OVERRIDE, DecisionKind.KEEP):
        decide(
            world.project,
            kind=kind,
            experiment=opened,
            by="human:ada",
            confidence="high",
            **words,
        )


def test_a_plan_without_the_key_only_shows_them(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    with world.project as project:
        assert due(project) is None
        views = phase_views(project.ledger, project.plan())
        assert [view.name for view in views] == ["data", "train", "analyse", "package"]
        assert "plan" in views[0].evidence
        assert phase_line(project.ledger, project.plan()) == ""
        with pytest.raises(RefusedError) as refused:
            require_due(project)
        assert refused.value.code == "phases_shown_only"


def test_a_phase_is_passed_by_its_evidence_in_order(world: World) -> None:
    project = world.project
    assert due(project) == "data"
    with pytest.raises(RefusedError) as refused:
        passed(project)
    assert refused.value.code == "phase_lacks_evidence"
    note(project)
    assert passed(project) == "data"
    assert due(project) == "train"
    with pytest.raises(RefusedError):
        note(project)
    kept(world)
    assert passed(project) == "train"
    assert due(project) == "analyse"
    made = [one for one in project.ledger.decisions() if one.kind is DecisionKind.PHASE]
    assert [one.choice for one in made] == ["It is passed.", "It is passed."]
    assert "analyse, lacks note" in phase_line(project.ledger, project.plan())


def test_a_persons_reason_is_the_note_and_an_override_is_shown_for_ever(world: World) -> None:
    project = world.project
    pass_phase(project, by="human:ada", reason="I counted the rows.", person=True)
    (noted,) = project.ledger.phase_notes(project.plan().name)
    assert noted[0].text == "I counted the rows."
    assert due(project) == "train"
    with pytest.raises(RefusedError):
        pass_phase(project, by="human:ada", reason="No time.", person=True)
    pass_phase(project, by="human:ada", reason="No time.", person=True, override=True)
    newest = project.ledger.decisions()[-1]
    assert (newest.kind, newest.by, newest.reason) == (
        DecisionKind.OVERRIDE,
        "human:ada",
        "No time.",
    )
    kept(world)  # the evidence comes later; the override stays what it was
    view = phase_views(project.ledger, project.plan())[1]
    assert view.passed is not None
    assert (view.passed.override, list(view.passed.missing)) == (True, ["kept"])


def test_an_earlier_phase_is_opened_again_with_what_rests_on_it(world: World) -> None:
    project = world.project
    note(project)
    passed(project)
    kept(world)
    passed(project)
    assert due(project) == "analyse"
    reopen_phase(project, "data", by="analyst", reason="Rows leak.", agent=True)
    assert due(project) == "data"
    with pytest.raises(RefusedError):
        passed(project)  # the note of before does not count
    note(project, "The leaking rows are named.")
    assert passed(project) == "data"
    assert due(project) == "train"
    with pytest.raises(RefusedError):
        passed(project)  # nor does what was kept before


def test_agents_open_phases_again_a_few_times_and_never_an_open_one(world: World) -> None:
    project = world.project
    with pytest.raises(RefusedError) as refused:
        reopen_phase(project, "data", by="analyst", reason="Why not.", agent=True)
    assert refused.value.code == "phase_not_passed"
    with pytest.raises(UsageError):
        reopen_phase(project, "survey", by="analyst", reason="Not of this workflow.", agent=True)
    for number in range(MOST_BY_AGENTS + 1):
        note(project, f"Look {number}")
        passed(project)
        project.clock.sleep(1.0)
        if number < MOST_BY_AGENTS:
            reopen_phase(project, "data", by="analyst", reason=f"Look {number}", agent=True)
            project.clock.sleep(1.0)
    with pytest.raises(RefusedError) as refused:
        reopen_phase(project, "data", by="analyst", reason="Once more.", agent=True)
    assert refused.value.code == "phase_reopened_too_often"
    reopen_phase(project, "data", by="human:ada", reason="I want it.", agent=False)
    assert due(project) == "data"


@pytest.mark.parametrize(
    "workflow", ["classical-ml", "deep-learning", "post-training", "research"]
)
def test_every_workflow_ends_in_a_package(workflow: str) -> None:
    names = [phase.name for phase in PHASES if workflow in phase.needs]
    assert names[-3:] == ["train", "analyse", "package"]
    assert ("survey" in names) is (workflow == "research")
