"""A project as `harness init` makes it, for the doctor to look at."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.doctor.report import Check, Report
from harness.doctor.run import run_doctor
from harness.handlers.table import hooks_section
from harness.project.context import open_project
from harness.project.plans import approve_plan
from harness.project.scaffold import scaffold
from harness.rendering.snapshot import write_policy_snapshot
from harness.files import sha256_file
from tests.blobs import make_root

REPO = Path(__file__).parents[2]


@dataclass(frozen=True)
class Made:
    """A project with its own home; nothing of the machine's user is seen."""

    root: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}

    @property
    def settings_file(self) -> Path:
        return self.root / ".claude/settings.json"

    @property
    def hooks(self) -> Path:
        return self.root / ".claude/hooks/harness"

    @property
    def policy(self) -> Path:
        return self.root / ".harness/policy.json"

    def settings(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.settings_file.read_text("utf-8"))
        return value

    def write(self, settings: dict[str, Any]) -> None:
        self.settings_file.write_text(json.dumps(settings, indent=2), "utf-8")

    def files(self) -> dict[str, bytes]:
        """Everything below the project, folders with b""."""
        return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(self.root.rglob("*"))}

    def approve(self) -> None:
        with open_project(self.root, self.environment, new_config=True) as project:
            approve_plan(project, self.root / "plan.md", by="human:test")
            write_policy_snapshot(project)

    def doctor(self, *, start: Path | None = None, start_cli: bool = False, **environment: str) -> Report:
        return run_doctor(start or self.root, {**self.environment, **environment}, start_cli=start_cli, home=self.home)


def make(base: Path) -> Made:
    root, home = base / "my project", base / "home"
    root.mkdir(parents=True)
    home.mkdir()
    made = Made(root, home)
    make_root(root)
    scaffold(root)
    hooks = made.hooks
    hooks.mkdir(parents=True)
    for f in (REPO / "hooks").glob("*.py"):
        shutil.copy(f, hooks / f.name)
    (hooks / "lib/harness").mkdir(parents=True)
    (hooks / "lib/harness/__init__.py").write_text("")
    for room in ("policy", "handlers"):
        shutil.copytree(
            REPO / "harness" / room, hooks / "lib/harness" / room, ignore=shutil.ignore_patterns("__pycache__")
        )
    files = {str(p.relative_to(hooks)): sha256_file(p) for p in sorted(hooks.rglob("*.py"))}
    section = hooks_section("/usr/bin/python3", "${CLAUDE_PROJECT_DIR}/.claude/hooks/harness")
    (hooks / "MANIFEST.json").write_text(
        json.dumps({"version": "0", "interpreter": "/usr/bin/python3", "files": files, "settings": section})
    )
    made.settings_file.write_text(json.dumps({"hooks": section}, indent=2))
    with open_project(root, made.environment) as p:
        write_policy_snapshot(p)
    return made
