"""A Python environment of its own that judges: a copy of the harness, links to all else that is
installed here."""

import shutil
import sys
import venv
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "harness"


(LINKED,) = Path(sys.prefix).glob("lib/python3*/site-packages")
"""Where the links lead; a sandbox needs it among what is readable."""


def make_judge(folder: Path) -> Path:
    """Make it in `folder`; returns its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    for path in LINKED.iterdir():
        if path.suffix == ".pth" and "experiment_harness" not in path.name:
            shutil.copy(path, site_of(folder))
        elif "experiment_harness" not in path.name or path.name.endswith(".dist-info"):
            (site_of(folder) / path.name).symlink_to(path)
    target = site_of(folder) / "harness"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "bin" / "python"


def site_of(folder: Path) -> Path:
    (site,) = folder.glob("lib/python3*/site-packages")
    return site
