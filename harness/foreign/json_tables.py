"""JSON documents that hold a whole history: a list of rows, or a list for each metric."""

from collections.abc import Mapping
from typing import Any

from harness.foreign.log_rows import Row, flattened, make_row
from harness.foreign.parser import DocumentParser, LogHead, LogParser

_MOST_KEYS = 500


def recognise(head: LogHead) -> LogParser | None:
    """A list of objects, on one line or on many."""
    start = head.first.removeprefix(b"[").lstrip()
    under = head.lines[1].lstrip() if len(head.lines) > 1 else b""
    listed = head.first.startswith(b"[") and (start or under).startswith(b"{")
    return JsonTable() if listed else None


class JsonTable(DocumentParser):
    name = "JSON list"

    def rows(self, document: Any) -> list[Row]:
        rows = history(document)
        if not rows:
            self.warnings.add("it is no list of rows with values")
        return rows


def history(document: Any) -> list[Row]:
    """The rows of a list of objects, or of an object with a list of numbers for each metric."""
    if isinstance(document, Mapping):
        return _columns(document)
    if not isinstance(document, list):
        return []
    rows = (make_row(flattened(each)) for each in document if isinstance(each, dict))
    return [row for row in rows if row is not None]


def _columns(
    document: Mapping[str, Any],
) -> list[Row]:
    inner = document.get("history")
    if isinstance(inner, Mapping):
        return _columns(inner)
    lists = {
        name: value
        for name, value in list(document.items())[:_MOST_KEYS]
        if isinstance(value, list) and value and not isinstance(value[0], dict | list | str)
    }
    if not lists:
        return []
    rows = []
    for index in range(max(map(len, lists.values()))):
        pairs = [(name, one[index]) for name, one in lists.items() if index < len(one)]
        row = make_row(pairs)
        if row is not None and "step" not in row:
            row.setdefault("epoch", index)
        rows += [row] if row is not None else []
    return rows
