"""`harness status` starts quickly: it imports no numerical library, no pydantic, no SDK."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import make_project

HEAVY = {"numpy", "scipy", "pydantic", "torch", "claude_agent_sdk", "mcp", "transformers"}
PROGRAM = """
import sys
from harness.cli.main import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
PLAN = ("plan", "approve")
EXPERIMENT = ("experiment", "new", "--hypothesis", "A wider net is better.")


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("status", "--briefing")])
def test_status_imports_no_heavy_library(tmp_path: Path, words: tuple[str, ...]) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for command in (("init",), PLAN, EXPERIMENT):
        answer = journey.harness(*command)
        assert answer.exit_code == 0, answer.stderr
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=journey.root,
        env=journey.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "exp-0001" in done.stdout
    modules = done.stderr.split()
    assert "harness.cli.status" in modules
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()
