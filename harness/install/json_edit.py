"""Edits of JSON text that keep every other byte: a person's order, spacing and line ends.

Each edit takes the whole text and returns the new one. It is parsed again for the next edit, so
that no position is stale.
"""

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")
_LONG = re.compile(r"[0-9]{4300,}")
BOM = "\ufeff"
_TWO_SPACES = "  "


@dataclass(frozen=True, slots=True)
class Node:
    """A value from `start` to `end`. `parts`: (key or "", start of the key or item, value)."""

    start: int
    end: int
    parts: tuple[tuple[str, int, "Node"], ...] = ()

    def member(self, key: str) -> "Node | None":
        """The value of `key`; of several the last, as JSON readers do."""
        return next((value for name, _, value in reversed(self.parts) if name == key), None)


class NotStrictJsonError(ValueError):
    """Not strict JSON. `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.line, self.column = line, column


def load(text: str) -> Any:
    """The value of strict JSON, after an optional byte order mark. Raises NotStrictJsonError."""
    body = text.removeprefix(BOM)
    try:
        return json.loads(body, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise NotStrictJsonError(error.msg, error.lineno, error.colno) from error
    except _ConstantError as error:
        line, column = _position(body, body.find(str(error)))
        raise NotStrictJsonError(f"{error} is no JSON value", line, column) from error
    except RecursionError as error:
        raise NotStrictJsonError("nested too deeply", 1, 1) from error
    except ValueError as error:  # Python reads no integer of more than 4,300 digits
        long = _LONG.search(body)
        line, column = _position(body, 0 if long is None else long.start())
        raise NotStrictJsonError("a number of thousands of digits", line, column) from error


def _position(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def parse(text: str) -> Node:
    """The places of all values in `text`, which `load` accepts. Raises NotStrictJsonError if it is
    nested too deeply."""
    try:
        return _value(text, _skip(text, len(BOM) if text.startswith(BOM) else 0))
    except RecursionError as error:
        raise NotStrictJsonError("nested too deeply", 1, 1) from error


def add_member(text: str, owner: Node, key: str, value: Any) -> str:
    """`text` with `key: value` as the last member of the object `owner`."""
    return _add(text, owner, f"{json.dumps(key, ensure_ascii=False)}: ", value)


def add_item(text: str, owner: Node, value: Any) -> str:
    """`text` with `value` as the last item of the array `owner`."""
    return _add(text, owner, "", value)


def remove_part(text: str, owner: Node, index: int) -> str:
    """`text` without the member or item `index` of `owner`, and without its comma."""
    parts = owner.parts
    # The comma before the part goes with it; for the first part, the comma after it.
    if index > 0:
        start, end = parts[index - 1][2].end, parts[index][2].end
    elif len(parts) > 1:
        start, end = parts[0][1], parts[1][1]
    else:
        start, end = owner.start + 1, owner.end - 1
    return text[:start] + text[end:]


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


class _ConstantError(Exception):
    pass


def _add(text: str, owner: Node, head: str, value: Any) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    if owner.parts:
        last = owner.parts[-1]
        indent = _indent(text, last[1])
        # A part that shares its line with others is followed by the new one on that line.
        new = (
            f", {head}{_compact(value)}"
            if indent is None
            else f",{newline}{indent}{head}{_pretty(value, unit, indent, newline)}"
        )
        return _splice(text, last[2].end, last[2].end, new)
    outer = _line_indent(text, owner.start)
    if unit == "":
        return _splice(text, owner.start + 1, owner.end - 1, f"{head}{_compact(value)}")
    inner = outer + unit
    body = f"{newline}{inner}{head}{_pretty(value, unit, inner, newline)}{newline}{outer}"
    return _splice(text, owner.start + 1, owner.end - 1, body)


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _pretty(value: Any, unit: str, indent: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit or _TWO_SPACES).replace(
        "\n", newline + indent
    )


def _unit(text: str) -> str:
    """One level of the file's indentation; "" if it is on one line, two spaces if unknown."""
    root = parse(text)
    if not root.parts:
        return _TWO_SPACES
    indent = _indent(text, root.parts[0][1])
    return "" if indent is None else indent or _TWO_SPACES


def _indent(text: str, place: int) -> str | None:
    """The white space before `place` on its line; None if something else is before it."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return before if not before.strip(" \t") else None


def _line_indent(text: str, place: int) -> str:
    """The white space at the beginning of the line of `place`."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def _value(text: str, start: int) -> Node:
    first = text[start]
    if first == '"':
        return Node(start, scanstring(text, start + 1)[1])
    if first in "{[":
        return _container(text, start, is_object=first == "{")
    scalar = _SCALAR.match(text, start)
    return Node(start, start if scalar is None else scalar.end())


def _container(text: str, start: int, *, is_object: bool) -> Node:
    parts: list[tuple[str, int, Node]] = []
    place = _skip(text, start + 1)
    while text[place] not in "}]":
        key, begin = "", place
        if is_object:
            key, place = scanstring(text, place + 1)
            place = _skip(text, _skip(text, place) + 1)  # over the colon
        value = _value(text, place)
        parts.append((key, begin, value))
        place = _skip(text, value.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return Node(start, place + 1, tuple(parts))
