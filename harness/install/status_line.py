"""Adds our status line to a person's settings.json where there
is none, and removes it."""

from collections.abc import Mapping
from typing import Any

from harness.install.json_edit import add_member, parse, remove_part
from harness.install.merged_settings import names_vendored, read_object, without_hooks

STATUS_LINE = "statusLine"


def with_status_line(text: str, entry: Mapping[str, Any], where: str) -> str:
    """The settings `text` with our `entry`; as they are when a
    person has their own there. Raises UsageError."""
    there = read_object(text, where).get(STATUS_LINE)
    if there == entry or (there is not None and not names_vendored(there)):
        return text
    text = without_status_line(text, where)
    return add_member(text, parse(text), STATUS_LINE, dict(entry))


def without_status_line(text: str, where: str) -> str:
    """The settings `text` without ours. Raises UsageError."""
    if not names_vendored(read_object(text, where).get(STATUS_LINE)):
        return text
    root = parse(text)
    places = [place for place, part in enumerate(root.parts) if part[0] == STATUS_LINE]
    return remove_part(text, root, places[-1])


def without_entries(text: str, where: str) -> str:
    """The settings `text` without anything of ours. Raises
    UsageError."""
    return without_status_line(without_hooks(text, where), where)


def is_anothers(text: str | None, where: str) -> bool:
    """Whether the settings have a status line that is not ours.
    Raises UsageError."""
    there = None if text is None else read_object(text, where).get(STATUS_LINE)
    return there is not None and not names_vendored(there)
