"""An experiment is trained, evaluated, judged and recovered where its files are."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs_support import GOOD, PLAN, Unconfined

from harness.artifacts.trees import this_tree
from harness.audit.changes import recorded_changes
from harness.decisions.experiments import open_experiment, record_result, undecided_experiment
from harness.decisions.person import approve, reject
from harness.domain.grade import PERSON
from harness.domain.statuses import RunStatus, Split
from harness.errors import RefusedError
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.plans.approved import declared
from harness.runs.closing import recover
from harness.runs.take import take
from harness.runs.train import train
from tests.blobs import make_root, own_environment
from tests.working_trees import add_worktree, clone, commit_all, git

HOW = {
    "sandbox": Unconfined(),
    "session": None,
    "inherited": {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
}


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with an approved plan, all but its data in git, and of its state."""
    folder = tmp_path_factory.mktemp("approved")
    root = make_root(folder / "main", plan=PLAN, train=GOOD)
    (root / ".gitignore").write_text("data/\n")
    with open_project(root, own_environment(folder), caller=PERSON) as opened:
        approve_plan(opened, root / "plan.md", by="tester")
    commit_all(root)
    return folder


@pytest.fixture
def main(approved: Path, tmp_path: Path) -> Iterator[Project]:
    shutil.copytree(approved, tmp_path, dirs_exist_ok=True)
    with open_project(tmp_path / "main", own_environment(tmp_path), caller=PERSON) as opened:
        this_tree(opened.layout)
        yield opened


@pytest.fixture
def side(main: Project, tmp_path: Path) -> Iterator[Project]:
    root = add_worktree(main.layout.root, tmp_path / "a side")
    with open_project(root, own_environment(tmp_path), caller=PERSON) as opened:
        yield opened


def begin(project: Project, hypothesis: str = "blobs differ") -> str:
    return open_experiment(
        project, hypothesis=hypothesis, rationale="-", parent=None, by="tester"
    ).id


def refusals(project: Project, experiment: str) -> list[RefusedError]:
    """Of everything that needs the experiment's files."""
    calls = (
        lambda: train(project, experiment, None, **HOW),  # type: ignore[arg-type]
        lambda: take(project, experiment, [experiment], **HOW),  # type: ignore[arg-type]
        lambda: evaluate_experiment(
            project, experiment, Split.VALIDATION, Unconfined(), admit=require_validation_passed
        ),
        lambda: check_gate(project, experiment),
        lambda: record_result(
            project, experiment, claims={}, summary="-", shortfalls=[], by="tester"
        ),
        lambda: approve(project, experiment, by="Ada", reason="good"),
    )
    errors = []
    for call in calls:
        with pytest.raises(RefusedError) as caught:
            call()
        errors.append(caught.value)
    return errors


@pytest.mark.parametrize("turned", [False, True], ids=["of the worktree", "of the main tree"])
def test_another_trees_experiment_is_refused_with_the_way(
    main: Project, side: Project, turned: bool
) -> None:
    here, there = (side, main) if turned else (main, side)
    experiment = begin(there)
    before = here.ledger.position()
    for error in refusals(here, experiment):
        assert error.code == "other_tree"
        assert str(there.layout.root) in error.message
        assert f"`cd {shlex.quote(str(there.layout.root))}`" in error.hint
    assert here.ledger.position() == before, "nothing is recorded"
    assert not (here.layout.experiment(experiment) / "code.json").exists()
    assert there.require_here(experiment).id == experiment


def test_each_tree_has_an_open_experiment_of_its_own(main: Project, side: Project) -> None:
    first, second = begin(main), begin(side, "they do not")
    assert [[one.id for one in tree.undecided()] for tree in (main, side)] == [[first], [second]]
    for project in (main, side):
        with pytest.raises(RefusedError, match="only one experiment of a working tree") as caught:
            begin(project, "a third")
        assert caught.value.code == "experiment_undecided"
    assert begin(main) == first, "asked again, the same"
    reject(side, first, by="Ada", reason="a decision needs no files")
    assert undecided_experiment(main) is None


def test_the_tree_and_its_commit_are_in_the_fact(main: Project, side: Project) -> None:
    tree = main.ledger.experiment(begin(side)).tree
    assert tree is not None
    assert (tree.worktree, tree.branch) == ("a-side", "trial")
    assert tree.commit == git(side.layout.root, "rev-parse", "HEAD")
    opened = [fact for fact in main.ledger.facts() if fact.kind == "experiment_opened"]
    assert str(main.layout.root.parent) not in opened[0].data.decode(), "no path of this machine"


def test_a_run_that_another_tree_trains_is_not_lost_here(main: Project, side: Project) -> None:
    experiment = begin(side)
    run = side.ledger.register_run(
        experiment=experiment,
        seed=1,
        argv=["x"],
        code="c",
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
        caller=str(PERSON),
    )
    assert recover(main) == []
    assert not main.layout.experiment(experiment).exists()
    (found,) = recover(side)
    assert found.code == "run_recovered"
    assert side.ledger.run(experiment, run.id).status is RunStatus.LOST


def test_a_run_of_another_tree_keeps_its_minutes_of_the_budget(
    main: Project, side: Project
) -> None:
    plan = main.layout.root / "plan.md"
    short = re.sub(r"total_minutes: [\d.]+", "total_minutes: TOTAL", plan.read_text())
    most = float(re.findall(r"run_minutes: ([\d.]+)", short)[0])
    plan.write_text(short.replace("TOTAL", f"{most:g}"))
    approve_plan(main, plan, by="tester")
    commit_all(main.layout.root)
    git(side.layout.root, "merge", "-q", "main")
    theirs = begin(side)
    run = side.ledger.register_run(
        experiment=theirs,
        seed=1,
        argv=["x"],
        code="c",
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
        caller=str(PERSON),
    )
    own = begin(main)
    (found,) = train(main, own, None, **HOW).findings  # type: ignore[arg-type]
    assert found.code == "budget_spent"
    assert f"{theirs}/{run.id}" in found.message
    assert main.ledger.runs(own) == []
    recover(side)
    assert train(main, own, None, **HOW).ok  # type: ignore[arg-type]


def test_of_a_tree_that_is_gone_the_way_is_to_open_it_anew(main: Project, side: Project) -> None:
    experiment = begin(side)
    git(main.layout.root, "worktree", "remove", "--force", str(side.layout.root))
    with pytest.raises(RefusedError, match="a folder that is gone") as caught:
        train(main, experiment, None, **HOW)  # type: ignore[arg-type]
    assert f"harness gate reject {experiment}" in caught.value.hint
    reject(main, experiment, by="Ada", reason="its tree is gone")
    again = open_experiment(
        main, hypothesis="once more", rationale="-", parent=experiment, by="tester"
    )
    assert main.require_here(again.id).parent == experiment


def test_a_clone_on_this_machine_is_another_tree(main: Project, tmp_path: Path) -> None:
    experiment = begin(main)
    root = clone(main.layout.root, tmp_path / "clone")
    with open_project(root, own_environment(tmp_path), caller=PERSON) as opened:
        with pytest.raises(RefusedError) as caught:
            train(opened, experiment, None, **HOW)  # type: ignore[arg-type]
        assert f"cd {main.layout.root}" in caught.value.hint
        assert begin(opened, "mine") == "exp-0002"


def test_the_lines_of_the_refusal_lead_to_a_training(main: Project, side: Project) -> None:
    experiment = begin(side)
    with pytest.raises(RefusedError) as caught:
        train(side, experiment, None, **HOW)  # type: ignore[arg-type]
    for line in caught.value.hint.split("`")[1::2]:
        subprocess.run(["sh", "-c", line], check=True)
    assert all((side.layout.root / path).is_file() for path in declared(side.plan()))
    assert train(side, experiment, None, **HOW).ok  # type: ignore[arg-type]
    assert side.layout.run(experiment, "run-01", "metrics").is_file()
    assert not main.layout.run(experiment, "run-01").exists()
    assert [change.path for change in recorded_changes(main)] == [], "nobody is accused"


def test_data_that_git_ignores_is_missed_by_its_name(main: Project, side: Project) -> None:
    experiment = begin(side)
    with pytest.raises(RefusedError) as caught:
        train(side, experiment, None, **HOW)  # type: ignore[arg-type]
    assert caught.value.code == "data_not_here"
    assert "data/train.npz is not in this working tree" in caught.value.message
    link = caught.value.hint.split("ln -s ")[1].split("`")[0]
    assert str(main.layout.root / "data/train.npz") in link
    shutil.copytree(main.layout.root / "data", side.layout.root / "data")
    (side.layout.root / "data" / "train.npz").write_bytes(b"other")
    with pytest.raises(RefusedError) as caught:
        train(side, experiment, None, **HOW)  # type: ignore[arg-type]
    assert caught.value.code == "split_changed", "what is here and differs is a change"
    (main.layout.root / "data" / "train.npz").unlink()
    with pytest.raises(RefusedError) as caught:
        train(main, begin(main, "mine"), None, **HOW)  # type: ignore[arg-type]
    assert caught.value.code == "split_changed", "so is what was here and is gone"
