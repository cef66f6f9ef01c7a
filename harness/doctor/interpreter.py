"""Checks of the Python that the settings name: it is there, it is itself and no shim, and it can run the hooks."""

import os
from collections.abc import Iterator
from pathlib import Path

from harness.doctor.report import Check, dead, good, note
from harness.doctor.scene import Scene
from harness.doctor.surroundings import clean_environment, run, temporary_folder
from harness.handlers.table import ISOLATED

_SELF_TEST = "import sys, os, hashlib, unicodedata, fnmatch; sys.stdout.write('%d.%d' % sys.version_info[:2])"
_OLDEST = (3, 9)
_ANSWER_S = 10.0
MEND = "`harness init` chooses a Python that works and writes the entries again; run it in your own terminal."


def interpreter(scene: Scene) -> Check:
    """Whether every Python of our entries works when started as a hook is."""
    programs = sorted({hook.words[0] for hook in scene.own() if isinstance(hook.body.get("args"), list)})
    if not programs:
        return note("interpreter", "No entry of ours names an interpreter.")
    faults = [f"{program} {fault}" for program in programs for fault in _faults(program, scene)]
    if faults:
        return dead("interpreter", f"The hooks' Python does not do: {'; '.join(faults)}.", MEND)
    return good("interpreter", f"{', '.join(programs)} runs the hooks")


def _faults(program: str, scene: Scene) -> Iterator[str]:
    path = Path(program)
    if not path.is_absolute():
        yield "is not an absolute path, so PATH decides which one it is"
    elif not path.is_file():
        yield "does not exist"
    elif not os.access(path, os.X_OK):
        yield "may not be executed"
    elif shim := _shim(path):
        yield f"is {shim}: it picks a version by the current folder and the environment, and may find none"
    else:
        yield from _self_test(program, scene)


def _shim(path: Path) -> str:
    """What kind of stand-in `path` is; "" for a Python itself."""
    if "shims" in path.parts:
        return "a shim (pyenv, asdf or mise)"
    if path.name in ("uv", "uvx"):
        return "uv, not a Python"
    with path.open("rb") as stream:
        return "a script, not a Python" if stream.read(2) == b"#!" else ""


def _self_test(program: str, scene: Scene) -> Iterator[str]:
    with temporary_folder() as folder:
        try:
            ended = run(
                [program, *ISOLATED, "-c", _SELF_TEST],
                cwd=folder,
                environment=clean_environment(folder, scene.environment),
                timeout_s=_ANSWER_S,
            )
        except OSError as error:
            yield f"cannot be started ({error.strerror})"
            return
    said = (ended.stderr or ended.stdout).strip()[-200:]
    if ended.code is None:
        yield f"did not answer in {_ANSWER_S:g} s"
    elif ended.code != 0:
        yield f"failed the self-test (status {ended.code}: {said})"
    elif tuple(int(part) for part in ended.stdout.split(".") if part.isdigit()) < _OLDEST:
        yield f"is Python {ended.stdout}; the hooks need {_OLDEST[0]}.{_OLDEST[1]} or newer"
