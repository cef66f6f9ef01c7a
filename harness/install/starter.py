"""A small train.py and predict.py for a project that has none: the person's own from then on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.domain.metrics import METRICS, Needs
from harness.plans.labels import is_numeric
from harness.plans.tables import Table
from harness.rendering.prompts import fill

NAMES = ("train.py", "predict.py")
_READS = {".csv": "csv", ".jsonl": "json", ".parquet": ""}
SKLEARN, NUMPY = "sklearn", "numpy"


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
        columns, label = self.table.columns, self.table.columns[held_out["label"]]
        suffix = PurePosixPath(self.data["train"]).suffix
        numbers = [name for name in held_out["inputs"] if columns[name].dtype.kind in "biuf"]
        values = {
            "train": self.data["train"],
            "suffix": suffix,
            "imports": _imports(suffix),
            "label": held_out["label"],
            "numbers": numbers,
            "words": [name for name in held_out["inputs"] if name not in numbers],
            "classes": needs is not Needs.NUMBER,
            "probabilities": needs not in (Needs.NUMBER, Needs.CLASS),
            "numeric": is_numeric(label),
        }
        return {
            name: fill(f"starters/{PurePosixPath(name).stem}_{self.library}.py.j2", **values)
            for name in NAMES
        }


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
