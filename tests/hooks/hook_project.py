"""A project with its hooks installed as copies, and calls to them through the real programs and a
system Python."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policy_project import SampleProject, snapshot

from harness.guard.hooks.projects import FILTER
from harness.guard.hooks.table import PROGRAM, hooks_section

REPOSITORY = Path(__file__).parents[2]
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
SESSION = "s-1"
PREFIX = "${CLAUDE_PROJECT_DIR}/.claude/hooks/harness"


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    output: str
    errors: str

    @property
    def denied(self) -> bool:
        """As a guard denies: status 2, a reason on stderr and the same on stdout, as JSON; no trace
        of a crash. Without an objection it says nothing."""
        assert "Traceback" not in self.errors
        assert self.code in (0, 2)
        assert bool(self.errors) == (self.code == 2)
        if self.code == 2 and "hook cannot run" in self.errors:
            assert self.output == ""  # what would write JSON is what is missing
        elif self.code == 2:
            answer = {"decision": "block", "reason": self.errors.rstrip("\n")}
            assert json.loads(self.output) == answer
        else:
            assert self.output == ""
        return self.code == 2

    @property
    def said(self) -> dict[str, Any]:
        """The whole JSON object on stdout of a hook that denies nothing; empty for none."""
        assert (self.code, self.errors) == (0, "")
        return json.loads(self.output) if self.output else {}

    @property
    def context(self) -> str:
        """What the model is told besides."""
        return self.said.get("hookSpecificOutput", {}).get("additionalContext", "")

    @property
    def person(self) -> str:
        """What the person is shown."""
        return self.said.get("systemMessage", "")

    @property
    def due(self) -> str:
        """Why the model may not end its turn yet."""
        said = self.said
        assert said.get("decision") == ("block" if "reason" in said else None)
        return said.get("reason", "")


class HookProject(SampleProject):
    """`programs` is the folder of the installed hooks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.programs = self.root / ".claude" / "hooks" / "harness"
        install(self.programs)
        self.save({**self.snapshot, "mode": "interactive", "role": None})
        self.write(".claude/settings.json", json.dumps({"hooks": hooks_section(PYTHON, PREFIX)}))
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state_home"),
            "CLAUDE_PROJECT_DIR": str(self.root),
        }

    def save(self, value: Any) -> None:
        """Write the policy snapshot."""
        self.write(".harness/policy.json", value if isinstance(value, str) else json.dumps(value))

    def start(
        self, event: str, payload: bytes, *, cwd: Path | str = "/", **environment: str
    ) -> Answer:
        """Start the hook of `event` as Claude Code does, with `payload` on its stdin."""
        return self.program([PROGRAM, event], payload, cwd=cwd, **environment)

    def program(
        self, words: list[str], payload: bytes, *, cwd: Path | str = "/", **environment: str
    ) -> Answer:
        """Start the program words[0] of the hooks' folder with the arguments after it."""
        ended = subprocess.run(
            [PYTHON, "-I", "-S", str(self.programs / words[0]), *words[1:]],
            input=payload,
            capture_output=True,
            cwd=cwd,
            env={**self.environment, **environment},
            timeout=60,
        )
        return Answer(
            code=ended.returncode, output=ended.stdout.decode(), errors=ended.stderr.decode()
        )

    def event(
        self, event: str, *, session: str = SESSION, cwd: Path | str | None = None, **fields: Any
    ) -> Answer:
        payload = {"session_id": session, "cwd": str(cwd or self.root), **fields}
        return self.start(event, json.dumps(payload).encode())

    def call(self, tool: str, given: Any, *, identity: str = "toolu_1", **fields: Any) -> Answer:
        """A tool call before it is made."""
        named = {
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": identity,
        }
        return self.event("PreToolUse", **named, **fields)

    def shell(self, command: str, **fields: Any) -> Answer:
        return self.call("Bash", {"command": command}, **fields)

    def receipts(self, session: str = SESSION) -> list[dict[str, Any]]:
        """Every line is whole. One may be empty: who saw another's line half written began anew."""
        path = self.root / ".harness" / "receipts" / f"{session}.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line]


def install(programs: Path) -> None:
    """Copy the programs and their library, as they are installed into a project."""
    programs.mkdir(parents=True)
    for path in (REPOSITORY / "hooks").glob("*.py"):
        shutil.copy(path, programs)
    library = programs / "lib" / "harness"
    copy_library(library)
    for room in ("", "guard", "domain"):
        (library / room / "__init__.py").touch()


def copy_library(library: Path) -> None:
    """What the programs import."""
    for room in ("guard/policy", "guard/hooks"):
        hidden = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "harness" / room, library / room, ignore=hidden)
    (library / "domain").mkdir()
    shutil.copy(REPOSITORY / "harness" / FILTER, library / FILTER)


def other_project(folder: Path, state: Path) -> Path:
    """A second project, without hooks of its own, with an open experiment."""
    for name in (
        ".harness/config.toml",
        ".harness/experiments/exp-0002/hypothesis.md",
        "train.py",
        "plan.md",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before\n")
    state.mkdir(parents=True, exist_ok=True)
    described = {**snapshot(folder, state), "mode": "interactive", "role": None}
    (folder / ".harness" / "policy.json").write_text(json.dumps(described))
    return folder


def git(folder: Path, *words: str) -> None:
    identity = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@localhost",
        "-c",
        "core.hooksPath=/dev/null",
    ]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, env=environment
    )
