"""trainer_state.json of transformers: all reports so far, rewritten at each checkpoint."""

from typing import Any

from harness.foreign.log_rows import Row, flattened, make_row
from harness.foreign.parser import DocumentParser, LogHead, LogParser


def recognise(head: LogHead) -> LogParser | None:
    named = head.path.name == "trainer_state.json" or b'"log_history"' in b"".join(head.lines)
    return TrainerState() if head.first.startswith(b"{") and named else None


class TrainerState(DocumentParser):
    name = "trainer_state.json"

    def rows(self, document: Any) -> list[Row]:
        history = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            self.warnings.add("it has no list `log_history`")
            return []
        rows: list[Row] = [{"event": "start", **_total(document)}]
        rows += (
            row
            for entry in history
            if isinstance(entry, dict) and (row := _row(entry)) is not None
        )
        return rows


def _total(document: dict[str, Any]) -> Row:
    most = document.get("max_steps")
    return {"total_steps": most} if isinstance(most, int) and most > 0 else {}


def _row(entry: dict[str, Any]) -> Row | None:
    row = make_row(flattened(entry))
    if row is not None and "train_runtime" in row["metrics"]:
        return row | {"event": "summary"}
    return row
