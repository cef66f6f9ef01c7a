"""Does a session still find out anything? A call with an answer that it had before is no progress;
a new answer is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.files import canonical_json, sha256_bytes

NUDGE_AT, END_AT = 5, 10
"""Calls in a row that brought nothing new."""


class Due(StrEnum):
    NOTHING = "nothing"
    NUDGE = "nudge"
    END = "end"


@dataclass
class Circles:
    """Counts the calls in a row whose answer the session had already."""

    repeated: int = 0
    tool: str = ""
    """The newest that was repeated."""

    def __post_init__(self) -> None:
        self._seen: set[str] = set()
        self._position: int | None = None
        """The newest fact of the ledger when it was looked at last."""

    def take(self, payload: Mapping[str, Any]) -> None:
        """A tool's answer, as the hook has it."""
        answer = payload.get("tool_response", payload.get("error"))
        parts = [payload.get("tool_name"), payload.get("tool_input"), _plain(answer)]
        digest = sha256_bytes(canonical_json(_plain(parts)))
        if digest not in self._seen:
            self._seen.add(digest)
            self.repeated = 0
            return
        self.repeated += 1
        self.tool = str(payload.get("tool_name"))

    def due(self, position: int, *, waits: bool) -> Due:
        """What is due after it. `position`: the newest fact of the ledger; `waits`: a run of the
        session's is going, so that asking again is no circle.

        Two readings end a session: its answers, and no fact meanwhile.
        """
        if waits or position != self._position:
            # A run that goes on, and a fact, are progress whatever the answers were.
            self._position, self.repeated = position, 0
            return Due.NOTHING
        if self.repeated >= END_AT:
            return Due.END
        return Due.NUDGE if self.repeated == NUDGE_AT else Due.NOTHING

    def told(self, position: int) -> None:
        """It was nudged, which is a fact by now, and no progress."""
        self._position = position


def _plain(value: Any) -> Any:
    """As JSON has it: a tool's answer may be an object of the SDK."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
