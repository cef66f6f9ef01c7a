"""The byte code that predict gets for the libraries of an environment in the project.

Python takes a module's byte code for its source as soon as the times in its head fit, so what lies
in `__pycache__` there could be anything. Predict looks elsewhere: in a folder outside the project
that a program of ours filled by importing, confined, what the code imports. What is not there is
compiled each time.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness.domain.sandbox import Confinement, Sandbox
from harness.files import make_folder, private_folder
from harness.process import SYSTEM_FOLDERS

_LONGEST_S = 120.0
_MOST = 200
"""Modules that are imported."""
_IMPORT = """\
import contextlib, importlib, sys
for name in sys.argv[1:]:
    with contextlib.suppress(BaseException):
        importlib.import_module(name)
"""


def compiled(
    place: Path, program: Path, modules: Iterable[str], sandbox: Sandbox, *, work: Path
) -> Path:
    """`place`, filled unless it is there; it is named after the state of the environment of
    `program`, its times included, and what lies beside it is of other states. Fresh folders are
    made below `work`."""
    if place.is_dir():
        return place
    private_folder(place.parent)
    make_folder(work)
    fresh = Path(tempfile.mkdtemp(dir=work, prefix="byte-code-"))
    try:
        sandbox.run(
            [
                str(program),
                "-I",
                "-X",
                f"pycache_prefix={fresh}",
                "-c",
                _IMPORT,
                *sorted(modules)[:_MOST],
            ],
            confinement=Confinement(writable=(fresh,)),
            cwd=fresh,
            environment={"PATH": os.pathsep.join(SYSTEM_FOLDERS)},
            timeout_s=_LONGEST_S,
        )
        # Another process may have made it since.
        with contextlib.suppress(OSError):
            fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for other in place.parent.iterdir():
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    return place
