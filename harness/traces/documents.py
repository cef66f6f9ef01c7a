"""Trajectories that are one JSON document."""

from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.content import read_bytes
from harness.artifacts.jsonl import loads
from harness.errors import UsageError
from harness.traces.tally import Tally

LARGEST = 64 << 20
"""Bytes of a document: it is held whole."""


def read_document(path: Path, tally: Tally) -> dict[str, Any]:
    """Raises UsageError when it is too large, torn or no object."""
    data = read_bytes(path, limit=LARGEST)
    tally.lines, tally.sessions = data.count(b"\n") + (not data.endswith(b"\n")), 1
    tally.ends_newline = data.endswith(b"\n")
    try:
        document = loads(data)
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"{path} is no JSON document: {error}.", hint="It may be torn: write it again."
        ) from error
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds no object.", hint="Check that it is the right file.")
    tally.rows = 1
    return document
