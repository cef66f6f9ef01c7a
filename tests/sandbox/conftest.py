"""A project, a state directory beside it with secrets in it, and the sandboxes that work on this
machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.domain.sandbox import Completed, Confinement, Sandbox
from harness.domain.statuses import SandboxKind
from harness.sandbox.select import SANDBOXES, available

SECRET = b"held-out label 4711"


@dataclass(frozen=True)
class Place:
    project: Path
    state: Path
    sandbox: Sandbox

    @property
    def vault_file(self) -> Path:
        return self.state / "vault" / "held_out.csv"

    @property
    def ledger(self) -> Path:
        return self.state / "ledger.db"

    def confinement(
        self, *, read_only: tuple[Path, ...] = (), gateway_port: int | None = None
    ) -> Confinement:
        return Confinement(
            writable=(self.project,),
            read_only=read_only,
            hidden=(self.state,),
            gateway_port=gateway_port,
        )

    def run(
        self, *argv: str, timeout_s: float = 20, confinement: Confinement | None = None, **more
    ) -> Completed:
        return self.sandbox.run(
            list(argv),
            confinement=confinement or self.confinement(),
            cwd=more.pop("cwd", self.project),
            environment={
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.project),
                **more.pop("environment", {}),
            },
            timeout_s=timeout_s,
            **more,
        )

    def sh(self, script: str, **more) -> Completed:
        return self.run("/bin/sh", "-c", script, **more)

    def python(self, script: str, **more) -> Completed:
        return self.run(sys.executable, "-c", script, **more)


def make_place(tmp_path: Path, kind: SandboxKind) -> Place:
    if reason := available()[kind]:
        pytest.skip(f"{kind.value}: {reason}")
    place = Place(tmp_path / "my project", tmp_path / "state", SANDBOXES[kind]())
    place.project.mkdir()
    place.vault_file.parent.mkdir(parents=True)
    place.vault_file.write_bytes(SECRET)
    place.ledger.write_bytes(b"ledger")
    return place


@pytest.fixture(params=[SandboxKind.BWRAP, SandboxKind.LANDLOCK], ids=lambda kind: kind.value)
def sandboxed(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(tmp_path, request.param)


@pytest.fixture(params=list(SandboxKind), ids=lambda kind: kind.value)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(tmp_path, request.param)


@pytest.fixture
def bwrap(tmp_path: Path) -> Place:
    return make_place(tmp_path, SandboxKind.BWRAP)


@pytest.fixture
def landlock(tmp_path: Path) -> Place:
    return make_place(tmp_path, SandboxKind.LANDLOCK)


@pytest.fixture
def unsandboxed(tmp_path: Path) -> Place:
    return make_place(tmp_path, SandboxKind.NONE)


@pytest.fixture
def outsider(tmp_path: Path) -> Iterator[int]:
    """The pid of a process outside the sandbox, started in the state directory with a secret in its
    environment."""
    process = subprocess.Popen(
        ["/bin/sleep", "60"],
        cwd="/",
        env={"ANTHROPIC_API_KEY": "outside-secret"},
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
