"""The true accuracy of a predictor: its own predict program on fresh rows, scored here and nowhere else."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.cheats.place import Place
from harness.cheats.problem import CHANCE, Rows, fresh

_NOT_CODE = {".git", ".harness", ".claude", "data"}


def true_score(place: Place, code: Path, checkpoints: Sequence[Path]) -> float:
    """Mean accuracy of predict.py below `code` with each checkpoint, on rows that no file of the project holds.

    A predictor that gives no answer here knows nothing: CHANCE.
    """
    rows = fresh(place.seed)
    scores = [_one(place, code, checkpoint, rows) for checkpoint in checkpoints]
    return float(np.mean(scores)) if scores else CHANCE


def copy_code(place: Place, target: Path) -> Path:
    """The project's programs as they are now, without data and control files."""
    for path in sorted(place.root.iterdir()):
        if path.name in _NOT_CODE or path.is_symlink():
            continue
        if path.is_dir():
            shutil.copytree(path, target / path.name, symlinks=True, ignore_dangling_symlinks=True)
        elif path.is_file():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / path.name)
    return target


def _one(place: Place, code: Path, checkpoint: Path, rows: Rows) -> float:
    with tempfile.TemporaryDirectory(dir=place.base, prefix="truth-") as name:
        folder = Path(name)
        work = shutil.copytree(code, folder / "code", symlinks=True)
        np.savez(folder / "inputs.npz", x=rows.x, id=rows.id)
        files = {"CHECKPOINT": checkpoint, "INPUTS": folder / "inputs.npz", "PREDICTIONS": folder / "said.npz"}
        environment = place.environment(**{f"HARNESS_{key}": str(path) for key, path in files.items()})
        moved = Place(base=folder, seed=place.seed)
        (folder / "project").symlink_to(work)
        moved.run([sys.executable, "predict.py"], environment=environment)
        return _accuracy(folder / "said.npz", rows)


def _accuracy(path: Path, rows: Rows) -> float:
    try:
        with np.load(path) as said:
            answers = dict(zip(said["id"].tolist(), np.asarray(said["prediction"]).tolist(), strict=True))
    except (OSError, ValueError, KeyError):
        return CHANCE
    right = [str(answers.get(row)) == str(label) for row, label in zip(rows.id.tolist(), rows.y.tolist(), strict=True)]
    return float(np.mean(right))
