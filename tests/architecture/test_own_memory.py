"""This repository is its own first project: what is rendered here is what its facts say, and its
priors still hold."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from source_tree import ROOT

from harness.artifacts.locate import Layout
from harness.decisions.priors import CHECK_SECONDS, Holds, check_priors
from harness.ledger.exchange import import_facts
from harness.ledger.project import Project, open_project
from harness.ledger.verify import verify
from harness.projections.refresh import refresh
from harness.rendering.standing import next_steps
from harness.settings import CONFIG, load_settings

RENDERED = ("memory", "PRIORS.md", ".harness/experiments/CHECKLIST.md")
LESSONS = ("contract", "paths", "prose", "never called", "claim")
"""A word of each lesson that the product exists for."""


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Project]:
    """The project as a clone on a new machine has it after `harness ledger import`."""
    root = tmp_path / "clone"
    shutil.copytree(ROOT / "memory" / "facts", root / "memory" / "facts")
    (root / CONFIG).parent.mkdir()
    shutil.copy(ROOT / CONFIG, root / CONFIG)
    with open_project(root, {"XDG_STATE_HOME": str(tmp_path / "state")}, restore=True) as project:
        import_facts(project.ledger, project.layout.facts_dir)
        refresh(project.ledger, project.layout, next_steps(project), everything=True)
        yield project


def rendered(root: Path) -> dict[str, bytes]:
    found = [root / name for name in RENDERED if (root / name).is_file()]
    found += [path for name in RENDERED for path in (root / name).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_what_is_committed_is_what_the_facts_say(clone: Project) -> None:
    here, there = rendered(ROOT), rendered(clone.layout.root)
    assert sorted(here) == sorted(there)
    assert [name for name, data in here.items() if there[name] != data] == []


def test_the_chain_of_facts_is_whole_and_names_no_machine_and_no_user(clone: Project) -> None:
    layout = clone.layout
    assert verify(layout.ledger_db, layout.anchors, ROOT / "memory" / "facts") == []
    facts = list(clone.ledger.facts())
    assert {fact.body()["by"] for fact in facts if fact.writer == "maintainers"} == {
        "human:maintainers"
    }
    for fact in facts:
        assert not [
            word for word in (b"/home/", b"/root/", b"/Users/", b"/tmp/") if word in fact.data
        ]


def test_the_lessons_that_the_product_exists_for_are_there_each_with_its_check(
    clone: Project,
) -> None:
    standing = clone.ledger.priors(standing=True)
    for word in LESSONS:
        assert [prior for prior in standing if word in prior.lesson], word
    assert [prior.id for prior in standing if prior.check is None] == []


@pytest.mark.timeout(1200)
def test_every_prior_holds(clone: Project) -> None:
    settings = load_settings(ROOT, {"XDG_STATE_HOME": str(clone.layout.state.parents[1])})
    own = replace(clone, settings=settings, layout=Layout(settings))
    checked = check_priors(own, [], os.environ, seconds=2 * CHECK_SECONDS)
    assert {item.prior.id: item.output for item in checked if item.holds is not Holds.YES} == {}


def test_what_is_only_of_one_machine_is_not_committed() -> None:
    ignored = (ROOT / CONFIG).with_name(".gitignore").read_text("utf-8").splitlines()
    assert {"policy.json", "receipts/", "experiments/*/runs/"} <= set(ignored)
