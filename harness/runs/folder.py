"""A run's folder as it is before anything is started."""

import os
from pathlib import Path

from harness.errors import RunError


def fresh_folder(folder: Path) -> float:
    """Make a new, empty folder and return the file system's time of it; what somebody put there
    before is moved beside it, never read and never overwritten.

    Raises RunError when 10,000 of them lie there.
    """
    for number in range(1, 10_000):
        try:
            folder.mkdir(parents=True)
            return folder.stat().st_mtime
        except FileExistsError:
            aside = folder.with_name(f"{folder.name}.before-{number}")
            if not os.path.lexists(aside):
                folder.rename(aside)
    raise RunError(f"10,000 folders {folder}.before-* exist already.", hint="Remove them.")
