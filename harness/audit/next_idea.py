"""What next.md names first."""

import re
from pathlib import Path

from harness.artifacts.text import read_text
from harness.audit.files import linked
from harness.errors import HarnessError

_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<idea>\S.*)")
_LONGEST = 300


def next_idea(root: Path, path: Path) -> str | None:
    """The first list item of the file, else its first line that is no heading; None without one.

    It is shown and decides nothing: a file that is absent, a link, or cannot be read names no idea.
    """
    if linked(root, path) is not None:
        return None
    try:
        lines = [line.strip() for line in read_text(path).splitlines()]
    except HarnessError:
        return None
    items = (match["idea"] for line in lines if (match := _ITEM.match(line)))
    plain = (line for line in lines if line and not line.startswith(("#", "---", "```", "<!--")))
    idea = next(items, None) or next(plain, None)
    return None if idea is None else idea[:_LONGEST]
