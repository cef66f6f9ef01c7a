"""What a trainer reads: the specification and the rows, each hashed from the bytes that were
read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.files import canonical_json, sha256_bytes


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The parts of a specification that training needs; the harness has checked every bound
    before."""

    raw: Mapping[str, Any]
    sha256: str
    """Of the bytes of the file as read."""

    @classmethod
    def read(cls, path: Path) -> "Spec":
        """Raises UsageError for what is no specification of schema 1."""
        data = path.read_bytes()
        found = json.loads(data)
        if not isinstance(found, dict) or found.get("schema") != 1:
            raise UsageError(
                f"{path} is no specification of schema 1.",
                hint="Write one with `harness posttrain spec`.",
            )
        return cls(raw=found, sha256=sha256_bytes(data))

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        return dict(self.raw["hyperparameters"])

    @property
    def max_length(self) -> int:
        return int(self.hyperparameters["max_seq_length"])

    @property
    def seed(self) -> int:
        return int(self.raw["seed"])

    @property
    def model_path(self) -> Path:
        """Raises UsageError where the specification names no folder."""
        if not self.raw["model"].get("path"):
            raise UsageError(
                f"{self.raw['model'].get('id')} has no folder on this machine.",
                hint="Add it with `harness posttrain model add`.",
                code="model_missing",
            )
        return Path(self.raw["model"]["path"])

    def config_fingerprint(self) -> str:
        """Of what is used here, as docs/training-programs.md defines it; not copied from the
        specification."""
        parts = ("backend", "dtype", "hyperparameters", "mode", "seed")
        return sha256_bytes(canonical_json({name: self.raw[name] for name in parts}))


@dataclass(frozen=True, kw_only=True)
class Rows:
    rows: list[dict[str, Any]]
    sha256: str


def read_rows(path: Path, *texts: str) -> Rows:
    """The JSON objects of a file, one a line, with the hash of the same bytes.

    Raises UsageError with the number of the line that is no object, or lacks one of `texts`, which
    must be text.
    """
    data = path.read_bytes()
    rows = []
    for number, line in enumerate(data.decode("utf-8-sig").split("\n"), 1):
        if line.strip():
            rows.append(_row(line, number, path.name, texts))
    if not rows:
        raise UsageError(
            f"{path.name} holds no rows.",
            hint="Give a file with at least one.",
            code="dataset_empty",
        )
    return Rows(rows=rows, sha256=sha256_bytes(data))


def _row(line: str, number: int, name: str, texts: tuple[str, ...]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _bad(name, number, f"is no JSON ({error})") from error
    if not isinstance(row, dict):
        raise _bad(name, number, "is no JSON object")
    missing = [text for text in texts if not isinstance(row.get(text), str)]
    if missing:
        raise _bad(name, number, f"has no text under {', '.join(missing)}")
    return row


def _bad(name: str, number: int, what: str) -> UsageError:
    return UsageError(
        f"Line {number} of {name} {what}.",
        hint="Fix it; docs/training-programs.md.",
        code="dataset_row",
    )
