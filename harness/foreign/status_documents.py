"""Status files of other programs: one JSON object that claims where a training is."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.detectors.metric_names import MetricRole, role_of
from harness.foreign.json_lines import are_lines
from harness.foreign.json_tables import history
from harness.foreign.log_rows import Row, as_number, flattened, make_row
from harness.foreign.parser import DocumentParser, LogHead, LogParser

_DONE = ("current_steps", "current_step", "global_step", "step", "steps_done")
_SECONDS = {
    "elapsed_hours": 3600.0,
    "elapsed_minutes": 60.0,
    "elapsed_seconds": 1.0,
    "duration_s": 1.0,
    "seconds": 1.0,
}
_JUDGED = (MetricRole.LOSS, MetricRole.SCORE)
_NO_TRAINING_S = 60.0
"""A part of a training that took less time has hardly trained."""
_HEARTBEATS = frozenset(
    {"updated_at", "heartbeat", "last_update", "last_updated", "timestamp"},
)


def recognise(head: LogHead) -> LogParser | None:
    if head.path.suffix != ".json" or not head.first.startswith(b"{") or are_lines(head):
        return None
    # Until its first line has ended, it may be the first of many objects.
    begun = bool(head.lines) or head.whole or head.first.endswith(b"}")
    return StatusDocument() if begun else None


class StatusDocument(DocumentParser):
    """One row: where the training claims to be."""

    name = "status file"

    def __init__(self) -> None:
        super().__init__()
        self._notes: list[str] = []

    def notes(self) -> list[str]:
        return self._notes

    def rows(self, document: Any) -> list[Row]:
        if rows := history(document):
            return rows
        if not isinstance(document, dict):
            self.warnings.add("it is not a JSON object")
            return []
        if (row := _measured(document)) is not None:
            return [row]
        status = document.get("status")
        row = {"event": "status", "status": status if isinstance(status, str) else None}
        step = next(
            (number for name in _DONE if (number := as_number(document.get(name))) is not None),
            None,
        )
        total = as_number(document.get("total_steps"))
        counters = {"step": step, "total_steps": total}
        row |= {name: value for name, value in counters.items() if value is not None}
        if status == "running" and not _HEARTBEATS & document.keys():
            self._notes.append(
                "its status is running, without a time: nothing shows that it still runs"
            )
        self._notes += _hasty(document, "")
        return [row]


def _measured(document: Mapping[str, Any]) -> Row | None:
    """The row of one epoch's or step's metrics, as AllenNLP and transformers leave them."""
    row = None if "status" in document else make_row(flattened(document))
    if row is None or ("epoch" not in row and "step" not in row):
        return None
    judged = any(role_of(name) in _JUDGED for name in row.get("metrics", {}))
    return row if judged else None


def _hasty(
    value: Any,
    name: str,
    depth: int = 0,
) -> Iterator[str]:
    """A note for each part that claims success after less than a minute."""
    if depth > 8:
        return
    if isinstance(value, list):
        for index, part in enumerate(value[:1000]):
            yield from _hasty(part, f"{name} {index + 1}".strip(), depth + 1)
    if not isinstance(value, Mapping):
        return
    name = next(
        (text for key in ("phase", "name", "stage") if isinstance(text := value.get(key), str)),
        name,
    )
    for key, unit in _SECONDS.items():
        passed = as_number(value.get(key))
        if value.get("success") is True and passed is not None and passed * unit < _NO_TRAINING_S:
            yield f"{name[:40] or 'it'} claims success after {passed * unit:.1f} s"
    for key, part in value.items():
        yield from _hasty(part, name if key == "results" else str(key), depth + 1)
