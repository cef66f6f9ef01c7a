"""--hooks: nothing outside .harness/ with the plugin's; worktrees and clones; what a person accepts
by it."""

import shutil
from pathlib import Path

import pytest

from harness.contract.installation import VENDORED
from harness.decisions.experiments import open_experiment
from harness.domain.statuses import HooksMode
from harness.errors import RefusedError
from harness.guard.accepted import control_listing, read_accepted
from harness.guard.hooks.projects import Projects
from harness.ledger.project import open_layout, open_project
from harness.plans.approval import approve_plan
from harness.rendering.derived import write_derived
from harness.rendering.policy_snapshot import policy_snapshot
from harness.settings import CONFIG, load_settings
from tests.blobs import PLAN, make_root
from tests.install.repository import BY, Person, git, tree

SETTINGS = ".claude/settings.json"


def written(before: dict[str, object], after: dict[str, object]) -> set[str]:
    return {path for path in after if after[path] != before.get(path)}


@pytest.mark.parametrize("mode", [HooksMode.PLUGIN, HooksMode.NONE])
def test_nothing_is_written_outside_the_harness_folder(
    repository: Path, person: Person, mode: HooksMode
) -> None:
    before = tree(repository)
    done = person.install(repository, mode)
    after = tree(repository)
    assert {path.split("/")[0] for path in written(dict(before), dict(after))} == {".harness"}
    assert (repository / ".harness" / "plan.md").is_file()
    assert (done.place.mode, done.interpreter) == (mode, None)
    with open_project(repository, person.environment, read_only=True) as project:
        assert policy_snapshot(project)["hooks"] == mode
    judge = Projects().at(str(repository))
    assert judge is not None
    assert judge.trouble is None, "the plugin's hooks can judge by it"
    assert person.install(repository).changes == (), "the mode is remembered"
    person.remove(repository)
    assert tree(repository) == before


def test_a_plan_in_the_harness_folder_can_be_approved(tmp_path: Path, person: Person) -> None:
    root = tmp_path / "root"
    make_root(root)
    shutil.rmtree(root / ".harness")
    (root / "plan.md").unlink()
    person.install(root, HooksMode.PLUGIN)
    (root / ".harness" / "plan.md").write_text(PLAN)
    with open_project(root, person.environment) as project:
        assert (
            approve_plan(project, root / ".harness" / "plan.md", by=BY).path == ".harness/plan.md"
        )
    assert not (root / "plan.md").exists()
    assert person.install(root).changes == (), "a plan is there, so no form of one is written"


def test_vendored_hooks_go_before_another_mode_comes(repository: Path, person: Person) -> None:
    person.install(repository)
    before = tree(repository)
    with pytest.raises(RefusedError) as refused:
        person.install(repository, HooksMode.PLUGIN)
    assert refused.value.code == "hooks_installed"
    assert "--remove" in refused.value.hint
    assert tree(repository) == before


def test_a_changed_mode_of_an_approved_project_is_approved_with_it(
    tmp_path: Path, person: Person
) -> None:
    root = make_root(tmp_path / "root")
    person.install(root, HooksMode.NONE)
    with open_project(root, person.environment) as project:
        approve_plan(project, root / "plan.md", by=BY)
    person.install(root, HooksMode.PROJECT)
    assert load_settings(root, person.environment).hooks is HooksMode.PROJECT
    open_project(root, person.environment).close()  # raises config_changed when it is not
    assert (root / VENDORED).is_dir()
    (root / CONFIG).write_text((root / CONFIG).read_text() + 'readable = ["/data"]\n')
    with pytest.raises(Exception, match="not what it was when the plan was approved"):
        person.install(root, HooksMode.PROJECT)


def test_a_worktree_of_a_project_that_git_does_not_know_gets_hooks_and_no_project_of_its_own(
    repository: Path, tmp_path: Path, person: Person
) -> None:
    person.install(repository)
    linked = tmp_path / "a worktree"
    git(repository, "worktree", "add", "--quiet", "-b", "other", str(linked))
    before = tree(linked)
    done = person.install(linked)
    assert done.place.layout.root == repository
    assert not (linked / ".harness").exists()
    judge = Projects().at(str(linked))
    assert judge is not None
    assert (judge.source, judge.trouble) == (str(repository), None)
    assert person.install(linked).changes == ()
    assert person.install(repository).changes == ()
    person.remove(linked)
    assert tree(linked) == before
    assert (repository / VENDORED).is_dir()
    assert person.install(repository).changes == ()


def test_removing_from_a_worktree_leaves_the_state_that_another_one_uses(
    repository: Path, tmp_path: Path, person: Person
) -> None:
    person.install(repository)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "harness")
    linked = tmp_path / "a worktree"
    git(repository, "worktree", "add", "--quiet", "-b", "other", str(linked))
    person.install(linked)
    state = load_settings(repository, person.environment).state
    person.remove(linked)
    assert state.is_dir()
    person.remove(repository)
    assert not state.exists()


def test_a_clone_of_an_installed_project_has_nothing_to_do_and_can_be_cleaned(
    repository: Path, tmp_path: Path, person: Person
) -> None:
    before = tree(repository)
    person.install(repository)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "harness")
    git(tmp_path, "clone", "--quiet", str(repository), "clone")
    colleague = Person(tmp_path / "colleague")
    assert colleague.install(tmp_path / "clone").changes == ()
    assert colleague.remove(tmp_path / "clone").conflicts == ()
    left, wanted = tree(tmp_path / "clone"), {path: data for path, (_, data) in before.items()}
    assert {path: data for path, (_, data) in left.items()} == wanted, (
        "without copies of what was there before"
    )


def test_a_clone_is_told_that_its_facts_wait(
    repository: Path, tmp_path: Path, person: Person
) -> None:
    person.install(repository)
    with open_project(repository, person.environment) as project:
        project.ledger.record_prior(
            lesson="l", evidence="e", rule="r", check=None, by=BY, supersedes=None
        )
    assert person.install(repository).notes == ()
    with open_project(repository, person.environment) as project:
        write_derived(project)
    shutil.copytree(repository, tmp_path / "clone", symlinks=True)
    (note,) = Person(tmp_path / "colleague").install(tmp_path / "clone").notes
    assert "harness ledger import" in note


def test_what_is_installed_is_accepted_and_a_strangers_edit_is_not(
    repository: Path, person: Person
) -> None:
    person.install(repository)
    layout = open_layout(repository, person.environment)
    accepted = read_accepted(layout)
    assert accepted is not None
    assert accepted.by == BY
    assert dict(accepted.files) == control_listing(repository)
    text = (repository / SETTINGS).read_text()
    (repository / SETTINGS).write_text(text.replace('"timeout": 30', '"timeout": 1', 1))
    (repository / VENDORED / "run.py").unlink()
    assert {item.path for item in person.install(repository).changes} == {
        SETTINGS,
        f"{VENDORED}/run.py",
    }
    accepted = read_accepted(layout)
    assert accepted is not None
    assert (
        accepted.files[f"{VENDORED}/run.py"] == control_listing(repository)[f"{VENDORED}/run.py"]
    )
    assert (repository / SETTINGS).read_text().count('"timeout": 30') == text.count(
        '"timeout": 30'
    )


def test_a_used_project_stays_when_its_hooks_go(tmp_path: Path, person: Person) -> None:
    root = make_root(tmp_path / "root")
    outside = {path for path in tree(root) if not path.startswith(".harness")}
    person.install(root)
    with open_project(root, person.environment) as project:
        approve_plan(project, root / "plan.md", by=BY)
        open_experiment(project, hypothesis="h", rationale="", parent=None, by="human")
    state = load_settings(root, person.environment).state
    done = person.remove(root)
    assert not (root / ".claude").exists()
    assert not (root / ".mcp.json").exists()
    assert (root / ".harness" / "experiments" / "exp-0001").is_dir()
    assert (state / "ledger.db").is_file()
    assert {path for path in tree(root) if not path.startswith(".harness")} == outside - {
        "data/held_out.npz"
    }
    told = "\n".join(done.notes)
    assert str(state) in told
    (vault,) = (state / "vault" / "held_out").glob("*.npz")
    assert f"The held-out rows of data/held_out.npz are in {vault}" in told
    with open_project(root, person.environment, read_only=True) as project:
        assert policy_snapshot(project)["hooks"] == "none"
    assert '"hooks": "none"' in (root / ".harness" / "policy.json").read_text()
    accepted = read_accepted(open_layout(root, person.environment))
    assert accepted is not None
    assert not [path for path in accepted.files if path.startswith(".claude")]
    person.install(root)
    assert (root / VENDORED).is_dir()


def test_what_a_person_edited_is_kept_however_often_the_harness_is_taken_out(
    tmp_path: Path, person: Person
) -> None:
    root = tmp_path / "root"
    make_root(root)
    own = root / ".claude" / "commands"
    own.mkdir(parents=True)
    person.install(root)
    with open_project(root, person.environment) as project:
        approve_plan(project, root / "plan.md", by=BY)
    edited = [root / ".claude/agents/oracle.md", root / ".claude/commands/harness/train.md"]
    for path in edited:
        path.write_text(path.read_text("utf-8") + "my own edit\n", "utf-8")
    for _ in range(3):
        done = person.remove(root)
        assert {conflict.path for conflict in done.conflicts} == {
            path.relative_to(root).as_posix() for path in edited
        }
        assert all(path.read_text("utf-8").endswith("my own edit\n") for path in edited)
    for path in edited:
        path.unlink()
    edited[1].parent.rmdir()
    person.remove(root)
    assert own.is_dir(), "it was there before"
