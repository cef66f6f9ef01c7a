"""The policy snapshot of a real project, and what the policy makes of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.contract.installation import MANIFEST, VENDORED
from harness.contract.roles import ROLES
from harness.decisions.experiments import open_experiment
from harness.domain.statuses import ExperimentStatus, GateName, Verdict
from harness.guard.hooks.self_check import library_digest
from harness.guard.policy.decide import decide
from harness.guard.policy.snapshot import in_tree, problem
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.rendering.policy_snapshot import (
    other_state,
    policy_snapshot,
    write_policy_snapshot,
)
from harness.rendering.vendored_hooks import LIBRARY, vendored_files
from harness.settings import create_config
from tests import blobs

PLAN = blobs.PLAN.replace("scorer: accuracy", "scorer: scorer.py").replace(
    "entry: python train.py", "entry: python -u train.py --fast"
)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = tmp_path / "my project"
    create_config(root, name="blobs", token="cafe")
    blobs.write_tables(root)
    (root / "plans").mkdir()
    (root / "plans" / "blobs.md").write_text(PLAN)
    (root / "scorer.py").write_text("import scoring\n")
    (root / "scoring.py").write_text("HALF = 0.5\n")
    (root / "train.py").write_text("print('train')\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}
    with open_project(root, environment, clock=ManualClock()) as opened:
        yield opened


def begun(project: Project) -> str:
    opened = open_experiment(
        project, hypothesis="wider  is better", rationale="-", parent=None, by="model-builder"
    )
    return opened.id


def ask(
    project: Project, tool: str, role: str | None = "model-builder", **given: object
) -> dict[str, object]:
    call = {"tool_name": tool, "tool_input": given, "cwd": str(project.layout.root)}
    return decide(call, policy_snapshot(project, role=role))


def test_project_without_a_plan_has_a_whole_snapshot(project):
    said = policy_snapshot(project)
    assert problem(said) is None
    assert (said["entry"], said["frozen"], said["hidden"], said["open_experiment"]) == (
        [],
        [],
        [],
        None,
    )
    assert (said["mode"], said["role"], said["roles"]["main"]["tools"]) == (
        "interactive",
        None,
        None,
    )
    assert set(said["roles"]) == {"main", *(role.name for role in ROLES)}


def test_snapshot_says_how_hooks_find_the_harness(project):
    said = policy_snapshot(project)
    assert Path(said["command"]).name == "harness"
    assert Path(said["command"]).is_absolute()
    assert (said["receipts"], said["memory"]) == (".harness/receipts", ".harness/memory")
    assert said["briefing"] == ".harness/memory/BRIEFING.md"
    assert said["hooks"] == "none"
    vendored = project.layout.root / VENDORED
    for name, data in vendored_files().items():
        (vendored / name).parent.mkdir(parents=True, exist_ok=True)
        (vendored / name).write_bytes(data)
    assert library_digest(str(vendored / LIBRARY)) == said["policy"]
    (vendored / MANIFEST).write_text("{}")
    assert policy_snapshot(project)["hooks"] == "project"


def test_snapshot_is_strict_json(project):
    assert json.loads(json.dumps(policy_snapshot(project), allow_nan=False)) == policy_snapshot(
        project
    )


def test_approved_plan_is_protected_frozen_and_hidden(project):
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    said = policy_snapshot(project, role="model-builder")
    assert said["entry"] == ["python", "-u", "train.py", "--fast"]
    assert said["hidden"] == ["data/held_out.npz"]
    assert {"data/train.npz", "data/validation.npz", "scorer.py", "scoring.py"} == set(
        said["frozen"]
    )
    for path in (
        "plans/blobs.md",
        "plan.md",
        ".harness/config.toml",
        ".harness/memory/STATE.md",
        ".claude/x",
        "scoring.py",
    ):
        assert ask(project, "Write", file_path=path)["permission"] == "deny", path
    assert ask(project, "Read", file_path="data/held_out.npz")["permission"] == "deny"
    assert ask(project, "Read", file_path=str(project.layout.ledger_db))["permission"] == "deny"
    assert ask(project, "Bash", command="python train.py")["rule"] == "training_outside_harness"
    assert ask(project, "Write", file_path="train.py")["permission"] == "allow"


def test_a_plan_may_be_drafted_until_one_is_approved(project):
    for path in ("plan.md", "plans/blobs.md", "plans/blobs.draft.md"):
        assert ask(project, "Write", file_path=path)["permission"] == "allow", path
    assert ask(project, "Bash", command="echo x >> plan.md")["permission"] == "allow"
    assert (
        ask(project, "Write", "training-checker", file_path="plan.md")["rule"] == "read_only_role"
    )
    assert "plan.md" not in policy_snapshot(project)["control"]
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    said = policy_snapshot(project)
    assert said["plans"] == {"plans/blobs.md": project.plan().sha256}
    assert {"plan.md", "plans/blobs.md"} <= {*said["control"]}


def test_after_an_approval_the_next_version_is_drafted_beside_it(project):
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    said = ask(project, "Edit", file_path="plans/blobs.md")
    assert (said["permission"], said["rule"]) == ("deny", "protected_path")
    assert "Write the next version to plans/blobs.draft.md" in said["hint"]
    assert "harness plan approve plans/blobs.draft.md" in said["hint"]
    assert (
        "draft"
        not in ask(project, "Write", "training-checker", file_path="plans/blobs.md")["hint"]
    )
    assert ask(project, "Bash", command="rm -r plans")["permission"] == "deny"
    assert ask(project, "Bash", command="mv plans/blobs.md x")["permission"] == "deny"
    for path in ("plans/blobs.draft.md", "plans/new.md"):
        assert ask(project, "Write", file_path=path)["permission"] == "allow", path


def test_the_form_of_a_plan_below_the_harness_folder_may_be_filled_in_too(project):
    form = ".harness/plan.md"
    assert ask(project, "Write", file_path=form)["permission"] == "deny"
    (project.layout.root / form).write_text("---\n")
    assert ask(project, "Write", file_path=form)["permission"] == "allow"
    assert ask(project, "Write", file_path=".harness/policy.json")["permission"] == "deny"
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    assert ask(project, "Write", file_path=form)["permission"] == "deny"


def test_own_artifacts_follow_the_open_experiment(project):
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    hypothesis = ".harness/experiments/exp-0001/hypothesis.md"
    assert ask(project, "Write", file_path=hypothesis)["permission"] == "deny"
    experiment = begun(project)
    assert policy_snapshot(project)["open_experiment"] == {
        "id": experiment,
        "hypothesis": "wider is better",
        "status": "open",
        "runs": 0,
        "ended": 0,
        "undiagnosed": [],
    }
    assert ask(project, "Write", file_path=hypothesis)["permission"] == "allow"
    assert ask(project, "Write", "oracle", file_path=hypothesis)["permission"] == "deny"
    assert (
        ask(project, "mcp__harness__open_experiment", hypothesis="deeper")["permission"] == "deny"
    )
    assert (
        ask(project, "mcp__harness__open_experiment", hypothesis="wider is better")["permission"]
        == "allow"
    )
    assert (
        ask(project, "mcp__harness__record_result", "oracle", summary="-")["permission"] == "allow"
    )
    project.ledger.move_experiment(experiment, ExperimentStatus.DISCARDED, "test")
    assert policy_snapshot(project)["open_experiment"] is None
    assert ask(project, "Write", file_path=hypothesis)["permission"] == "deny"


def test_gate_is_open_while_its_verdict_awaits_a_decision(project):
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    experiment = begun(project)
    project.ledger.record_verdict(
        experiment=experiment,
        gate=GateName.VALIDATION.value,
        verdict=Verdict.FAIL.value,
        findings=(),
        evidence={},
        score=None,
        tier=None,
        comparison=None,
    )
    assert policy_snapshot(project)["open_gate"] is None
    project.ledger.move_experiment(experiment, ExperimentStatus.JUDGED, "test")
    assert policy_snapshot(project)["open_gate"] == "validation"
    assert (
        ask(project, "mcp__harness__open_experiment", hypothesis="deeper")["rule"] == "gate_open"
    )


def test_sessions_may_use_their_own_folder_and_no_other_part_of_the_state(project):
    layout = project.layout
    note = layout.sessions / "s-1" / "in" / "tmp" / "note.txt"
    assert ask(project, "Read", file_path=str(note))["permission"] is None
    for path in (layout.sessions / "s-1" / "cli.pid", layout.vault / "x", layout.anchors / "x"):
        assert ask(project, "Read", file_path=str(path))["permission"] == "deny"


def test_snapshot_is_written_when_it_changed_and_read_back_whole(project):
    path = write_policy_snapshot(project)
    assert path == project.layout.root / ".harness" / "policy.json"
    assert json.loads(path.read_text("utf-8")) == policy_snapshot(project)
    before = path.stat().st_ino
    assert write_policy_snapshot(project).stat().st_ino == before, (
        "an unchanged snapshot is not written again"
    )
    path.write_text("{")
    write_policy_snapshot(project)
    assert problem(json.loads(path.read_text("utf-8"))) is None
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    begun(project)
    write_policy_snapshot(project)
    assert json.loads(path.read_text("utf-8"))["open_experiment"]["id"] == "exp-0001"


def linked_tree(project, folder):
    root, tree = project.layout.root, folder / "tree"
    git_dir = root / ".git" / "worktrees" / "tree"
    git_dir.mkdir(parents=True)
    (git_dir / "commondir").write_text("../..\n")
    (tree / ".harness").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {git_dir}\n")
    (git_dir / "gitdir").write_text(f"{tree / '.git'}\n")
    (tree / ".harness" / "config.toml").write_text((root / ".harness" / "config.toml").read_text())
    return tree


def states(folder, name="state"):
    return {"XDG_STATE_HOME": str(folder / name), "HOME": str(folder / "home")}


def test_what_a_linked_worktree_has_in_work_stands_in_the_main_ones_snapshot(project, tmp_path):
    """Hooks judge the worktree's files by it; both stand on one ledger."""
    approve_plan(project, project.layout.root / "plans/blobs.md", by="ada")
    root, tree = project.layout.root, linked_tree(project, tmp_path)
    with open_project(tree, states(tmp_path), clock=ManualClock()) as opened:
        begun(opened)
        written = write_policy_snapshot(opened)
    assert written == root / ".harness" / "policy.json"
    said = json.loads(written.read_text())
    assert problem(said) is None
    assert said == policy_snapshot(project)
    assert (said["root"], said["open_experiment"]) == (str(root), None)
    assert list(said["trees"]) == [str(tree)]
    own = said["trees"][str(tree)]
    assert in_tree(said, str(tree)) == own
    assert own["open_experiment"]["id"] == "exp-0001"
    assert own["roles"]["model-builder"]["writes"]
    assert not said["roles"]["model-builder"]["writes"]
    assert in_tree(said, str(root)) == {key: said[key] for key in own}
    assert in_tree(said, str(tmp_path)) == in_tree({**said, "trees": {}}, str(tree))


def test_a_linked_worktree_writes_the_main_trees_own_settings(project, tmp_path):
    tree = linked_tree(project, tmp_path)
    with (tree / ".harness/config.toml").open("a") as config:
        config.write('memory_dir = "elsewhere"\nhooks = "plugin"\n')
    expected = policy_snapshot(project)
    with open_project(tree, states(tmp_path), clock=ManualClock()) as opened:
        written = write_policy_snapshot(opened)
    assert json.loads(written.read_text()) == expected


def test_a_linked_worktree_with_another_ledger_leaves_the_main_trees_hooks(project, tmp_path):
    before = write_policy_snapshot(project).read_bytes()
    tree = linked_tree(project, tmp_path)
    with open_project(tree, states(tmp_path, "other"), clock=ManualClock()) as opened:
        assert opened.layout.state != project.layout.state
        written = write_policy_snapshot(opened)
        assert other_state(opened.layout) == str(project.layout.state)
        written.unlink()
        write_policy_snapshot(opened)  # nothing is there to be turned
        assert json.loads(written.read_text())["state"] == str(opened.layout.state)
    assert other_state(project.layout) == ""
    assert write_policy_snapshot(project).read_bytes() == before
