"""The Claude Code CLI of this machine: its place and version, and whether hooks run in it."""

import importlib.util
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.doctor.enclosing_session import switched_off_by
from harness.doctor.probe_process import clean_environment, run, temporary_folder
from harness.doctor.report import DoctorCheck, amiss, broken, doctor_check, good, note
from harness.doctor.settings_files import MANAGED, USER
from harness.doctor.subject import DoctorSubject
from harness.guard.hooks.settings_guard import switched_off
from harness.guard.hooks.settings_keys import OFF_SWITCHES, is_on

# Older versions let a call through when a hook cannot start, is late or crashes. They also have
# hook bugs that were fixed later: a comma in a matcher never fired (2.1.191), JSON with exit status
# 2 did not block (2.1.214), a deleted current folder stopped every hook (2.1.239). We measured
# 2.1.332.
MINIMUM_CLI = (2, 1, 295)
"""The first with `onFailure: "block"` on command hooks, by its changelog and by trying it."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_ANSWER_S = 30.0
_UPDATE = "Update it: `claude update`, or install Claude Code again."


@dataclass(frozen=True, kw_only=True)
class FoundCli:
    program: Path
    bundled: bool
    """It came with the Agent SDK."""


def find_clis(environment: Mapping[str, str], home: Path) -> list[FoundCli]:
    """The CLIs that a person or the harness starts, the person's first."""
    on_path = shutil.which("claude", path=environment.get("PATH", ""))
    usual = [home / ".local/bin/claude", home / ".claude/local/claude"]
    persons = [Path(on_path)] if on_path else [path for path in usual if path.is_file()]
    found = [FoundCli(program=path, bundled=False) for path in persons]
    bundled = bundled_program()
    return found + ([FoundCli(program=bundled, bundled=True)] if bundled else [])


def bundled_program() -> Path | None:
    """The CLI in the Agent SDK's package."""
    # Not imported: the SDK loads slowly.
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).resolve().parent / "_bundled" / "claude"
    return program if program.is_file() else None


def version_of(
    program: Path, environment: Mapping[str, str]
) -> tuple[tuple[int, ...] | None, str]:
    """(version, output); the version is None when the CLI printed none in time."""
    with temporary_folder() as folder:
        try:
            ended = run(
                [str(program), "--version"],
                cwd=folder,
                environment=clean_environment(folder, environment),
                timeout_s=_ANSWER_S,
            )
        except OSError as error:
            return None, f"{type(error).__name__}: {error.strerror}"
    if ended.code is None:
        return None, f"no answer in {_ANSWER_S:g} s"
    output = (ended.stdout + ended.stderr).strip()
    match = _VERSION.search(output)
    if ended.code != 0 or match is None:
        return None, output.splitlines()[-1] if output else f"exit status {ended.code}"
    return tuple(int(part) for part in match.groups()), output


@doctor_check
def cli_version(subject: DoctorSubject) -> DoctorCheck:
    """Whether the CLI that a person starts knows `onFailure`."""
    clis = find_clis(subject.environment, subject.home)
    if not clis:
        return note(
            "No Claude Code CLI is on PATH, and the Agent SDK brings none, so nothing was started.",
            "Install Claude Code, or give its folder in PATH, and run `harness doctor` again.",
        )
    cli = clis[0]
    version, problem = version_of(cli.program, subject.environment)
    if version is None:
        return amiss(
            f"{cli.program} --version printed no version: {problem}.",
            "Run it by hand to see why, or install it again.",
        )
    shown, least = ".".join(map(str, version)), ".".join(map(str, MINIMUM_CLI))
    if version < MINIMUM_CLI:
        return broken(
            f"{cli.program} is {shown}, older than {least}: it ignores onFailure, so a guard"
            " that cannot run lets the call through.",
            _UPDATE,
        )
    from_sdk = " (the Agent SDK's; no `claude` is on PATH)" if cli.bundled else ""
    return good(f"{cli.program} is {shown}{from_sdk}; at least {least} is needed")


@doctor_check
def cli_mode(subject: DoctorSubject) -> DoctorCheck:
    """Whether hooks run in the enclosing session, or in one that starts with this environment."""
    faults = [
        f"{name} is set in this environment"
        for name in OFF_SWITCHES
        if is_on(subject.environment.get(name))
    ]
    faults += list(_set_by_settings(subject))
    options = switched_off_by(subject.session) if subject.session else []
    faults += [f"the running session was started with {option}" for option in options]
    if faults:
        return broken(
            f"Claude Code runs no hook of the project: {'; '.join(faults)}.",
            "Unset the variable or leave out the option, and start `claude` again.",
        )
    if subject.session is None:
        return good(
            "nothing in this environment switches hooks off (options and aliases cannot be seen)"
        )
    return good("the running session was not started in a mode without hooks")


def _set_by_settings(subject: DoctorSubject) -> Iterator[str]:
    for file in subject.files:
        if file.source in (MANAGED, USER):
            yield from (f"{file.path} sets {name}" for name in switched_off(file.data))
