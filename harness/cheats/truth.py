"""The true accuracy of a predictor: its own predict program on fresh rows, scored here and nowhere
else."""

import csv
import math
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.cheats.place import Place
from harness.cheats.problem import CHANCE, Rows, fresh

_NOT_CODE = {".git", ".harness", ".claude", "data"}


def true_score(place: Place, code: Path, checkpoints: Sequence[Path]) -> float:
    """Mean accuracy of predict.py below `code` with each checkpoint, on rows that no file of the
    project holds.

    It is that over all rows: one that is left out or answered with NaN is wrong, so that who
    answers only what is easy is worse by truth, not better. A predictor that gives no answers here
    at all knows nothing: CHANCE.
    """
    rows = fresh(place.seed)
    scores = [
        accuracy(answers_of(place, code, checkpoint, rows), rows) for checkpoint in checkpoints
    ]
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


def answers_of(place: Place, code: Path, checkpoint: Path, rows: Rows) -> dict[str, str] | None:
    """Row id -> what predict.py below `code` answers with `checkpoint`; None when it wrote nothing
    that can be read."""
    with tempfile.TemporaryDirectory(dir=place.base, prefix="truth-") as name:
        folder = Path(name)
        work = shutil.copytree(code, folder / "code", symlinks=True)
        np.savez(folder / "inputs.npz", x=rows.x, id=rows.id)
        files = {
            "CHECKPOINT": checkpoint,
            "INPUTS": folder / "inputs.npz",
            "PREDICTIONS": folder / "said.npz",
        }
        environment = place.environment(
            **{f"HARNESS_{key}": str(path) for key, path in files.items()}
        )
        moved = Place(base=folder, seed=place.seed)
        (folder / "project").symlink_to(work)
        moved.run([sys.executable, "predict.py"], environment=environment)
        return _read(folder / "said.npz")


def _read(path: Path) -> dict[str, str] | None:
    """Of npz without Python objects, or csv."""
    try:
        if not zipfile.is_zipfile(path):
            with path.open(encoding="utf-8", newline="") as lines:
                return {row["id"]: row["prediction"] for row in csv.DictReader(lines)}
        with np.load(path) as said:
            pairs = zip(said["id"].tolist(), np.asarray(said["prediction"]).tolist(), strict=True)
            return {str(row): str(answer) for row, answer in pairs}
    except (OSError, ValueError, KeyError):
        return None


def accuracy(answers: Mapping[str, str] | None, rows: Rows) -> float:
    """Share of all `rows` that are answered right, as numbers: 2, 2.0 and "2" are one answer. A row
    without an answer, or with one that is no number, is wrong; without any answers, CHANCE."""
    if answers is None:
        return CHANCE
    pairs = zip(rows.id.tolist(), rows.y.tolist(), strict=True)
    return float(np.mean([_number(answers.get(str(row))) == label for row, label in pairs]))


def _number(answer: str | None) -> float:
    """NaN, which equals nothing, for what is no number."""
    try:
        return math.nan if answer is None else float(answer)
    except ValueError:
        return math.nan
