"""The table of checks, and their run over one project."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.doctor.claude_cli import cli_mode, cli_version
from harness.doctor.enclosing_session import EnclosingSession
from harness.doctor.entry_checks import (
    entries_absolute,
    entries_fail_closed,
    entries_matcher,
    entries_once,
    entries_present,
    entries_synchronous,
    entries_timeout,
    entries_type,
    other_hooks,
    other_plugins,
)
from harness.doctor.hook_files import (
    hook_files_current,
    hook_files_present,
    hook_files_readable,
    hook_files_unchanged,
    snapshot_fresh,
    snapshot_sound,
)
from harness.doctor.information import (
    agent_files,
    hooks_installed,
    isolated_session,
    mcp_server,
    sandbox,
)
from harness.doctor.live_cli import cli_denies
from harness.doctor.report import DoctorCheck, Report, broken
from harness.doctor.settings_checks import (
    hooks_enabled,
    settings_accepted,
    settings_readable,
    start_folder,
)
from harness.doctor.settings_files import MANAGED_FOLDER
from harness.doctor.start_hooks import guards_answer, interpreter, others_answer
from harness.doctor.subject import DoctorSubject, look, projects_below
from harness.domain.statuses import HooksMode
from harness.errors import NotFoundError

CheckFunction = Callable[[DoctorSubject], DoctorCheck]
OF_THE_PLACE: tuple[CheckFunction, ...] = (
    hooks_installed,
    start_folder,
    settings_readable,
    hooks_enabled,
)
OF_THE_HOOKS: tuple[CheckFunction, ...] = (
    settings_accepted,
    entries_present,
    entries_type,
    entries_absolute,
    entries_fail_closed,
    entries_synchronous,
    entries_timeout,
    entries_matcher,
    entries_once,
    interpreter,
    hook_files_present,
    hook_files_readable,
    hook_files_unchanged,
    hook_files_current,
    guards_answer,
    others_answer,
)
"""Only where hooks can be seen."""
OF_THE_REST: tuple[CheckFunction, ...] = (
    other_hooks,
    other_plugins,
    snapshot_sound,
    snapshot_fresh,
    cli_version,
    cli_mode,
    agent_files,
    mcp_server,
    sandbox,
    isolated_session,
)
WITH_THE_CLI: tuple[CheckFunction, ...] = (cli_denies,)


def run_doctor(
    root: Path,
    environment: Mapping[str, str],
    *,
    start_cli: bool,
    session: EnclosingSession | None,
    managed_folder: Path = MANAGED_FOLDER,
) -> Report:
    """Make every check on the project that contains `root`; with `start_cli` start the CLI once.

    `session` encloses the doctor. Raises NotFoundError when no project is near.
    """
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    try:
        subject = look(
            root, environment, home=home, managed_folder=managed_folder, session=session
        )
    except NotFoundError:
        below = projects_below(root.resolve())
        if not below:
            raise
        return Report(project=None, checks=(_start_below(root.resolve(), below),))
    return examine(subject, start_cli=start_cli)


def examine(subject: DoctorSubject, *, start_cli: bool) -> Report:
    seen = subject.mode is HooksMode.PROJECT or subject.plugin is not None
    hooks = (*OF_THE_HOOKS, *(WITH_THE_CLI if start_cli else ())) if seen else ()
    wanted = (*OF_THE_PLACE, *hooks, *OF_THE_REST)
    return Report(project=subject.root, checks=tuple(check(subject) for check in wanted))


def _start_below(start: Path, projects: list[Path]) -> DoctorCheck:
    named = ", ".join(str(path) for path in projects[:5])
    check = broken(
        f"claude started in {start} reads {start}/.claude only, and no project is here; below it"
        f" are: {named}.",
        f"Start claude, and `harness doctor`, in the project's own folder, e.g. {projects[0]}.",
    )
    return replace(check, name=start_folder.__name__)
