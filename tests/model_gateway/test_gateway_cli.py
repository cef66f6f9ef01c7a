"""The real Claude Code CLI, through the Agent SDK, against the scripted gateway: unsandboxed and in
each sandbox."""

import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.sandbox import Confinement
from harness.domain.statuses import SandboxKind
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.service import Service
from harness.model_gateway.wire import Asker
from harness.sandbox.select import SANDBOXES, available
from tests.model_gateway.kept import keep, parse_scenario

SPEC = importlib.util.find_spec("claude_agent_sdk")
CLI = (
    Path(SPEC.origin).parent / "_bundled" / "claude"
    if SPEC is not None and SPEC.origin
    else Path("absent")
)
SESSION = Path(__file__).with_name("cli_session.py")

pytestmark = pytest.mark.skipif(not CLI.is_file(), reason="the installed Agent SDK brings no CLI")

SCENARIO = """
sessions:
  - role: model-builder
    experiment: 1
    turns:
      - text: I look around.
        expect: please begin
        tools:
          - id: made
            name: Bash
            input: {command: "echo '{\\"name\\": \\"exp-0007\\", \\"n\\": 3}'", description: make}
      - expect: [exp-0007]
        tools:
          - id: spy
            name: Bash
            input:
              command: "cat '__SECRET__'; echo ${made.name} ${made.n} > out.txt; cat out.txt"
              description: spy
      - expect: "exp-0007 3"
        text: Made ${made.name}.
"""


BUILDER = Asker(role="model-builder")


def environment(gateway: Gateway, key: str, home: Path) -> dict[str, str]:
    for name in ("config", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "TMPDIR": str(home / "tmp"),
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": gateway.url,
        "ANTHROPIC_API_KEY": key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    }


def run_session(cli: Path, cwd: Path, variables: dict[str, str], **spec) -> dict:
    request = {
        "cli_path": str(cli),
        "cwd": str(cwd),
        "prompt": "please begin",
        "tools": ["Bash"],
        **spec,
    }
    done = subprocess.run(
        [sys.executable, str(SESSION)],
        input=json.dumps({**request, "environment": variables}),
        capture_output=True,
        text=True,
        env=variables,
        cwd=cwd,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:])
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", list(SandboxKind), ids=lambda kind: kind.value)
def test_a_session_runs_through_the_real_cli(kind, tmp_path):
    if reason := available()[kind]:
        pytest.skip(f"{kind.value}: {reason}")
    project, home, state = (tmp_path / name for name in ("my project", "home", "state"))
    for folder in (project, home, state):
        folder.mkdir()
    secret = state / "secret"
    secret.write_text("held-out label 4711")
    scenario = parse_scenario(SCENARIO.replace("__SECRET__", str(secret)), where="scenario")
    with Gateway(Scripted(scenario)) as gateway, gateway.admitted(BUILDER) as key:
        asked = keep(gateway)
        variables = environment(gateway, key, home)
        confinement = Confinement(
            writable=(project, home), hidden=(state,), gateway_port=gateway.port
        )
        cli = tmp_path / "claude"
        words = SANDBOXES[kind]().command([str(CLI)], confinement, environment={})
        sandboxed = shlex.join(words)
        cli.write_text(f'#!/bin/sh\nexec {sandboxed} "$@"\n')
        cli.chmod(0o755)
        out = run_session(cli, project, variables)
        assert gateway.failure is None
        assert [request.turn for request in asked] == [0, 1, 2]
    assert (out["result"], out["is_error"]) == ("Made exp-0007.", False)
    assert (project / "out.txt").read_text() == "exp-0007 3\n"
    leaked = "held-out label 4711" in json.dumps(out["results"])
    assert leaked is (kind is SandboxKind.NONE)
    assert all(key not in json.dumps(request.headers) for request in asked)


def test_a_cli_without_the_key_of_its_session_ends_and_changes_nothing(tmp_path):
    scenario = parse_scenario(SCENARIO, where="scenario")
    with Gateway(Scripted(scenario)) as gateway:
        asked = keep(gateway)
        done = run_failing(gateway, tmp_path, ANTHROPIC_API_KEY="of-another-session")
        assert done.returncode != 0
        assert "No living session" in done.stderr
        assert (asked, gateway.failure) == ([], None)


def run_failing(gateway: Gateway, home: Path, **changes: str) -> subprocess.CompletedProcess:
    with gateway.admitted(BUILDER) as key:
        variables = {**environment(gateway, key, home), **changes}
        request = {
            "cli_path": str(CLI),
            "cwd": str(home),
            "prompt": "p",
            "tools": ["Bash"],
            "environment": variables,
        }
        return subprocess.run(
            [sys.executable, str(SESSION)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=variables,
            timeout=60,
            check=False,
        )


def test_an_unforeseen_session_ends_loudly(tmp_path):
    scenario = parse_scenario("sessions: [{role: oracle, turns: [{text: hi}]}]", where="scenario")
    with Gateway(Scripted(scenario)) as gateway:
        done = run_failing(gateway, tmp_path)
        assert done.returncode != 0
        assert "no session for role model-builder, experiment 1, attempt 1" in str(gateway.failure)
        assert "no session for role model-builder" in done.stderr


def test_a_budget_refusal_is_not_retried_by_the_cli(tmp_path):
    answerer = Live(
        service=Service(url="http://127.0.0.1:9"),
        meter=Meter(budget_usd=0.0001),
        trust_environment=False,
    )
    with Gateway(answerer) as gateway:
        asked = keep(gateway)
        done = run_failing(gateway, tmp_path, CLAUDE_CODE_MAX_RETRIES="10")
        assert done.returncode != 0
        assert "The budget would be exceeded" in done.stderr
        assert "The budget would be exceeded" in str(gateway.refused)
        assert len(asked) == 1
    assert answerer.meter.spent_usd == 0


def test_a_gateway_that_has_ended_is_not_asked_again_by_the_cli(tmp_path):
    scenario = parse_scenario("sessions: [{role: oracle, turns: [{text: hi}]}]", where="scenario")
    with Gateway(Scripted(scenario)) as gateway:
        asked = keep(gateway)
        done = run_failing(gateway, tmp_path, CLAUDE_CODE_MAX_RETRIES="10")
        assert "no session for role model-builder" in done.stderr
        assert len(asked) == 1
