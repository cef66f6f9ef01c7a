"""The `harness` command of this installation, for those who have to start it without an active
environment."""

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

NAME = "harness"


@cache
def executable() -> str | None:
    """Its absolute path, whichever way this process was started; None when the package was
    installed without it."""
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    folders.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    for path in (folder / NAME for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    return None
