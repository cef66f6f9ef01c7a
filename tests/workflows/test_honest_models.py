"""Honest work about models and data: it trains or takes what was trained, is evaluated and passes,
and nothing accuses it."""

from pathlib import Path

import pytest

from tests.cli.journey import make_project
from tests.workflows.honest import Place
from tests.workflows.models import WORKS, ModelWork, Step, plan_changed
from tests.workflows.test_honest_workflows import commit, passes

LUCK = {"seeds_answer_alike", "weights_not_probed"}
"""Notes where models of several seeds happen to agree about all rows (of a pickle no other weights
are made); which seeds do hangs on the project."""


@pytest.mark.parametrize("work", WORKS, ids=lambda one: one.name)
def test_honest_models_pass(work: ModelWork, tmp_path: Path) -> None:
    place = Place(make_project(tmp_path / "project", tmp_path / "home"))
    work.prepare(place)
    plan_changed(place.root, work.plan)
    commit(place.root)
    passes(place.journey, "init")
    passes(place.journey, "plan", "approve")
    first = Step(lambda place: None, notes=work.notes, parent=None)
    for number, step in enumerate((first, *work.then), start=1):
        step.change(place)
        judged = experiment(place, f"exp-{number:04}", step, work)
        found = {finding["code"] for finding in judged["findings"]} - LUCK
        assert (judged["verdict"], found) == ("PASS", set(step.notes)), judged["findings"]
    audited = passes(place.journey, "audit")
    assert audited["changes"] == [], audited


def experiment(place: Place, name: str, step: Step, work: ModelWork) -> dict[str, object]:
    """The verdict of an experiment from its opening to its gate; afterwards it is discarded."""
    journey = place.journey
    parent = ("--parent", step.parent) if step.parent else ()
    opened = passes(journey, "experiment", "new", "--hypothesis", work.name, *parent)
    assert opened["experiment"] == name
    Path(opened["folder"], "config.yaml").write_text("model: centroids\n", "utf-8")
    how = ("--from", step.take) if step.take else ()
    trained = passes(journey, "train", name, *how)
    assert [run["status"] for run in trained["runs"]] == ["completed"] * work.seeds
    passes(journey, "evaluate", name)
    passes(journey, "experiment", "result", name, "--summary", work.summary)
    judged = journey.harness("gate", "check", name, "--json").document
    passes(journey, "gate", "reject", name, "--reason", "The next one is tried.")
    return judged
