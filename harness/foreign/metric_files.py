"""Files of one metric each, as DVCLive and MLflow write them, and the folder of their run."""

import os
from collections.abc import Sequence
from pathlib import Path

from harness.foreign.names import is_position

MOST_FILES = 500
_ROOTS = ("metrics", "scalars", "dvclive")
_HEAD = 200


def joined(
    logs: Sequence[Path],
    top: Path,
) -> dict[Path, Path]:
    """Log -> the folder that stands for it: of the `logs` below `top` with one metric each."""
    found = [log for log in logs if log.is_file() and is_one_metric(log)]
    roots = {log: _root(log, top, found) for log in found}
    many = list(roots.values())
    return {log: root for log, root in roots.items() if many.count(root) > 1}


def is_of_mlflow(folder: Path) -> bool:
    """Whether it is ".../RUN/metrics", where RUN has a meta.yaml."""
    return folder.name == "metrics" and (folder.parent / "meta.yaml").is_file()


def files_in(folder: Path) -> list[Path]:
    """The files of one metric each in a folder that stands for a log."""
    found = []
    for place, _, names in os.walk(folder):
        found += [Path(place) / name for name in sorted(names)]
        if len(found) > 10 * MOST_FILES:
            break
    return [file for file in found if is_one_metric(file)][:MOST_FILES]


def is_one_metric(file: Path) -> bool:
    """Whether it holds one metric, named as the file is."""
    if file.suffix != ".tsv":
        return any(is_of_mlflow(parent) for parent in list(file.parents)[:4])
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return False
    line = head.split(b"\n")[0]
    names = line.decode("utf-8", "replace").split("\t")
    names = [name.strip() for name in names]
    return names[-1] == file.stem and any(is_position(name) for name in names[:-1])


def _root(
    file: Path,
    top: Path,
    found: Sequence[Path],
) -> Path:
    """The folder of the run that a file belongs to."""
    for parent in file.parents:
        if parent.name in _ROOTS:
            return parent
        if parent == top:
            break
    common = os.path.commonpath([str(each.parent) for each in found])
    return Path(common)
