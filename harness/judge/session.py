"""`harness claude`: the interactive Claude Code CLI in a sandbox, its judge outside."""

import contextlib
import json
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import (
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import psutil

from harness.contract.roles import MCP_SERVER
from harness.domain.claude_folder import CONFIG_DIR, claude_folder
from harness.domain.commands import put_aside
from harness.domain.sandbox import (
    Confinement,
    Sandbox,
)
from harness.files import atomic_write
from harness.guard.own_python import require_out_of_reach
from harness.judge import (
    client,
    own_file,
)
from harness.judge.compiled import COMPILED, compile_hooks
from harness.judge.confinement import session_confinement
from harness.judge.identity import (
    CALLER,
    DESCRIPTOR,
    ISOLATED,
    announce,
    forget_the_dead,
)
from harness.judge.question import Asker
from harness.judge.server import (
    JudgeServer,
)
from harness.judge.terminal import LedProgram
from harness.ledger.project import Project
from harness.process import Mark
from harness.sandbox.behind_front import program
from harness.settings import state_home

SANDBOX = "HARNESS_JUDGE_SANDBOX"
"""The kind of sandbox, for what is told to the session."""
CLIENT = "HARNESS_CLIENT"
"""The `harness` of the inside, for hooks."""
BESIDE = "HARNESS_JUDGE_BESIDE"
"""Who else was at work as the session began, for its hooks."""
SESSION_MARK = "HARNESS_JUDGE_SESSION"
_PREFIX = "harness-judge-"
_PLACE = "/tmp"
"""Not TMPDIR: a socket's path has a hundred characters at most."""
_HERE = Path(__file__).resolve().parent
_PLUGIN = "--plugin-dir"
_PRINTS = ("-p", "--print")
"""Options of the CLI with which it answers once, to a program as a rule: nobody is asked."""


@dataclass(frozen=True, kw_only=True)
class JudgeFolder:
    """What one session has outside the project, for itself alone: removed when it ends."""

    path: Path

    @property
    def socket(self) -> Path:
        return self.path / "judge"

    @property
    def programs(self) -> Path:
        """First on PATH inside: `harness` is the client."""
        return self.path / "bin"

    @property
    def home(self) -> Path:
        """HOME inside: links to what is in the person's, and the CLI's own file beside them."""
        return self.path / "home"

    @property
    def compiled(self) -> Path:
        """Byte code of the hooks; read-only inside."""
        return self.path / "compiled"

    @property
    def temporary(self) -> Path:
        return self.path / "tmp"

    @classmethod
    def make(cls, home: Path) -> "JudgeFolder":
        folder = cls(path=Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE)))
        for path in (folder.programs, folder.home, folder.temporary):
            path.mkdir(mode=0o700)
        words = shlex.join([*program("front.py")[:3], str(_HERE / "client.py")])
        script = f'#!/bin/sh\nexec {words} "$@"\n'
        atomic_write(folder.programs / "harness", script, durable=False, mode=0o700)
        for path in home.iterdir() if home.is_dir() else ():
            if not path.name.startswith(own_file.NAME):
                (folder.home / path.name).symlink_to(path)
        return folder


def run_claude(
    project: Project,
    sandbox: Sandbox,
    cli: Path,
    arguments: Sequence[str],
    inherited: Mapping[str, str],
    others: Sequence[str] = (),
) -> int:
    """Lead one interactive session, which is told of `others` at work; returns the CLI's exit
    code."""
    home, state = Path(inherited.get("HOME") or Path.home()), project.layout.state
    require_out_of_reach(project.layout.root, sandbox.kind)
    for dead in forget_the_dead(state):
        _clear(home, str(dead.get("folder", "")))
    folder = JudgeFolder.make(home)
    try:
        own_file.copied_in(home, folder.path, folder.home)
        told = {BESIDE: " ".join(others)}
        return _lead(project, sandbox, cli, arguments, inherited, home, folder, told)
    finally:
        _clear(home, str(folder.path))


def _lead(
    project: Project,
    sandbox: Sandbox,
    cli: Path,
    arguments: Sequence[str],
    inherited: Mapping[str, str],
    home: Path,
    folder: JudgeFolder,
    told: dict[str, str],
) -> int:
    layout = project.layout
    config = _config(inherited, home, folder)
    plugins = _plugins(arguments, layout.root)
    compile_hooks(folder.compiled, layout.root, plugins)
    confined: Confinement = session_confinement(
        project,
        project.ledger.plan(),
        home=home,
        states=state_home(inherited),
        config=config,
        program=cli,
        folder=folder.path,
        private=(folder.home, folder.temporary),
        plugins=plugins,
    )
    words = [
        *program("front.py")[:3],
        str(_HERE / "own_terminal.py"),
        str(cli),
        *_own_server(arguments),
        *arguments,
    ]
    mark = secrets.token_hex(8)
    own = _environment(inherited, folder, sandbox, mark) | told
    led = LedProgram(sandbox.command(words, confined, environment=own), own, layout.root)
    announcement = announce(
        layout.state,
        kind=ISOLATED,
        sandbox=sandbox.kind,
        more={"folder": str(folder.path), "root": str(layout.root)},
    )
    server = JudgeServer(
        project.settings,
        layout.shared("receipts"),
        folder.socket,
        announcement,
        inherited,
        ask=Asker(
            led, layout.root, inherited, present=not any(word in _PRINTS for word in arguments)
        ).ask,
        is_inside=lambda pid: led.process is not None and _is_below(pid, led.process.pid),
        on_stop=led.stop,
    )
    try:
        return led.run()
    finally:
        Mark(variable=SESSION_MARK, value=mark).kill_all()
        server.close()
        announcement.withdraw()


def _config(inherited: Mapping[str, str], home: Path, folder: JudgeFolder) -> Path:
    """The CLI's own folder, which is made where it is missing."""
    config = claude_folder(inherited, home)
    config.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not inherited.get(CONFIG_DIR) and not (folder.home / config.name).exists():
        (folder.home / config.name).symlink_to(config)
    return config


def _environment(
    inherited: Mapping[str, str], folder: JudgeFolder, sandbox: Sandbox, mark: str
) -> dict[str, str]:
    """The person's own, for the CLI alone: its credentials and settings are passed on unread."""
    environment = {name: inherited[name] for name in inherited if name not in (CALLER, DESCRIPTOR)}
    return put_aside(environment) | {
        # HOME is read-only.
        "DISABLE_AUTOUPDATER": environment.get("DISABLE_AUTOUPDATER", "1"),
        "PATH": os.pathsep.join([str(folder.programs), environment.get("PATH", os.defpath)]),
        "HOME": str(folder.home),
        "TMPDIR": str(folder.temporary),
        "CLAUDE_CODE_TMPDIR": str(folder.temporary),
        client.SOCKET: str(folder.socket),
        SANDBOX: sandbox.kind.value,
        CLIENT: str(folder.programs / "harness"),
        COMPILED: str(folder.compiled),
        SESSION_MARK: mark,
    }


def _own_server(arguments: Sequence[str]) -> list[str]:
    """Settings by which the CLI takes the project's tools without a question: where it keeps the
    answer, .claude, is read-only inside."""
    if any(word.partition("=")[0] == "--settings" for word in arguments):
        return []
    return ["--settings", json.dumps({"enabledMcpjsonServers": [MCP_SERVER]})]


def _plugins(arguments: Sequence[str], root: Path) -> list[Path]:
    """Folders of plugins that the CLI is started with; the project's own files are there anyway."""
    pairs = zip_longest(arguments, arguments[1:], fillvalue="")
    named = [
        word.partition("=")[2] if "=" in word else following
        for word, following in pairs
        if word.partition("=")[0] == _PLUGIN
    ]
    folders = [Path(os.path.abspath(os.path.expanduser(name))) for name in named if name]
    return [
        folder
        for folder in folders
        if folder.is_dir() and not folder.resolve().is_relative_to(root)
    ]


def _is_below(pid: int, above: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(process.pid == above for process in psutil.Process(pid).parents())
    return False


def _clear(home: Path, folder: str) -> None:
    """Put the CLI's own file back and remove the folder, also that of a session that was killed."""
    path = Path(folder)
    if path.parent != Path(_PLACE) or not path.name.startswith(_PREFIX) or path.is_symlink():
        return
    if path.is_dir() and path.stat().st_uid == os.getuid():
        own_file.put_back(home, path, path / "home")
        shutil.rmtree(path, ignore_errors=True)
