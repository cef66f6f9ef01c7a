"""docs/ci.md: every command of the page, from an empty folder, in a fresh home, without a
terminal."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ci.md"
GIT = {
    f"GIT_{who}_{what}": f"ci {what}".replace(" ", "@" if what == "EMAIL" else " ")
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
PLAYED = "stopped: played. The scenario is played to its end."


def blocks(language: str) -> list[str]:
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def once() -> list[str]:
    """What a person types."""
    (block,) = blocks("sh")
    return block.splitlines()


def on_each_push() -> list[str]:
    """What the machine runs of the harness."""
    (block,) = blocks("yaml")
    steps = yaml.safe_load(block)["jobs"]["scenario"]["steps"]
    lines = [step["run"] for step in steps if "run" in step]
    return [line for line in lines if line.startswith("harness ")]


class Machine:
    """A home of its own, and no terminal."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.home.mkdir(parents=True)
        self.bin = base / "bin"
        self.bin.mkdir()
        program = self.bin / "harness"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m harness "$@"\n')
        program.chmod(0o755)

    def run(self, line: str, cwd: Path, *, code: int = 0, **extra: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=cwd,
            env={
                "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": str(ROOT),
                **GIT,
                **extra,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == code, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, as a person left it."""
    pytest.importorskip("sklearn")
    base = tmp_path_factory.mktemp("team")
    root = base / "repository"
    root.mkdir()
    machine = Machine(base / "person")
    for line in once():
        machine.run(line, root)
    return root


def cloned(team: Path, base: Path) -> tuple[Machine, Path]:
    machine, root = Machine(base / "runner"), base / "clone"
    machine.run(f"git clone --quiet {shlex.quote(str(team))} {shlex.quote(str(root))}", base)
    return machine, root


def test_the_page_is_played_in_a_fresh_clone(team: Path, tmp_path: Path) -> None:
    machine, root = cloned(team, tmp_path)
    said = [machine.run(line, root) for line in on_each_push()]
    assert len(said) == 2
    assert PLAYED in said[1]
    assert "a clone: read" in said[1]
    status = machine.run("harness status --json", root)
    assert ".rehearsal-" in status
    # Asked again it says the same, and plays nothing twice.
    again = machine.run("harness run --scenario ci/scenario.yaml", root)
    assert PLAYED in again
    assert json.loads(machine.run("harness experiment list --json", root))["total"] == 1


def test_an_agent_reads_no_facts_in(team: Path, tmp_path: Path) -> None:
    machine, root = cloned(team, tmp_path)
    line = "harness run --scenario ci/scenario.yaml --json"
    assert "human_verb" in machine.run(line, root, code=2, CLAUDECODE="1")
    assert not (machine.home / ".local").exists()


def test_a_broken_training_is_found(team: Path, tmp_path: Path) -> None:
    machine, root = cloned(team, tmp_path)
    (root / "train.py").write_text("raise SystemExit('no such column')\n", "utf-8")
    said = machine.run("harness run --scenario ci/scenario.yaml", root, code=1)
    last = said.strip().splitlines()[-1]
    assert "seeds_outstanding" in last
    assert last.endswith("exp-0001/run-01 failed: exit code 1; stderr ends: no such column.")
    assert PLAYED not in said
