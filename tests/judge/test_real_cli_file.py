"""The real CLI inside writes what it keeps beside its folder, `~/.claude.json`; nothing of it is
lost; no model is asked."""

import json
import subprocess
import sys

import pytest

from tests.cli.journey import Journey
from tests.judge.inside import SANDBOXES


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_server_that_is_added_inside_is_there_outside(approved: Journey, sandbox: str) -> None:
    own = approved.home / ".claude.json"
    own.write_text(json.dumps({"mcpServers": {}, "kept": 1}), "utf-8")
    environment = {
        **approved.environment(),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": "no-key-at-all",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    harness = [sys.executable, "-P", "-I", "-m", "harness", "claude", "--sandbox", sandbox, "--"]
    done = subprocess.run(
        [*harness, "mcp", "add", "-s", "user", "two", "--", "/bin/true"],
        cwd=approved.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    value = json.loads(own.read_text("utf-8"))
    assert value["kept"] == 1
    assert value["mcpServers"]["two"]["command"] == "/bin/true"
