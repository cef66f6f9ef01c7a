"""What rows of a transcript say of a session besides its messages."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class SessionNotes:
    """What rows say of a session besides its messages."""

    id: str
    title: str = ""
    cwd: str = ""
    branch: str = ""
    version: str = ""
    first: str = ""
    last: str = ""
    prompts: int = 0
    """Texts that a person typed."""
    compactions: int = 0
    api_errors: int = 0
    interrupts: int = 0
    images: int = 0
    hooks: int = 0
    """Messages of hooks."""
    started: dict[str, str] = field(default_factory=dict)
    """Subagent -> the call whose result names it."""
    asked: dict[int, str] = field(default_factory=dict)
    """Hash of a subagent's prompt -> the call that gave it; empty when there are several."""
    types: dict[str, str] = field(default_factory=dict)
    """Call -> the type of agent that it asked for."""

    def prompted(self, time: str) -> None:
        self.prompts += 1
        self.first = self.first or time
        self.last = max(self.last, time)
