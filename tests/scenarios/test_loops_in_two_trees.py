"""Two loops at once, each in a working tree of its own, on one ledger: both end as if alone."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toy_project import approved, builder, make_project, oracle, write_scenario

from harness.domain.statuses import ExperimentStatus, RunStatus, SandboxKind
from harness.ledger.project import Project, open_project
from harness.ledger.verify import verify
from tests.centroids import TRAIN
from tests.cli.journey import UNSANDBOXED
from tests.working_trees import add_worktree, commit_all

PACKAGE = Path(__file__).resolve().parents[2]
LONGEST_S = 240.0


def begin(tree: Path, scenario: Path, home: Path, sandbox: SandboxKind) -> "subprocess.Popen[str]":
    """`harness run`, as a person types it in a terminal of that tree."""
    isolation = UNSANDBOXED if sandbox is SandboxKind.NONE else ("--sandbox", sandbox.value)
    words = ["run", "--scenario", str(scenario), *isolation, "--json"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPATH": str(PACKAGE),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(loop: "subprocess.Popen[str]") -> str:
    """Why it ended: one that is done first, and not better, finds the other's still in work, and no
    experiment left."""
    told, _ = loop.communicate(timeout=LONGEST_S)
    assert loop.returncode == 0, told
    found = re.search(r"loop ended: (target|budget)\.", told)
    assert found, told
    return found[1]


def test_both_end_as_if_alone_and_the_ledger_holds(tmp_path: Path, sandbox: SandboxKind) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"XDG_STATE_HOME": str(home / "state"), "HOME": str(home)}
    main = make_project(tmp_path / "main")
    plan = (main / "plan.md").read_text("utf-8")
    (main / "plan.md").write_text(plan.replace("experiments: 3", "experiments: 2"), "utf-8")
    approved(main, environment).close()
    commit_all(main)
    trees = {"MAIN": main, "SIDE": add_worktree(main, tmp_path / "side")}
    loops = []
    for (name, tree), share in zip(trees.items(), ("// 4", "// 3"), strict=True):
        train = TRAIN.replace("// 4", share) + f"print('OF-TREE-{name}')\n"
        said = builder(1, train=train, hypothesis=f"Centres tell them apart, in {name}")
        scenario = write_scenario(tmp_path / f"{name}.yaml", said, oracle(1))
        loops.append(begin(tree, scenario, home, sandbox))
    try:
        reasons = [ended(loop) for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
    assert "target" in reasons
    with open_project(main, environment) as project:
        assert_both_worked(project, environment, trees)


def assert_both_worked(
    project: Project, environment: Mapping[str, Any], trees: Mapping[str, Path]
) -> None:
    ledger = project.ledger
    first, second = ledger.experiments()
    assert ExperimentStatus.KEPT in (first.status, second.status)
    assert {first.status, second.status} <= {ExperimentStatus.KEPT, ExperimentStatus.DISCARDED}
    # Both were in work at once: each was decided after the other was opened.
    decided = {item: ledger.decisions(item)[-1].at for item in (first.id, second.id)}
    assert decided[first.id] > second.opened_at
    assert sorted(item.outcome for item in ledger.sessions()) == ["finished"] * 4
    assert {item.step for item in ledger.sessions()} == {"build-1-1", "judge-1-1"}
    for name, tree in trees.items():
        with open_project(tree, environment) as there:
            (own,) = there.here(ledger.experiments())
            assert own.hypothesis.endswith(f"in {name}")
            runs = ledger.runs(own.id)
            assert {run.status for run in runs} == {RunStatus.COMPLETED}
            printed = [there.layout.run(own.id, run.id, "stdout").read_text() for run in runs]
            assert all(f"OF-TREE-{name}" in text for text in printed)
            assert [finding for run in runs for finding in run.findings] == []
    assert verify(project.layout.ledger_db, project.layout.anchors) == []
