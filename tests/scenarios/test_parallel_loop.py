"""`harness run --parallel 2`: two experiments train at once, and are decided in their order."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from toy_project import approved, builder, make_project, oracle, write_scenario

from harness.domain.statuses import ExperimentStatus, RunStatus, SandboxKind
from harness.ledger.project import Project, open_project
from harness.ledger.verify import verify
from harness.settings import CONFIG
from tests.centroids import slow_train
from tests.cli.journey import UNSANDBOXED

PACKAGE = Path(__file__).resolve().parents[2]
LONGEST_S = 240.0


def starter(number: int, share: str, seconds: float) -> dict[str, Any]:
    """Ends while its training goes on."""
    train = slow_train(seconds).replace("// 4", share) + f"print('OF-{number}')\n"
    told = builder(number, train=train, hypothesis=f"Share {share} of the rows does")
    waits = [turn for turn in told["turns"] if "run_status" in str(turn)]
    assert len(waits) == 1
    told["turns"].remove(waits[0])
    told["turns"][-1]["expect"] = "others train beside it"
    return told


def begin(
    root: Path, verb: str, scenario: Path, home: Path, sandbox: SandboxKind, *more: str
) -> "subprocess.Popen[str]":
    isolation = UNSANDBOXED if sandbox is SandboxKind.NONE else ("--sandbox", sandbox.value)
    words = [verb, "--parallel", "2", "--scenario", str(scenario), *isolation, *more, "--json"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPATH": str(PACKAGE),
        "LANG": "C.UTF-8",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def two(base: Path, config: str = "") -> tuple[Path, Path, dict[str, str]]:
    home = base / "home"
    home.mkdir()
    environment = {"XDG_STATE_HOME": str(home / "state"), "HOME": str(home)}
    root = make_project(base / "main")
    plan = (root / "plan.md").read_text("utf-8")
    # Nothing reaches the target: each of the two is decided, and a third is not in the scenario.
    plan = plan.replace("stop_tier: must", "stop_tier: could")
    plan = plan.replace("should: 0.95", "should: 0.95, could: 1.0")
    (root / "plan.md").write_text(plan, "utf-8")
    with (root / CONFIG).open("a") as stream:
        stream.write(config)
    approved(root, environment).close()
    return root, home, environment


def assert_in_order(project: Project) -> None:
    ledger = project.ledger
    first, second = ledger.experiments()
    for experiment in (first, second):
        assert experiment.status in (ExperimentStatus.KEPT, ExperimentStatus.DISCARDED)
        runs = ledger.runs(experiment.id)
        assert len(runs) == 3, [(run.id, run.reason) for run in runs]
        assert {run.status for run in runs} == {RunStatus.COMPLETED}
        for run in runs:
            text = project.layout.run(experiment.id, run.id, "stdout").read_text("utf-8")
            assert f"OF-{experiment.number}" in text
    # Both trained at once ...
    assert ledger.runs(second.id)[0].registered_at < (ledger.runs(first.id)[-1].ended_at or "")
    # ... and what was looked at and decided kept the order.
    (decided,) = ledger.decisions(first.id)
    assert decided.at < min(one.at for one in ledger.verdicts(second.id))
    assert verify(project.layout.ledger_db, project.layout.anchors) == []


def test_both_train_at_once_and_are_decided_in_their_order(
    tmp_path: Path, sandbox: SandboxKind
) -> None:
    root, home, environment = two(tmp_path)
    sessions = [starter(1, "// 4", 4), starter(2, "// 3", 1), oracle(1), oracle(2)]
    scenario = write_scenario(tmp_path / "two.yaml", *sessions)
    loop = begin(root, "run", scenario, home, sandbox)
    told, _ = loop.communicate(timeout=LONGEST_S)
    with open_project(root, environment) as project:
        assert_in_order(project)
        outcomes = [(item.step, item.outcome) for item in project.ledger.sessions()]
        threads = project.ledger.runs("exp-0001")[0].environment["threads"]
    assert outcomes == [
        (step, "finished") for step in ("build-1-1", "build-2-1", "judge-1-1", "judge-2-1")
    ], told
    half = str(max(1, (os.cpu_count() or 1) // 2))
    assert threads["OMP_NUM_THREADS"] == half
    assert loop.returncode == 0, told
    # Its seeds may have all held-out rows right: then the target is reached, after both.
    ends = ("The scenario is played to its end", "exp-0001 reaches the tier could")
    assert any(end in told for end in ends), told


LAUNCHERS = {
    "ray": "[launchers.ray]\ncpus = 0.1\n",
    "slurm": '[launchers.slurm]\ncluster = "local"\n',
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_elsewhere_too_they_are_decided_in_their_order(tmp_path: Path, launcher: str) -> None:
    package = "submitit" if launcher == "slurm" else launcher
    pytest.importorskip(package, reason=f"{package} is not installed: the extra {launcher}")
    root, home, environment = two(tmp_path, LAUNCHERS[launcher])
    # On a busy machine a session takes its time.
    sessions = [starter(1, "// 4", 25), starter(2, "// 3", 4), oracle(1), oracle(2)]
    scenario = write_scenario(tmp_path / "two.yaml", *sessions)
    loop = begin(root, "run", scenario, home, SandboxKind.NONE, "--launcher", launcher)
    told, _ = loop.communicate(timeout=3 * LONGEST_S)
    with open_project(root, environment) as project:
        assert_in_order(project)
        jobs = [run.job for one in ("exp-0001", "exp-0002") for run in project.ledger.runs(one)]
        assert {job["launcher"] for job in jobs if job is not None} == {launcher}
        assert {run.caller for run in project.ledger.runs("exp-0001")} == {"driver:none"}
    assert loop.returncode == 0, told


def test_a_loop_that_is_killed_with_two_in_training_goes_on_with_both(
    tmp_path: Path, sandbox: SandboxKind
) -> None:
    root, home, environment = two(tmp_path)
    sessions = [starter(1, "// 4", 8), starter(2, "// 3", 8), oracle(1), oracle(2)]
    scenario = write_scenario(tmp_path / "two.yaml", *sessions)
    loop = begin(root, "run", scenario, home, sandbox)
    deadline = time.monotonic() + LONGEST_S
    with open_project(root, environment, read_only=True) as project:
        ledger = project.ledger
        while len({run.experiment for run in ledger.open_runs()}) < 2 or ledger.sessions(
            open_only=True
        ):
            assert time.monotonic() < deadline
            assert loop.poll() is None, loop.communicate()[0]
            time.sleep(0.1)
    loop.send_signal(signal.SIGKILL)
    loop.communicate()
    again = begin(root, "continue", scenario, home, sandbox)
    told, _ = again.communicate(timeout=LONGEST_S)
    assert again.returncode == 0, told
    with open_project(root, environment) as project:
        assert_in_order(project)
