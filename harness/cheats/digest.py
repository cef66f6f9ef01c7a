"""Which program a row of evidence is of: one digest over all that an attack or a control is made
of."""

import ast
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.cheats.attack import Attack, Control

_WORDS = 16


def digest(item: Attack | Control) -> str:
    """Hex digits over every field of `item`; of a function, over its text, what it closes over and
    the constants that it names, but not over what it calls."""
    plain = {field.name: _plain(getattr(item, field.name)) for field in fields(item)}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:_WORDS]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return _text(value) if callable(value) else value


def _text(function: Callable[..., Any]) -> list[str]:
    code = function.__code__
    closed = [repr(cell.cell_contents) for cell in function.__closure__ or ()]
    named = [function.__globals__.get(name) for name in code.co_names]
    source = [text for line, text in _functions(code.co_filename) if line == code.co_firstlineno]
    return [
        *source,
        *closed,
        *(repr(value) for value in named if isinstance(value, str | int | float)),
    ]


@lru_cache(maxsize=64)
def _functions(path: str) -> list[tuple[int, str]]:
    """First line and text, as it would be written anew, of each function of a file."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    return [(node.lineno, ast.unparse(node)) for node in found]
