"""A project as `harness init` makes it, for the doctor to look at."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import EnclosingSession
from harness.doctor.report import Report
from harness.doctor.subject import DoctorSubject, look
from harness.domain.statuses import HooksMode
from harness.install.install import install
from harness.ledger.project import open_project
from harness.plans.approval import approve_plan
from harness.rendering.policy_snapshot import write_policy_snapshot
from tests.blobs import make_root

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Made:
    """A project with its own home; nothing of the machine, its user or the processes around is
    seen."""

    root: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
        }

    @property
    def managed(self) -> Path:
        """Where this machine's administrator would have settings."""
        return self.home / "managed"

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
        return {
            str(path): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.root.rglob("*"))
        }

    def approve(self) -> None:
        with open_project(self.root, self.environment, new_config=True) as project:
            approve_plan(project, self.root / "plan.md", by="human:test")
            write_policy_snapshot(project)

    def doctor(
        self, *, start: Path | None = None, start_cli: bool = False, **environment: str
    ) -> Report:
        return run_doctor(
            start or self.root,
            {**self.environment, **environment},
            start_cli=start_cli,
            session=None,
            managed_folder=self.managed,
        )

    def scene(self, *, session: EnclosingSession | None = None) -> DoctorSubject:
        """What the doctor looks at, in a terminal or in `session`."""
        return look(
            self.root,
            self.environment,
            home=self.home,
            managed_folder=self.managed,
            session=session,
        )


def make(base: Path, mode: HooksMode = HooksMode.PROJECT) -> Made:
    root, home = base / "my project", base / "home"
    home.mkdir(parents=True)
    made = Made(make_root(root), home)
    install(root, mode, made.environment, by="human:ada")
    return made
