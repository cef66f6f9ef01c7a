"""docs/evidence/NAME.json: figures, each written by the program that measured them."""

import json
import math
import re
from pathlib import Path

from harness.claims.known import Known
from harness.errors import UsageError

FOLDER = "docs/evidence"
_HINT = "Write it anew with its program and `--record`."


def read_evidence_files(root: Path) -> dict[str, dict[str, float]]:
    """Path from `root` -> the numbers under `figures`; of a text the number that it begins with.

    Raises UsageError for a file that is no JSON object with `name`, `command` and `figures`.
    """
    return {
        path.relative_to(root).as_posix(): _figures(path)
        for path in sorted((root / FOLDER).glob("*.json"))
    }


def _figures(path: Path) -> dict[str, float]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}.", hint=_HINT) from error
    missing = {"name", "command", "figures"} - set(document if isinstance(document, dict) else ())
    if missing or not isinstance(document["figures"], dict):
        raise UsageError(
            f"{path} lacks {', '.join(sorted(missing)) or 'a mapping under figures'}.", hint=_HINT
        )
    numbers = {key: _number(value) for key, value in document["figures"].items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(value: object) -> float | None:
    if isinstance(value, str):
        match = re.match(r"[-+]?\d+(?:\.\d+)?", value)
        return float(match.group()) if match else None
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable and isinstance(value, int | float) else None


def known_files(root: Path) -> Known:
    """What the repository at `root` knows without a ledger: its files of evidence and its programs
    in bench/."""
    programs = frozenset(path.relative_to(root).as_posix() for path in root.glob("bench/**/*.py"))
    return Known(evidence=read_evidence_files(root), programs=programs)
