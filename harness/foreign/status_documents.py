"""Status files of other programs: one JSON object that says how a training goes. What it says is
only said."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.foreign.rows import Row, as_number
from harness.foreign.trainer_state import WholeJson

_DONE = ("current_steps", "current_step", "global_step", "step", "steps_done")
_SECONDS = {
    "elapsed_hours": 3600.0,
    "elapsed_minutes": 60.0,
    "elapsed_seconds": 1.0,
    "duration_s": 1.0,
    "seconds": 1.0,
}
_NO_TRAINING_S = 60.0
"""A part of a training that claims success after less has hardly trained."""
_HEARTBEATS = frozenset({"updated_at", "heartbeat", "last_update", "last_updated", "timestamp"})


class StatusDocument(WholeJson):
    """One row: where the training says that it is."""

    name = "status file"

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def rows(self, document: Any) -> list[Row]:
        if not isinstance(document, dict):
            self.warnings.add("it holds no object")
            return []
        said = document.get("status")
        row: Row = {"event": "status", "status": said if isinstance(said, str) else None}
        step = next(
            (number for name in _DONE if (number := as_number(document.get(name))) is not None),
            None,
        )
        total = as_number(document.get("total_steps"))
        row |= {
            name: value
            for name, value in (("step", step), ("total_steps", total))
            if value is not None
        }
        if said == "running" and not _HEARTBEATS & document.keys():
            self.notes.append(
                "it says running, with no time at which that was written: nothing shows that it"
                " still runs"
            )
        self.notes += _hasty(document, "")
        return [row]


def _hasty(value: Any, name: str, depth: int = 0) -> Iterator[str]:
    """Parts that say success after less than a minute."""
    if depth > 8:
        return
    if isinstance(value, list):
        for index, item in enumerate(value[:1000]):
            yield from _hasty(item, f"{name} {index + 1}".strip(), depth + 1)
    if not isinstance(value, Mapping):
        return
    name = next(
        (item for key in ("phase", "name", "stage") if isinstance(item := value.get(key), str)),
        name,
    )
    for key, unit in _SECONDS.items():
        passed = as_number(value.get(key))
        if value.get("success") is True and passed is not None and passed * unit < _NO_TRAINING_S:
            yield f"{name[:40] or 'it'} says success after {passed * unit:.1f} s"
    for key, item in value.items():
        yield from _hasty(item, name if key == "results" else str(key), depth + 1)
