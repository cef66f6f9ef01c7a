"""What next.md names: shown in lists, and ranked by the loop into the next hypothesis."""

from pathlib import Path

from harness.artifacts.content import linked, read_text
from harness.artifacts.next_ideas import Idea, ideas
from harness.errors import HarnessError


def next_ideas(root: Path, path: Path) -> list[Idea]:
    """The ideas of the file, as it orders them; one that is absent, a link, or cannot be read names
    none."""
    if linked(root, path) is not None:
        return []
    try:
        return ideas(read_text(path))
    except HarnessError:
        return []


def next_idea(root: Path, path: Path) -> str | None:
    """The first of them. It is shown and decides nothing."""
    found = next_ideas(root, path)
    return found[0].text if found else None
