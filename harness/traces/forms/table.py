"""Which form a file of trajectories has: one row a form."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.jsonl import loads, parse_line
from harness.errors import UsageError
from harness.traces.book import Book
from harness.traces.documents import LARGEST, read_document
from harness.traces.file_lines import file_lines
from harness.traces.forms import (
    atif,
    claude_code,
    messages,
    mini_swe_agent,
    swe_agent,
)
from harness.traces.states import State
from harness.traces.tally import Tally
from harness.traces.transcripts import is_row

_HEAD = 50
"""Lines of which one must tell the form."""


@dataclass(frozen=True, kw_only=True)
class Form:
    name: str
    fits: Callable[[list[dict[str, Any]]], bool]
    """Whether a file that begins with these objects is of this form."""
    read: Callable[[Path, Tally, Book], Iterator[State]]
    """Raises NotFoundError or UsageError when the file cannot be read."""


def _form(module: Any) -> Form:
    return Form(name=module.NAME, fits=module.fits, read=module.read)


FORMS: tuple[Form, ...] = (
    _form(claude_code),
    _form(atif),
    _form(mini_swe_agent),
    _form(swe_agent),
    _form(messages),
)


def form_of(path: Path) -> tuple[Form | None, list[dict[str, Any]]]:
    """The form of a file, and the objects that it begins with.

    Raises NotFoundError or UsageError when the file cannot be read.
    """
    head = [row for line in islice(file_lines(path), _HEAD) for row in _objects(line)]
    if not head and path.stat().st_size <= LARGEST:
        try:
            head = [read_document(path, Tally(""))]
        except UsageError:
            return None, []
    found = next((form for form in FORMS if head and form.fits(head)), None)
    return found, head


def _objects(line: bytes) -> list[dict[str, Any]]:
    try:
        value = loads(line)
    except orjson.JSONDecodeError:
        return [row for row in parse_line(line, is_row).rows if row]
    found = value if isinstance(value, list) else [value]
    return [row for row in found if isinstance(row, dict)]
