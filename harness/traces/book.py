"""What the files of one reading share: sessions span files, and a fork or a copy counts once."""

from harness.traces.seen import SeenKeys
from harness.traces.seen_before import SeenBefore
from harness.traces.session_notes import SessionNotes


class Book:
    def __init__(self, *, files: int) -> None:
        self.before = SeenBefore(files)
        self.chats = SeenKeys()
        """Ids of states of conversations without ids of their own."""
        self.sessions: dict[str, SessionNotes] = {}
        self.calls: dict[str, str] = {}
        """Subagent -> its call, as the file beside its transcript names it."""
        self.types: dict[str, str] = {}

    def notes(self, session: str) -> SessionNotes:
        found = self.sessions.get(session)
        if found is None:
            found = self.sessions[session] = SessionNotes(session)
        return found
