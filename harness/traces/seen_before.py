"""What earlier files of the same reading hold: a fork or a copy counts once."""

from typing import Any

from harness.traces.seen import SeenKeys

_UUID = 36
_NIL = "00000000-0000-0000-0000-000000000000"
_OWN_ID = 20
"""Characters of a message's id that the service itself made up; a gateway's may come again."""


class SeenBefore:
    def __init__(self, files: int) -> None:
        self._earlier, self._here = SeenKeys(), SeenKeys()
        self._files = files
        """Those that are still to be read; the last one's keys nobody will ask for."""
        self._any = False
        self.matters = files > 1
        """Whether any key will be asked for or was seen; then its rows' keys are wanted."""

    def copy(self, *keys: str) -> bool:
        """Whether an earlier file has one of the `keys`, empty ones apart."""
        found = False
        for key in keys:
            if key:
                found = found or (self._any and key in self._earlier)
                if self._files > 1:
                    self._here.add(key)
        return found

    def next_file(self) -> None:
        self._files -= 1
        self._any = self.matters
        self._earlier.update(self._here)
        self._here = SeenKeys()


def usable(uuid: Any) -> bool:
    """Whether a uuid tells rows apart."""
    return type(uuid) is str and len(uuid) == _UUID and uuid != _NIL


def origin(row: dict[str, Any]) -> str:
    """The uuid of a row where it was first written; empty when that is unusable."""
    source = row.get("forkedFrom")
    if isinstance(source, dict) and usable(uuid := source.get("messageUuid")):
        return str(uuid)
    uuid = row.get("uuid")
    return str(uuid) if usable(uuid) else ""


def forked_from(row: dict[str, Any]) -> str | None:
    """The session that first wrote a row of a fork."""
    source = row.get("forkedFrom")
    session = source.get("sessionId") if isinstance(source, dict) else None
    return session if isinstance(session, str) and session else None


def own_id(identifier: Any) -> str:
    """A message's id, when no other message can have it; else empty."""
    return identifier if isinstance(identifier, str) and len(identifier) >= _OWN_ID else ""
