import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.git import git_line
from harness.artifacts.vault_key import vault_key
from harness.errors import HarnessError, NotFoundError, PlanError, RefusedError
from harness.files import sha256_file
from harness.ledger.project import Project, open_project
from harness.plans import approval as plans
from harness.plans.approval import approve_plan, require_approved
from harness.plans.approved import data_hashes, data_paths, frozen_changes, objective_of
from harness.plans.tables import read_table, write_table
from tests.blobs import PLAN, table

SCORER = """\
import json
from helpers import weights
def score(x):
    return weights.of(x)
"""


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git_line(), *identity, *arguments], cwd=root, check=True, capture_output=True)


def codes(project: Project) -> list[str]:
    return [finding.code for finding in frozen_changes(project, project.plan())]


def with_scorer(root: Path) -> None:
    (root / "judge/helpers").mkdir(parents=True)
    (root / "judge/score.py").write_text(SCORER)
    (root / "judge/helpers/__init__.py").write_text("")
    (root / "judge/helpers/weights.py").write_text("from . import table\nof = table.of\n")
    (root / "judge/helpers/table.py").write_text("def of(x):\n    return x\n")
    (root / "judge/unused.py").write_text("x = 1\n")
    text = PLAN.replace("scorer: accuracy", "scorer: judge/score.py").replace(
        "metric: accuracy", "metric: weighted"
    )
    (root / "plan.md").write_text(text)


def keyed(project: Project, path: Path) -> str:
    return vault_key(project.layout.vault).of(sha256_file(path))


def test_approval_freezes_the_plan_and_moves_held_out(project: Project, root: Path) -> None:
    bytes_before = (root / "data/held_out.npz").read_bytes()
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert (approved.name, approved.version, approved.path, approved.by) == (
        "blobs",
        1,
        "plan.md",
        "ada",
    )
    assert not (root / "data/held_out.npz").exists()
    held_out = approved.splits["held_out"]
    moved = project.layout.state / held_out["vault"]
    assert moved.read_bytes() == bytes_before
    # By a keyed hash: whoever guesses the labels does not find them by the plan's fact.
    assert moved.name == f"{keyed(project, moved)}.npz" == f"{held_out['sha256']}.npz"
    assert sha256_file(moved) not in json.dumps(approved.splits)
    assert (held_out["rows"], held_out["inputs"], held_out["label"], held_out["id"]) == (
        40,
        ["x"],
        "y",
        "row",
    )
    assert approved.splits["train"] == {
        "path": "data/train.npz",
        "sha256": sha256_file(root / "data/train.npz"),
        "rows": 60,
        "inputs": ["x"],
        "label": "y",
        "id": "row",
    }
    validation = project.layout.state / approved.splits["validation"]["vault"]
    assert sha256_file(validation) == approved.splits["validation"]["sha256"]
    assert (project.layout.objects / approved.sha256).read_text() == PLAN
    assert (approved.scorer["files"], approved.scorer["entry"]) == ({}, None)
    assert codes(project) == []
    assert data_paths(approved) == ("data/held_out.npz", "data/train.npz", "data/validation.npz")
    assert data_hashes(approved)["held_out"] == held_out["sha256"]
    assert objective_of(project.plan()).metric == "accuracy"


def test_no_plan_says_how_to_approve_one(project: Project) -> None:
    with pytest.raises(RefusedError, match=r"No plan is approved.*harness plan approve"):
        project.plan()


def test_approving_again_changes_nothing(project: Project, root: Path) -> None:
    first = approve_plan(project, root / "plan.md", by="ada")
    assert approve_plan(project, root / "plan.md", by="ada") == first
    assert len(project.ledger.plans()) == 1


def test_a_changed_plan_is_the_next_version_and_finds_its_held_out(
    project: Project, root: Path
) -> None:
    first = approve_plan(project, root / "plan.md", by="ada")
    (root / "plan.md").write_text(PLAN.replace("experiments: 3", "experiments: 9"))
    second = approve_plan(project, root / "plan.md", by="ada")
    assert (second.version, second.splits) == (2, first.splits)
    assert codes(project) == []


def test_a_new_held_out_file_gives_a_new_version(project: Project, root: Path) -> None:
    first = approve_plan(project, root / "plan.md", by="ada")
    other = PLAN.replace("data/held_out.npz", "data/held_out_2.npz")
    (root / "plan.md").write_text(other)
    write_table(root / "data/held_out_2.npz", table(25, seed=9))
    second = approve_plan(project, root / "plan.md", by="ada")
    assert second.version == 2
    assert second.splits["held_out"]["rows"] == 25
    (root / "plan.md").write_text(other + "\nMore words.\n")
    third = approve_plan(project, root / "plan.md", by="ada")
    assert third.splits["held_out"] == second.splits["held_out"] != first.splits["held_out"]


@pytest.mark.parametrize("cut", ["copied", "noted", "moved"])
def test_a_killed_approval_is_finished_by_the_next(
    project: Project, root: Path, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        target = {"copied": "atomic_write", "noted": "Path.unlink", "moved": ""}[cut]
        if cut == "moved":
            patch.setattr(plans, "_record", die)
        else:
            patch.setattr(f"harness.plans.held_out.{target}", die)
        with pytest.raises(Killed):
            approve_plan(project, root / "plan.md", by="ada")
    assert project.ledger.plan() is None
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert not (root / "data/held_out.npz").exists()
    assert (
        keyed(project, project.layout.state / approved.splits["held_out"]["vault"])
        == approved.splits["held_out"]["sha256"]
    )


@pytest.mark.parametrize("known", ["index", "history", "objects"])
def test_held_out_that_git_knows_is_refused(project: Project, root: Path, known: str) -> None:
    git(root, "init", "-q")
    git(root, "add", "data/held_out.npz")
    if known == "history":
        git(root, "commit", "-q", "-m", "x")
        git(root, "rm", "-q", "--cached", "data/held_out.npz")
        git(root, "commit", "-q", "-m", "y")
        write_table(root / "data/held_out.npz", table(41, seed=7))
    if known == "objects":
        git(root, "rm", "-q", "--cached", "data/held_out.npz")
    with pytest.raises(RefusedError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "held_out_tracked"
    assert (root / "data/held_out.npz").exists()
    assert project.ledger.plan() is None


def test_held_out_beside_git_that_does_not_know_it_is_moved(project: Project, root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "train.py")
    approve_plan(project, root / "plan.md", by="ada")
    assert not (root / "data/held_out.npz").exists()


def test_a_broken_repository_is_refused_rather_than_taken_for_none(
    project: Project, root: Path
) -> None:
    (root / ".git").mkdir()
    with pytest.raises(HarnessError, match="git does not accept it"):
        approve_plan(project, root / "plan.md", by="ada")
    assert (root / "data/held_out.npz").exists()


@pytest.mark.parametrize("place", ["copy.bin", "node_modules/deep/x", ".harness/x", "link"])
def test_an_equal_copy_is_refused_and_named(
    project: Project, root: Path, tmp_path: Path, place: str
) -> None:
    source = root / "data/held_out.npz"
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    if place == "link":
        shutil.copy(source, tmp_path / "elsewhere")
        (root / place).symlink_to(tmp_path / "elsewhere")
    else:
        shutil.copy(source, root / place)
    with pytest.raises(RefusedError, match=place) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "held_out_copied"
    assert source.exists()


def test_held_out_behind_a_link_is_refused(project: Project, root: Path, tmp_path: Path) -> None:
    shutil.move(root / "data/held_out.npz", tmp_path / "real.npz")
    (root / "data/held_out.npz").symlink_to(tmp_path / "real.npz")
    with pytest.raises(RefusedError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "held_out_is_link"


def test_a_missing_held_out_file_is_named(project: Project, root: Path) -> None:
    (root / "data/held_out.npz").unlink()
    with pytest.raises(PlanError, match=r"data/held_out\.npz does not exist"):
        approve_plan(project, root / "plan.md", by="ada")


def test_a_damaged_vault_is_an_error_not_a_plan(project: Project, root: Path) -> None:
    approved = approve_plan(project, root / "plan.md", by="ada")
    moved = project.layout.state / approved.splits["held_out"]["vault"]
    moved.chmod(0o600)
    moved.write_bytes(b"else")
    assert codes(project) == ["split_changed"]
    (root / "plan.md").write_text(PLAN + "\n")
    with pytest.raises(HarnessError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "object_damaged"


def test_a_damaged_note_hides_no_good_one_and_is_named_when_it_matters(
    project: Project, root: Path
) -> None:
    first = approve_plan(project, root / "plan.md", by="ada")
    (project.layout.held_out / "0.json").write_text("")
    (root / "plan.md").write_text(PLAN + "\n")
    assert approve_plan(project, root / "plan.md", by="ada").splits == first.splits
    note = project.layout.held_out / f"{first.splits['held_out']['sha256']}.json"
    note.write_text('{"path": ')
    (root / "plan.md").write_text(PLAN + "\n\n")
    with pytest.raises(HarnessError, match=rf"damaged: .*{note.name}\.") as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "object_damaged"
    assert note.read_text() == '{"path": '


def test_every_change_of_what_is_frozen_is_named(project: Project, root: Path) -> None:
    with_scorer(root)
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert codes(project) == []
    (root / "plan.md").write_text("---\n---\n")
    (root / "judge/helpers/table.py").write_text("def of(x):\n    return 1\n")
    os.unlink(root / "data/train.npz")
    write_table(root / "data/validation.npz", table(3, 3))
    findings = frozen_changes(project, project.plan())
    assert [finding.code for finding in findings] == [
        "plan_changed",
        "scorer_changed",
        "split_changed",
        "split_changed",
    ]
    assert findings[1].data["path"] == "judge/helpers/table.py"
    assert findings[1].data["expected"] == approved.scorer["files"]["judge/helpers/table.py"]
    assert findings[1].data["actual"] == sha256_file(root / "judge/helpers/table.py")
    assert findings[2].data["actual"] == "missing"
    (root / "judge/unused.py").write_text("x = 2\n")
    assert len(frozen_changes(project, project.plan())) == 4


def test_a_scorer_is_frozen_with_its_import_closure(project: Project, root: Path) -> None:
    with_scorer(root)
    scorer = approve_plan(project, root / "plan.md", by="ada").scorer
    assert scorer["entry"] == "judge/score.py"
    assert sorted(scorer["files"]) == [
        "judge/helpers/__init__.py",
        "judge/helpers/table.py",
        "judge/helpers/weights.py",
        "judge/score.py",
    ]
    assert (project.layout.objects / scorer["files"]["judge/score.py"]).read_text() == SCORER


def test_a_changed_scorer_can_be_approved_as_a_new_version(project: Project, root: Path) -> None:
    with_scorer(root)
    first = approve_plan(project, root / "plan.md", by="ada")
    (root / "judge/helpers/table.py").write_text("def of(x):\n    return 1\n")
    second = approve_plan(project, root / "plan.md", by="ada")
    assert second.version == 2
    assert second.scorer["sha256"] != first.scorer["sha256"]
    assert codes(project) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(:\n", r"judge/score\.py:1: this is not Python"),
        (None, r"scorer judge/score\.py does not exist"),
    ],
)
def test_a_scorer_that_cannot_be_frozen_is_refused_before_anything_moves(
    project: Project, root: Path, text: str | None, told: str
) -> None:
    with_scorer(root)
    if text is None:
        (root / "judge/score.py").unlink()
    else:
        (root / "judge/score.py").write_text(text)
    with pytest.raises(PlanError, match=told):
        approve_plan(project, root / "plan.md", by="ada")
    assert (root / "data/held_out.npz").exists()


def test_without_validation_train_is_split_the_same_way_each_time(
    project: Project, root: Path
) -> None:
    (root / "data/validation.npz").unlink()
    (root / "plan.md").write_text(PLAN.replace("  validation: data/validation.npz\n", ""))
    approved = approve_plan(project, root / "plan.md", by="ada")
    train, validation = (root / approved.splits[name]["path"] for name in ("train", "validation"))
    assert (train.name, validation.name) == ("train.train.npz", "train.validation.npz")
    rows = [read_table(path).columns["row"] for path in (train, validation)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(60))
    assert len(rows[1]) == 12
    before = train.read_bytes()
    train.unlink()
    assert approve_plan(project, root / "plan.md", by="ada") == approved
    assert train.read_bytes() == before
    assert "data/train.npz" in data_paths(approved)
    write_table(validation, table(12, 1))
    with pytest.raises(RefusedError, match="is not the split"):
        approve_plan(project, root / "plan.md", by="ada")


def test_without_validation_copies_are_not_split(project: Project, root: Path) -> None:
    (root / "data/validation.npz").unlink()
    (root / "plan.md").write_text(PLAN.replace("  validation: data/validation.npz\n", ""))
    once = table(60, 1)
    twice = {name: np.concatenate([column, column]) for name, column in once.items()}
    write_table(root / "data/train.npz", {**twice, "row": np.arange(120)})
    approved = approve_plan(project, root / "plan.md", by="ada")
    parts = [
        {row.tobytes() for row in read_table(root / approved.splits[name]["path"]).columns["x"]}
        for name in ("train", "validation")
    ]
    assert parts[0].isdisjoint(parts[1])
    assert len(parts[0] | parts[1]) == 60
    assert 6 <= len(parts[1]) <= 18


def test_require_approved_takes_only_the_approved_bytes(project: Project, root: Path) -> None:
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert require_approved(project, root / "plan.md") == require_approved(project) == approved
    (root / "plan.md").write_text(PLAN + "\n")
    with pytest.raises(RefusedError, match="is not the approved plan"):
        require_approved(project, root / "plan.md")


def test_plans_outside_the_project_or_absent_are_refused(
    project: Project, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    with pytest.raises(PlanError, match="outside the project"):
        approve_plan(project, tmp_path / "plan.md", by="ada")
    with pytest.raises(NotFoundError, match="no plan at"):
        approve_plan(project, root / "plans/x.md", by="ada")
    with pytest.raises(RefusedError, match="name of the person"):
        approve_plan(project, root / "plan.md", by=" ")


def test_a_read_only_project_can_be_looked_at_but_not_changed(
    root: Path, environment: dict[str, str]
) -> None:
    with pytest.raises(HarnessError) as missing, open_project(root, environment, read_only=True):
        pass
    assert missing.value.code == "ledger_missing"
    open_project(root, environment).close()
    with (
        open_project(root, environment, read_only=True) as project,
        pytest.raises(HarnessError) as error,
    ):
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.code == "ledger_read_only"
    assert (root / "data/held_out.npz").exists()


@pytest.mark.parametrize("name", ["held_out", "validation", "train"])
def test_a_table_that_is_exchanged_while_it_is_looked_at_is_not_taken(
    project: Project, root: Path, name: str
) -> None:
    """What was reviewed is what is approved: the first approval, too, compares with it."""
    path = root / f"data/{name}.npz"

    def exchange(_: object) -> None:
        write_table(path, table(60, seed=77))

    with pytest.raises(RefusedError, match=f"data/{name}.npz is not what it was") as refused:
        approve_plan(project, root / "plan.md", by="ada", on_findings=exchange)
    assert refused.value.code == "data_changed"
    assert project.ledger.plans() == []
    assert path.is_file()
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert approved.splits[name]["rows"] == 60
