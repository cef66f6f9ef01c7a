"""One transcript file as rows: each once, whatever was torn, glued together or written again after
a compaction."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.content import open_regular
from harness.artifacts.jsonl import LineFeed, parse_line

_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Rows:
    rows: tuple[dict[str, Any], ...]
    damaged: int


def read_rows(path: Path) -> Rows:
    """The rows of `path`; a row that was written again under its uuid counts once, where it stood
    first.

    Raises NotFoundError or UsageError when it is no file that can be read.
    """
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    damaged = 0
    for line, is_last in _lines(path):
        parsed = parse_line(line, _is_row)
        damaged += parsed.lost and not is_last
        for row in parsed.rows:
            uuid = row.get("uuid")
            if isinstance(uuid, str):
                if uuid in seen:
                    continue
                seen.add(uuid)
            found.append(row)
    return Rows(rows=tuple(found), damaged=damaged)


def _is_row(row: dict[str, Any]) -> bool:
    """Content blocks have a type too, but only a row says whose it is."""
    return isinstance(row.get("type"), str) and any(
        key in row for key in ("uuid", "sessionId", "leafUuid")
    )


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether it is the last one, not ended yet."""
    feed = LineFeed()
    with open_regular(path) as stream:
        while block := stream.read(_BLOCK):
            for line in feed.feed(block):
                yield line, False
    yield feed.rest, True
