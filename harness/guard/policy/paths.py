"""Where a path leads: relative to a working directory, through `..`, links, hard links, case and
wildcards."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SCANNED = 20_000
"""How many protected files are compared with a file that has several names, before the answer is
"cannot tell"."""


def places(path: str, cwd: str) -> tuple[str, ...]:
    """The absolute places that `path` may mean: as written, and with the links of its deepest
    existing ancestor resolved. `~` is expanded. Raises ValueError for text that no file system call
    accepts (NUL, lone surrogates)."""
    os.fsencode(path)
    if "\0" in path:
        raise ValueError("a path holds a NUL character")
    if path[:6].lower() == "file:/":
        path = _of_uri(path)
    if path[:2] in ("~+", "~-") and path[2:3] in (
        "",
        "/",
    ):  # the shell's words for this and the last directory
        path = "." + path[2:]
    whole = os.path.join(cwd, os.path.expanduser(path))
    written = os.path.normpath(whole)
    real = os.path.realpath(whole)
    return (written,) if written == real else (written, real)


def _of_uri(uri: str) -> str:
    """The path of a file URI: `file:/x`, `FILE:///x`, `file://localhost/x`, `file:///%78`."""
    rest = uri[5:]
    path = "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest
    if "%" not in path:
        return path
    from .tool_arguments import decoded

    return decoded(path)


def fold(path: str) -> str:
    """The form in which two paths are compared where a miss would be the error: case and Unicode
    form aside."""
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", path).casefold()


def inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it, on a file system of any case rule."""
    path, folder = fold(path), fold(folder).rstrip("/")
    return path == folder or path.startswith(folder + "/")


def matches(path: str, glob: str, *, whole: bool) -> bool:
    """Whether `path` matches `glob`, where `*` stands for one component; not `whole`: or lies below
    a match."""
    parts, patterns = path.split("/"), glob.split("/")
    if len(parts) < len(patterns) or (whole and len(parts) != len(patterns)):
        return False
    return all(wild_match(parts[index], pattern) for index, pattern in enumerate(patterns))


def wild_match(name: str, pattern: str) -> bool:
    """fnmatch.fnmatchcase, without its import for the patterns that are common: none, one `*`."""
    if not any(character in pattern for character in "*?["):
        return name == pattern
    head, _, tail = pattern.partition("*")
    if not any(character in head + tail for character in "*?["):
        return len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)


def may_meet(pattern: str, path: str, *, below: bool) -> bool:
    """Whether a wildcard `pattern` (absolute) can name `path` or a thing below it; with `below`
    also a folder above."""
    patterns, parts = fold(os.path.normpath(pattern)).split("/"), fold(path).split("/")
    if len(patterns) < len(parts) and not below:
        return False
    shared = min(len(patterns), len(parts))
    return all(_component(parts[index], patterns[index]) for index in range(shared))


def wholes(pattern: str, cwd: str) -> tuple[str, str]:
    """The absolute patterns that a `pattern` may mean: as written, and with the links before its
    wildcards resolved."""
    written = os.path.join(cwd, os.path.expanduser(pattern))
    literal = fixed(written)
    return written, os.path.realpath(literal) + "/" + written[len(literal) :].lstrip("/")


def fixed(pattern: str) -> str:
    """The folder of an absolute pattern before its first wildcard."""
    wild = min(place % (len(pattern) + 1) for place in (pattern.find(mark) for mark in "*?["))
    return pattern[:wild].rpartition("/")[0] or "/"


def _component(name: str, pattern: str) -> bool:
    return wild_match(name, pattern) and (
        not name.startswith(".") or pattern.startswith((".", "["))
    )


def same_file(path: str, protected: list[str]) -> str | None:
    """The protected file of which `path` is another name (hard link), or None. Folders in
    `protected` are searched.

    Raises OverflowError when there are too many protected files to tell.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return None
    wanted = (status.st_dev, status.st_ino)
    left = SCANNED
    for name in protected:
        for candidate in _files(name):
            if candidate == path:
                continue
            left -= 1
            if left < 0:
                raise OverflowError(path)
            try:
                found = os.stat(candidate)
            except OSError:
                continue
            if (found.st_dev, found.st_ino) == wanted:
                return candidate
    return None


def _files(name: str) -> Iterator[str]:
    if not os.path.isdir(name):
        yield name
        return
    for folder, _, names in os.walk(name):
        for item in names:
            yield os.path.join(folder, item)
