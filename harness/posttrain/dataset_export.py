"""Preference rows for others, with content hashes; only rows that state a licence and consent."""

from pathlib import Path
from typing import Any

from harness.domain.row_forms import flat, one_form
from harness.errors import UsageError
from harness.files import (
    atomic_write,
    canonical_json,
    pretty_json,
    sha256_bytes,
)
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.untrusted_json import read_json_lines


def export_rows(source: Path, target: Path) -> dict[str, Any]:
    """Write rows of `source` to `target`, each with the `sha256` of its content, and
    `<target>.manifest.json`. The same source gives the same bytes.

    A row needs prompt, chosen and rejected in a known layout, a `licence`, and `consent` true; the
    manifest says why each other row is left out. Raises UsageError.
    """
    digest, rows = read_json_lines(source)
    kept: list[bytes] = []
    left_out = FieldProblems()
    for number, row in enumerate(rows, 1):
        if fault := _fault(row):
            left_out.add(f"row {number}", "a row that may be exported", row.get("id"), fault)
            continue
        content = {name: value for name, value in row.items() if name != "sha256"}
        kept.append(
            canonical_json({**content, "sha256": sha256_bytes(canonical_json(content))}) + b"\n"
        )
    if not kept:
        raise UsageError(
            f"No row of {source} may be exported: {left_out[0]}.",
            hint="Give rows `licence` and `consent`.",
        )
    if target.exists():
        raise UsageError(f"{target} exists.", hint="Name another file: nothing is overwritten.")
    data = b"".join(kept)
    manifest = {
        "source_sha256": digest,
        "sha256": sha256_bytes(data),
        "rows": len(kept),
        "left_out": [problem.plain() for problem in left_out],
        "licences": sorted({str(row["licence"]) for row in rows if not _fault(row)}),
    }
    atomic_write(target, data)
    atomic_write(target.with_name(f"{target.name}.manifest.json"), pretty_json(manifest))
    return manifest


def _fault(row: dict[str, Any]) -> str | None:
    texts = {key: flat(one_form(row).get(key)) for key in ("prompt", "chosen", "rejected")}
    if missing := [key for key, text in texts.items() if not text]:
        return f"no text in {', '.join(missing)}"
    if texts["chosen"] == texts["rejected"]:
        return "chosen equals rejected"
    if not isinstance(row.get("licence"), str) or not row["licence"].strip():
        return "no licence"
    return None if row.get("consent") is True else "no consent"
