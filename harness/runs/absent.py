"""Why a training failed that missed a file: what the project has and its workspace has not."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from harness.artifacts.code_snapshot import Snapshot
from harness.domain.findings import ABSENT, Finding
from harness.domain.records import Run
from harness.gates.findings import finding
from harness.runs.workspace import Workspace

_MISSED = re.compile(
    r"no such file|not found|does not exist|can't open|cannot open|no module named"
    r"|permission denied",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_WORDS = re.compile(r"""'([^'\n]+)'|"([^"\n]+)"|(\S*[./]\S*)""")
_MOST_WORDS = 400


def absent_findings(
    run: Run,
    stderr: Sequence[str],
    workspace: Workspace,
    snapshot: Snapshot,
    *,
    table: str,
    moved: Collection[str] = (),
) -> list[Finding]:
    """One finding for the first path named at the end of `stderr` that the project has and the
    workspace had not. `table`: the plan's training table; `moved`: those that were
    split, of which it is a part."""
    what = f"{run.experiment}/{run.id}"
    for name in _named(stderr, workspace):
        if name in moved and not os.path.lexists(workspace.root / name):
            message = f"{what} missed {name}, which was split and moved into the vault."
            # Of several findings people see the first one's message, and this hint.
            hint = f"{name} was split and moved: {table} has the rows to train on."
            hint = f"{hint} {_own_part(table)}"
            return [finding(ABSENT, message, hint, run=what, path=name)]
        if _had(snapshot, workspace, name) or not os.path.lexists(workspace.root / name):
            continue
        if name == PurePosixPath(table).as_posix():
            # Declared as readable, the whole table would bring the validation rows into training.
            message = (
                f"{what} missed {name}, which is the plan's table: training gets its own part."
            )
            return [finding(ABSENT, message, _own_part(table), run=what, path=name)]
        why = "git ignores it, or it was made later"
        if name in snapshot.too_large:
            why = "it has more than 50 MB, and git neither tracks nor ignores it"
        elif (workspace.root / name).is_dir():
            why = "no file in it is code: git ignores them, or there is none"
        message = f"{what} missed {name}, which is in the project and not in the workspace: {why}."
        return [finding(ABSENT, message, run=what, path=name)]
    return []


def _own_part(table: str) -> str:
    """What reads the training rows, also outside `harness train`."""
    return (
        f'Read the path that HARNESS_TRAIN names: `os.environ.get("HARNESS_TRAIN", "{table}")`;'
        " validation rows are in HARNESS_VALIDATION, or held out by training. Then train again."
    )


def _named(stderr: Sequence[str], workspace: Workspace) -> Iterator[str]:
    """Paths relative to the project that the text may name, the last line's first."""
    words = 0
    for line in (line for line in reversed(stderr) if _MISSED.search(line)):
        for module in _NO_MODULE.findall(line):
            base = module.replace(".", "/")
            yield from (f"{base}.py", base, base.partition("/")[0])
        for match in _WORDS.finditer(line):
            words += 1
            if words > _MOST_WORDS:
                return
            text = next(filter(None, match.groups())).strip("\"'`:,;()[]<>")
            yield from _relative(text, workspace)


def _relative(text: str, workspace: Workspace) -> Iterator[str]:
    if not text or len(text) > 1024 or "\0" in text:
        return
    for base in (workspace.seen, workspace.root):
        path = Path(os.path.normpath(base / text))
        if base in path.parents:
            name = path.relative_to(base)
            yield name.as_posix()
            # For a file that training wants to make in a folder that is not there.
            yield from (parent.as_posix() for parent in name.parents if parent.parts)
            return


def _had(snapshot: Snapshot, workspace: Workspace, name: str) -> bool:
    below = f"{name}/"
    there = (*snapshot.files, *snapshot.links, *workspace.given)
    if any(path == name or path.startswith(below) for path in there):
        return True
    return any(name.startswith(f"{path}/") for path in workspace.given)
