"""Paths that a command line does not spell out: found by name below a folder, or relative to nobody
knows where."""

from __future__ import annotations

import os

from .denials import unreadable
from .paths import SCANNED, fold, inside, may_meet, places, wild_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .judge import Denial, Judge

_DERIVED = "__pycache__"


def write_named(judge: Judge, folder: str, cwd: str, only: tuple[str, ...]) -> Denial | None:
    """Whether the files below `folder` that are called like one of the wildcards `only` may be
    changed."""
    denial = judge.write(folder, cwd)
    if denial:
        return denial
    for place in places(folder, cwd):
        for known in [judge.state, *judge.hidden, *judge.protected, *judge.frozen]:
            if inside(known, place) and _found(known, only):
                return judge.write(known, cwd)
    return None


def read_named(judge: Judge, denial: Denial, only: tuple[str, ...]) -> Denial | None:
    """`denial`, which forbids reading all below a folder, where a file that it is about is called
    like `only`."""
    return next((denial for known in [judge.state, *judge.hidden] if _found(known, only)), None)


def _found(known: str, only: tuple[str, ...]) -> bool:
    """Whether `known` or something below it has such a name; what Python compiles counts as
    nothing. True where there is too much to look at."""
    names = [fold(name) for name in only]
    if any(wild_match(fold(os.path.basename(known)), name) for name in names):
        return True
    seen = 0
    for _, inner, files in os.walk(known):
        inner[:] = [name for name in inner if name != _DERIVED]
        seen += len(files)
        if seen > SCANNED or any(
            wild_match(fold(item), name) for item in (*inner, *files) for name in names
        ):
            return True
    return False


def write_lost(judge: Judge, path: str, why: str, *, below: bool) -> Denial | None:
    """Whether `path`, relative to a directory that nobody knows because of `why`, may be something
    protected: the end of a protected path, or a thing that stands in a protected folder."""
    if path.startswith(("/", "~")):
        return None
    given = "/" + "/".join(
        part for part in os.path.normpath(path).split("/") if part not in (".", "..")
    )
    if given == "/":
        return unreadable(why, path) if below else None
    first = fold(given.split("/")[1])
    for known in [*judge.protected, *judge.frozen]:
        parts = judge.shown(known).strip("/").split("/")
        ends = ("/" + "/".join(parts[start:]) for start in range(len(parts)))
        if any(may_meet(given, end, below=below) for end in ends):
            return unreadable(why, judge.shown(known))
        if any(wild_match(fold(name), first) for name in _listed(known)):
            return unreadable(why, judge.shown(known))
    return None


def _listed(folder: str) -> list[str]:
    """Names in a folder and in those within it."""
    try:
        names = os.listdir(folder)
        inner = [os.path.join(folder, name) for name in names]
        return [
            *names,
            *(name for place in inner if os.path.isdir(place) for name in os.listdir(place)),
        ]
    except OSError:
        return []
