"""A first plan as a person reads it before it counts: all that it says, a few lines."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 74
_PLAIN = re.compile(r"[\w./+:-]+", re.ASCII)
_NOTHING: tuple[Any, ...] = (None, [], {})


def listing(content: Mapping[str, Any]) -> Iterator[str]:
    """Lines "oracle: metric=accuracy, seeds=3", a section each, and more where one is long. What
    says nothing is left out; text with any other sign than those of names and paths is quoted, so
    that no value looks like two."""
    single = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
    for key, value in _leaves(single):
        yield f"{key}: {_shown(value)}"
    for section, values in content.items():
        if isinstance(values, Mapping):
            pairs = [f"{key}={_shown(value)}" for key, value in _leaves(values)]
            yield from _packed(section, pairs)


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            yield from _leaves(value, name)
        elif value not in _NOTHING:
            yield name, value


def _packed(section: str, pairs: list[str]) -> Iterator[str]:
    line = ""
    for pair in pairs:
        longer = f"{line}, {pair}" if line else f"{section}: {pair}"
        if line and len(longer) > _WIDTH:
            yield f"{line},"
            longer = " " * (len(section) + 2) + pair
        line = longer
    if line:
        yield line


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(one) for one in value)}]"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, default=str)
