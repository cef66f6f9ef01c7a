"""Names as rows: of files and folders, of what links point to, of branches and tags, of members of
archives. Their pieces are columns, and what stands beside a name (size and time of a file) too."""

import re
from collections.abc import Iterator, Sequence

from harness.plans.row_sources import TOO_LARGE, Looking, Source

LEAST = 8
_MOST = 200_000
_PIECE = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|[^\W\d_]+")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")
_DIGITS = re.compile(r"([0-9]+)")

Named = tuple[str, str]
"""A name, and what stands beside it: cells that commas part, or nothing."""


def name_sources(what: str, names: Sequence[Named], looking: Looking) -> Iterator[Source]:
    """The names as a text, and those with as many pieces as a table, sorted as a person would."""
    if not names:
        return
    if len(names) > _MOST:
        looking.missed.add(TOO_LARGE, f"{what} after the first {_MOST:,}")
    ordered = sorted(names[:_MOST], key=_natural)
    yield _source(what, [name for name, _ in ordered])
    alike: dict[int, list[tuple[str, str]]] = {}
    for name, beside in ordered:
        pieces = _PIECE.findall(_SUFFIX.sub("", name))
        line = ",".join([*pieces, beside] if beside else pieces)
        alike.setdefault(len(pieces), []).append((name, line))
    for lines in alike.values():
        if len(lines) >= LEAST:
            example = lines[len(lines) // 2][0][:80]
            yield _source(f"{what}, such as {example}", [line for _, line in lines])


def _natural(named: Named) -> list[tuple[int, str]]:
    """2 before 10."""
    parts = _DIGITS.split(named[0])
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if place % 2 else (0, part)
        for place, part in enumerate(parts)
    ]


def _source(what: str, lines: list[str]) -> Source:
    return Source(name=what, data="\n".join(lines).encode("utf-8", "replace") + b"\n", made=True)
