"""A whole experiment by MCP tools and verbs, as `claude` in the repository does it: no loop, no
session of ours."""

import json
import os
import subprocess
import sys
from typing import Any

from toy_project import PREDICT

from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.ledger.project import Project
from tests.centroids import slow_train
from tests.mcp_client import McpClient
from tests.terminal import run_in_terminal

HYPOTHESIS = {
    "hypothesis": "Nearest centres tell the clouds apart",
    "rationale": "They are far apart.",
}


def environment(project: Project, **more: str) -> dict[str, str]:
    state = project.layout.state.parents[1]
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(state.parent),
        "XDG_STATE_HOME": str(state),
        "OMP_NUM_THREADS": "1",
        **more,
    }


def verb(project: Project, *words: str, expected: int = 0, **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "harness", *words, "--json"],
        cwd=project.layout.root,
        env=environment(project, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_an_experiment_by_tools_and_verbs(project: Project, sandbox: SandboxKind) -> None:
    root = project.layout.root
    inside = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "5b0c"}
    with McpClient(root, environment(project, **inside)) as client:
        opened, failed = client.call("open_experiment", **HYPOTHESIS)
        assert not failed
        (root / "train.py").write_text(slow_train(0.4), "utf-8")
        (root / "predict.py").write_text(PREDICT, "utf-8")
        project.layout.experiment("exp-0001", "config").write_text(
            "model: {kind: centres}\n", "utf-8"
        )
        started, failed = client.call("start_run")
        assert not failed, started
        assert started["state"] == "running"
        again, failed = client.call("start_run", experiment=opened["experiment"])
        assert (again["state"], failed) == ("running", False)
        client.call(
            "hand_off", text="Three seeds are training."
        )  # the ledger is free while they do
        report, _ = client.call("run_status", wait_seconds=120)
        assert report["state"] == "ended"
        assert [run["status"] for run in report["runs"]] == ["completed"] * 3
        assert report["findings"] == []

        verb(project, "evaluate", "exp-0001", **inside)
        score, failed = client.call("evaluation_report")
        assert not failed
        written, failed = client.call(
            "record_result", claims={"accuracy": score["claim"]}, summary="As measured."
        )
        assert (written["experiment"], failed) == ("exp-0001", False)
    assert (client.process.returncode, client.rest) == (0, "")

    judged = verb(project, "gate", "check", "exp-0001", **inside)
    # The task is easy: the three seeds of this vault key have every row right, which is told.
    assert judged["verdict"] == "PASS"
    assert [found["code"] for found in judged["findings"]] == ["seeds_answer_alike"]
    assert {run.session for run in project.ledger.runs("exp-0001")} == {"5b0c"}
    assert {run.sandbox for run in project.ledger.runs("exp-0001")} == {sandbox.value}
    assert {run.caller for run in project.ledger.runs("exp-0001")} == {"open"}
    assert judged["score"]["evidence"].startswith("recomputed, session not isolated")
    assert "> Three seeds are training." in verb(project, "status", "--briefing")["briefing"]

    refused = verb(
        project,
        "gate",
        "approve",
        "exp-0001",
        "--reason",
        "mine",
        "--override",
        expected=2,
        **inside,
    )
    assert refused["error"]["code"] == "human_verb"
    words = [
        sys.executable,
        "-m",
        "harness",
        "gate",
        "approve",
        "exp-0001",
        "--reason",
        "seen",
        "--override",
    ]
    decided = run_in_terminal(words, cwd=root, env=environment(project))
    assert decided.returncode == 0, decided.stderr
    assert project.ledger.experiment("exp-0001").status is ExperimentStatus.KEPT


def test_runs_outlive_the_server_and_the_next_one_follows_them(
    project: Project, sandbox: SandboxKind
) -> None:
    """`claude` is closed while it trains: nothing is lost, also between two seeds."""
    root = project.layout.root
    (root / "train.py").write_text(slow_train(0.6), "utf-8")
    # Without it the trial of predict raises an alarm, which ends the wait.
    (root / "predict.py").write_text(PREDICT, "utf-8")
    words = ("--sandbox", sandbox.value, "--reason", "A test.")
    with McpClient(root, environment(project), *words) as first:
        first.call("open_experiment", **HYPOTHESIS)
        assert first.call("start_run")[0]["state"] == "running"
    with McpClient(root, environment(project), *words) as second:
        report, _ = second.call("run_status", wait_seconds=120)
    assert report["state"] == "ended"
    assert [run["status"] for run in report["runs"]] == ["completed"] * 3
    assert {run.caller for run in project.ledger.runs("exp-0001")} == {"person"}
