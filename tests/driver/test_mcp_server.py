"""`harness mcp`: the driver's tools over stdio, for callers whose role is not known; a broken
project is an answer."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from harness.contract.roles import ROLE_BY_NAME
from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.driver.mcp_server import AGENT, OpenToolContext
from harness.driver.tool_context import ToolContext
from harness.driver.tools.table import EXPERIMENT_TOOLS, session_tools, tool_of
from harness.ledger.project import Project
from tests.mcp_client import McpClient

HYPOTHESIS = {"hypothesis": "Nearest centres will do", "rationale": "They are far apart."}


@pytest.fixture
def env(project: Project) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(project.layout.state.parents[2]),
        "XDG_STATE_HOME": str(project.layout.state.parents[1]),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "5b0c",
    }


@pytest.fixture
def root(project: Project) -> Path:
    return project.layout.root


def test_both_servers_have_one_table(project: Project, root: Path, env: dict[str, str]) -> None:
    with McpClient(root, env) as client:
        served = client.tools()
    assert tuple(served) == EXPERIMENT_TOOLS
    context = ToolContext(
        project, session="s-1", role=ROLE_BY_NAME["model-builder"], sandbox=SandboxKind.NONE
    )
    for tool in session_tools(context):
        assert served[tool.name]["description"] == tool.description
        assert served[tool.name]["inputSchema"] == tool.input_schema


def test_every_tool_answers_over_stdio(project: Project, root: Path, env: dict[str, str]) -> None:
    with McpClient(root, env) as client:
        assert client.server["name"] == "harness"
        opened, failed = client.call("open_experiment", **HYPOTHESIS)
        assert not failed
        assert opened["write"] == [
            str(project.layout.experiment("exp-0001", name))
            for name in ("hypothesis", "config", "next")
        ]
        assert client.call("run_status")[0]["state"] == "not started"
        refused, failed = client.call("start_run")  # there is no train.py
        assert (refused["error"]["code"], failed) == ("command_not_found", True)
        (root / "train.py").write_text("raise SystemExit('not yet')\n")
        started, failed = client.call("start_run")
        assert (len(started["runs"]), failed) == (1, False)
        report, _ = client.call("run_status", wait_seconds=60)
        assert (report["state"], report["runs"][0]["status"]) == ("ended", "failed")
        assert client.call("evaluation_report") == (
            {
                "error": {
                    "code": "no_score",
                    "message": "exp-0001 has no recomputed score on validation.",
                    "hint": (
                        "Record the result without claims, and name the missing score as a"
                        " shortfall."
                    ),
                }
            },
            True,
        )
        written, failed = client.call(
            "record_result", summary="Nothing was scored.", shortfalls=["No run."]
        )
        assert (Path(written["written"]).name, failed) == ("result.md", False)
        told, failed = client.call("hand_off", text="train.py is missing.")
        assert (told["experiment"], failed) == ("exp-0001", False)
        assert "train.py is missing." in (root / told["page"]).read_text("utf-8")
        assert "> train.py is missing." in project.layout.briefing.read_text("utf-8")
    assert (client.process.returncode, client.rest) == (0, "")
    assert "Traceback" not in client.stderr
    experiment = project.ledger.experiment("exp-0001")
    assert (experiment.by, experiment.session) == (AGENT, "5b0c")
    (told,) = project.ledger.hand_offs()
    assert (told.by, told.session) == (AGENT, "5b0c")
    assert 'by: "agent"' in project.layout.experiment("exp-0001", "result").read_text("utf-8")


READING = {"run_status", "evaluation_report"}


def test_the_mcp_librarys_own_client_is_served(root: Path, env: dict[str, str]) -> None:
    async def converse() -> tuple[list[tuple[str, bool | None]], bool, bool]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "harness", "mcp"], env=env, cwd=root
        )
        async with (
            stdio_client(server) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            opened = await session.call_tool("open_experiment", HYPOTHESIS)
            odd = await session.call_tool("open_experiment", {"hypothesis": 3})
            reads = [
                (tool.name, tool.annotations and tool.annotations.read_only_hint)
                for tool in listed.tools
            ]
            return reads, bool(opened.is_error), bool(odd.is_error)

    expected = [(name, name in READING) for name in EXPERIMENT_TOOLS]
    assert anyio.run(converse) == (expected, False, True)


def test_a_project_that_is_broken_or_missing_is_said_and_fixed_while_the_server_runs(
    root: Path, env: dict[str, str]
) -> None:
    config = root / ".harness" / "config.toml"
    good = config.read_text("utf-8")
    config.unlink()
    with McpClient(root, env) as client:
        assert tuple(client.tools()) == EXPERIMENT_TOOLS
        said, failed = client.call("run_status")
        assert (said["error"]["code"], failed) == ("no_project", True)
        config.write_text("project_id = [", "utf-8")
        said, failed = client.call("open_experiment", **HYPOTHESIS)
        assert (said["error"]["code"], failed) == ("config_invalid", True)
        config.write_text(good, "utf-8")
        assert client.call("open_experiment", **HYPOTHESIS)[0]["experiment"] == "exp-0001"
        said, failed = client.call("frobnicate")
        assert failed
    assert client.process.returncode == 0


def test_what_cannot_be_judged_is_the_calls_error_and_the_server_goes_on(
    root: Path, env: dict[str, str]
) -> None:
    with McpClient(root, env) as client:
        assert client.call("run_status")[0]["error"]["code"] == "no_experiment"
        assert client.call("run_status", experiment="exp-0009")[0]["error"]["code"] == "not_found"
        assert client.call("open_experiment", **HYPOTHESIS)[1] is False
        assert client.call("start_run", command="'")[1] is True
        assert client.call("hand_off", text=" ")[0]["error"]["code"] == "usage"
        assert client.call("hand_off", text="x" * 4001)[0]["error"]["hint"]
        assert client.call("record_result", summary="s", claims={"accuracy": "high"})[1] is True
        said, _ = client.call("run_status", wait_seconds=-1)
        assert "Input validation error" in said
        assert client.call("run_status")[1] is False
        client.write(
            "[" * 100_000
        )  # nested deeper than a reader goes, and no JSON: they are nobody's call
        client.write(
            '{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": ' + '{"a":' * 100_000
        )
        assert client.call("run_status")[1] is False
    assert client.process.returncode == 0
    assert "Traceback" not in client.stderr


def test_others_work_between_two_calls(project: Project, root: Path, env: dict[str, str]) -> None:
    """No call keeps the ledger: what another process records is seen by the next call."""
    with McpClient(root, env) as client:
        client.call("open_experiment", **HYPOTHESIS)
        project.ledger.move_experiment(
            "exp-0001", ExperimentStatus.DISCARDED, "a person, in between"
        )
        assert client.call("run_status")[0]["error"]["code"] == "no_experiment"
        assert client.call("run_status", experiment="exp-0001")[0]["state"] == "not started"
        second, _ = client.call("open_experiment", hypothesis="Another", rationale="It differs.")
        assert second["experiment"] == "exp-0002"


def test_a_client_that_hangs_up_is_no_fault(root: Path, env: dict[str, str]) -> None:
    with McpClient(root, env) as client:
        assert client.process.stdout is not None
        client.process.stdout.close()
        assert client.process.stdin is not None
        client.process.stdin.write(
            '{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}\n'
        )
        client.process.stdin.close()
        client.process.stdout = client.process.stdin = None
    assert "Traceback" not in client.stderr
    assert client.process.returncode == 0


def test_an_interrupt_ends_it(root: Path, env: dict[str, str]) -> None:
    with McpClient(root, env) as client:
        client.tools()
        client.process.send_signal(signal.SIGINT)
        client.process.wait(timeout=30)
    assert client.process.returncode == -signal.SIGINT
    assert "Traceback" not in client.stderr


def test_a_context_without_a_role_is_bound_to_no_experiment(project: Project) -> None:
    context = OpenToolContext(
        project, session="", role=ROLE_BY_NAME["model-builder"], by=AGENT, sandbox=SandboxKind.NONE
    )
    opened = call(context, "open_experiment", **HYPOTHESIS)
    assert project.ledger.experiment(opened["experiment"]).session is None
    project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "a test")
    again = OpenToolContext(
        project, session="", role=ROLE_BY_NAME["model-builder"], by=AGENT, sandbox=SandboxKind.NONE
    )
    second = call(again, "open_experiment", **{**HYPOTHESIS, "hypothesis": "Another"})
    assert second["experiment"] == "exp-0002"
    assert call(again, "run_status", experiment="exp-0001")["experiment"] == "exp-0001"


def call(context: ToolContext, name: str, **arguments: object) -> dict[str, object]:
    return anyio.run(tool_of(name).call, context, arguments)
