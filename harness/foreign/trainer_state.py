"""trainer_state.json of transformers: one JSON document with all reports so far, written anew at
each checkpoint."""

from typing import Any

from harness.artifacts.content import decode
from harness.artifacts.jsonl import parse_document
from harness.errors import UsageError
from harness.foreign.lines import Warnings
from harness.foreign.rows import Row, flattened, make_row

_MOST_BYTES = 256 << 20


class WholeJson:
    """Waits for the whole document; a later one is a replaced file, for which a new parser is
    made."""

    name = "JSON"

    def __init__(self) -> None:
        self.warnings = Warnings()
        self._data = b""
        self._done = False

    def feed(self, data: bytes) -> list[Row]:
        if not data or self._done:
            return []
        self._data += data
        if len(self._data) > _MOST_BYTES:
            self.warnings.add(f"it is larger than {_MOST_BYTES >> 20} MiB; it was not read")
            self._data, self._done = b"", True
            return []
        return self._read() if self._data.rstrip(b" \t\r\n\0").endswith((b"}", b"}\0")) else []

    def finish(self) -> list[Row]:
        if not self._done and self._data.strip():
            self.warnings.add("it is no whole JSON document yet")
        return []

    def rows(self, document: Any) -> list[Row]:
        raise AssertionError("each document has its own")

    def _read(self) -> list[Row]:
        try:
            document = parse_document(decode(self._data.strip(b"\0"), where=self.name))
        except (ValueError, RecursionError, UsageError):
            return []  # still being written: the next bytes may complete it
        self._data, self._done = b"", True
        return self.rows(document)


class TrainerState(WholeJson):
    name = "trainer_state.json"

    def rows(self, document: Any) -> list[Row]:
        history = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            self.warnings.add("it has no list log_history")
            return []
        rows: list[Row] = [{"event": "start", **_total(document)}]
        rows += (
            row for item in history if isinstance(item, dict) and (row := _row(item)) is not None
        )
        return rows


def _total(document: dict[str, Any]) -> Row:
    most = document.get("max_steps")
    return {"total_steps": most} if isinstance(most, int) and most > 0 else {}


def _row(item: dict[str, Any]) -> Row | None:
    row = make_row(flattened(item))
    if row is not None and "train_runtime" in row["metrics"]:
        return {"event": "summary", "metrics": row["metrics"]}
    return row
