"""Preference data handed on: rows with content hashes, and only such as say their licence and that
they may be used."""

from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.files import atomic_write, canonical_json, pretty_json, sha256_bytes
from harness.posttrain.fingerprints import rows_of
from harness.posttrain.problems import Problem, problem


def export_rows(source: Path, target: Path) -> dict[str, Any]:
    """Write the rows of `source` that have text in prompt, chosen and rejected, a `licence` and
    `consent` true to `target`, each with `sha256` of its content, and `<target>.manifest.json`. A
    row without them is left out and counted by its reason, never in silence. The same source gives
    the same bytes.

    Raises UsageError when no row may be handed on, or when something stands at `target`.
    """
    digest, rows = rows_of(source)
    kept: list[bytes] = []
    left: list[Problem] = []
    for number, row in enumerate(rows, 1):
        if fault := _fault(row):
            left.append(
                problem(f"row {number}", "a row that may be handed on", row.get("id"), fault)
            )
            continue
        content = {name: value for name, value in row.items() if name != "sha256"}
        kept.append(
            canonical_json({**content, "sha256": sha256_bytes(canonical_json(content))}) + b"\n"
        )
    if not kept:
        raise UsageError(
            f"No row of {source} may be handed on: {left[0]}.",
            hint="Give rows `licence` and `consent`.",
        )
    if target.exists():
        raise UsageError(
            f"{target} is there already.", hint="Name another file: nothing is overwritten."
        )
    data = b"".join(kept)
    manifest = {
        "source_sha256": digest,
        "sha256": sha256_bytes(data),
        "rows": len(kept),
        "left_out": [item.plain() for item in left],
        "licences": sorted({str(row["licence"]) for row in rows if not _fault(row)}),
    }
    atomic_write(target, data)
    atomic_write(target.with_name(f"{target.name}.manifest.json"), pretty_json(manifest))
    return manifest


def _fault(row: dict[str, Any]) -> str | None:
    missing = [
        key
        for key in ("prompt", "chosen", "rejected")
        if not isinstance(row.get(key), str) or not row[key]
    ]
    if missing:
        return f"no text in {', '.join(missing)}"
    if row["chosen"] == row["rejected"]:
        return "chosen equals rejected"
    if not isinstance(row.get("licence"), str) or not row["licence"].strip():
        return "no licence"
    return None if row.get("consent") is True else "no consent"
