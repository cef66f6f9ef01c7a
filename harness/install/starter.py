"""A small train.py and predict.py for a project that has none: the person's own from then on."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import Any

from harness.domain.metrics import METRICS, Needs
from harness.plans.labels import is_numeric
from harness.plans.tables import Column, Table, is_number
from harness.rendering.prompts import fill

NAMES = ("train.py", "predict.py")
_READS = {".csv": "csv", ".jsonl": "json", ".parquet": ""}
SKLEARN, NUMPY = "sklearn", "numpy"
_EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "."})
_MOST_WORDS = 50
"""Different values up to which a column of text is one of classes."""
_FREE_TEXT = 3
"""Words of a usual cell from which on a column is free text."""


class Kind(Enum):
    """What the programs make of an input."""

    NUMBERS = auto()
    GAPS = auto()
    """Numbers, but for cells that say that there is none."""
    WORDS = auto()
    TEXTS = auto()
    LEFT = auto()
    """Left out: names, dates, keys."""


@dataclass(frozen=True, kw_only=True)
class Starter:
    data: Mapping[str, Any]
    """The plan's `data`."""
    table: Table
    """Of training."""
    metric: str
    library: str
    """SKLEARN or NUMPY."""

    def texts(self) -> dict[str, str]:
        """Name -> text of the two programs."""
        held_out, needs = self.data["held_out"], METRICS[self.metric].needs
        label = self.table.columns[held_out["label"]]
        suffix = PurePosixPath(self.data["train"]).suffix
        kinds = self.kinds()
        values = {
            "train": self.data["train"],
            "suffix": suffix,
            "imports": _imports(suffix),
            "label": held_out["label"],
            "numbers": [*kinds[Kind.NUMBERS], *kinds[Kind.GAPS]],
            "gaps": kinds[Kind.GAPS],
            "words": kinds[Kind.WORDS],
            "texts": kinds[Kind.TEXTS],
            "left": kinds[Kind.LEFT],
            "classes": needs is not Needs.NUMBER,
            "probabilities": needs not in (Needs.NUMBER, Needs.CLASS),
            "numeric": is_numeric(label),
        }
        return {
            name: fill(f"starters/{PurePosixPath(name).stem}_{self.library}.py.j2", **values)
            for name in NAMES
        }

    def kinds(self) -> dict[Kind, list[str]]:
        """The inputs, by what the programs make of them."""
        of: dict[Kind, list[str]] = {kind: [] for kind in Kind}
        for name in self.data["held_out"]["inputs"]:
            of[_kind(self.table.columns[name])].append(name)
        if self.library == NUMPY:
            of[Kind.LEFT] += of.pop(Kind.TEXTS)
            of[Kind.TEXTS] = []
        if not any(of[kind] for kind in Kind if kind is not Kind.LEFT):
            of[Kind.WORDS], of[Kind.LEFT] = of[Kind.LEFT], []
        return of

    def told(self) -> list[str]:
        """What a person should know of the inputs, one line each."""
        kinds = self.kinds()
        gaps, left = (", ".join(kinds[kind]) for kind in (Kind.GAPS, Kind.LEFT))
        filled = "median" if self.library == SKLEARN else "mean"
        lines = [f"train.py fills empty cells of {gaps} with the {filled}"] if gaps else []
        if left:
            lines.append(
                f"train.py leaves out {left}: nearly each row has a value of its own there"
            )
        return lines


def _kind(column: Column) -> Kind:
    if column.dtype.kind in "biuf":
        return Kind.NUMBERS
    cells = [str(cell).strip() for cell in column.reshape(-1).tolist()]
    said = [cell for cell in cells if cell.lower() not in _EMPTY]
    different = len(set(said))
    if not said:
        return Kind.LEFT
    if all(map(is_number, said)):
        return Kind.GAPS
    if different <= max(_MOST_WORDS, len(cells) // 10):
        return Kind.WORDS
    words = sum(len(cell.split()) for cell in said) / len(said)
    return Kind.TEXTS if words >= _FREE_TEXT else Kind.LEFT


def library_of(packages: Mapping[str, Any]) -> str | None:
    """What the programs are written with, by the interpreter's packages; None where it has
    neither."""
    have = {name.lower() for name in packages}
    if {"scikit-learn", "joblib"} <= have:
        return SKLEARN
    return NUMPY if "numpy" in have else None


def missing(root: Path) -> bool:
    """Whether neither program is there."""
    return not any((root / name).exists() for name in NAMES)


def _imports(suffix: str) -> str:
    first = _READS.get(suffix)
    lines = [f"import {first}"] if first else []
    lines.append("import os")
    lines += ["", "import pyarrow.parquet"] if suffix == ".parquet" else []
    return "\n".join(lines) + "\n"
