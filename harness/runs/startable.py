"""Whether a training command can start at all, asked before its run is registered: a mistyped name
is no try, and no launch of a seed."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath

from harness.domain.commands import passed_on
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.plans.review import script_of
from harness.runs.launchers.launcher import LOCAL

_RUNNERS = re.compile(r"(python|pypy)[\d.]*\Z|torchrun\Z|accelerate\Z|(ba|da)?sh\Z")
"""Programs whose first word with the ending of a script is the script that they run."""


def require_startable(
    project: Project,
    argv: Sequence[str],
    program: str,
    *,
    inherited: Mapping[str, str],
    files: Callable[[], Iterable[str]],
    again: str,
) -> None:
    """Raises RefusedError (command_not_found) when the `program`, or the script that it runs, is
    surely not there. What can be known only inside the sandbox is left to the run.

    `files` are the names that may be meant; `again` is the call before its `--`.
    """
    local = (project.settings.launcher or LOCAL) == LOCAL
    if local and not _is_there(project, program, inherited):
        what = "is no program on the PATH that training gets"
        raise _refused(argv, program, what, (), again)
    script = script_of(argv) if _RUNNERS.match(PurePath(argv[0]).name) else None
    if script is not None and not os.path.lexists(project.layout.root / script):
        raise _refused(argv, script, "is not in the project", files(), again)


def _is_there(project: Project, program: str, inherited: Mapping[str, str]) -> bool:
    if os.sep in program:
        return os.path.lexists(project.layout.root / program)
    path = passed_on(inherited).get("PATH", os.defpath)
    return shutil.which(program, path=path) is not None


def _refused(
    argv: Sequence[str], name: str, what: str, known: Iterable[str], again: str
) -> RefusedError:
    near = get_close_matches(name, known, n=1)
    hint = f"Correct the words after `--`; `{again}` alone runs the plan's training.entry."
    if near:
        meant = " ".join(near[0] if word == name else word for word in argv)
        hint = f"Did you mean `{again} -- {meant}`?"
    return RefusedError(
        f"{name} {what}, so the command cannot start. No run was registered, and no seed is used"
        " up by it.",
        hint=hint,
        code="command_not_found",
    )
