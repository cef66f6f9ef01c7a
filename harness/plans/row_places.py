"""Where rows may stand that agents can read: files of the project and of the folders that it makes
readable, their names, what links point to, and git."""

import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifacts.git import git_folder, in_repository
from harness.plans.row_git import repository_sources
from harness.plans.row_names import Named, name_sources
from harness.plans.row_sources import (
    DAMAGED,
    HEAD_ONLY,
    LEFT_OUT,
    TIME_OVER,
    TOO_LARGE,
    Looking,
    Source,
    is_text,
)
from harness.plans.row_unpack import unpacked

_INSTALLED = "node_modules"
_MOST_REPOSITORIES = 50
_GIT_BINARY = (b"PACK\0", b"DIRC\0", b"\xfftOc\0", b"RIDX\0", b"MIDX\1", b"CGPH\1", b"BITM\0")
_GIT_OBJECT = (b"blob ", b"tree ", b"commit ", b"tag ")


@dataclass(kw_only=True)
class _Below:
    """What stands below a folder."""

    files: list[tuple[Path, int]] = field(default_factory=list)
    git: set[Path] = field(default_factory=set)
    """Those of `files` that lie in a repository's own folder."""
    names: list[Named] = field(default_factory=list)
    targets: list[Named] = field(default_factory=list)
    """What links point to."""
    repositories: list[Path] = field(default_factory=list)


def sources(
    root: Path, looking: Looking, skip: frozenset[Path], readable: Sequence[Path] = ()
) -> Iterator[Source]:
    """The project, then its repository and those that lie in it, then what else is `readable`; of
    files the small ones before the large ones. `skip` are paths (of the tables that are searched
    for, and folders) that are not looked at. Raises GitFailedError."""
    own = git_folder(root) if in_repository(root) else None
    outside = [path for path in readable if not path.is_relative_to(root)]
    places = [root, *outside]
    if own is not None and not own.is_relative_to(root):
        places.insert(1, own)
    for place in places:
        below = _walk(place, root, places, looking, skip)
        where = "" if place == root else f" in {place}"
        yield from name_sources(f"names of files{where}", below.names, looking)
        yield from name_sources(f"what links point to{where}", below.targets, looking)
        yield from _read_all(below, root, looking)
        if place == root and own is not None:
            yield from repository_sources(own, "", looking)
        others = [one for one in below.repositories if one != own]
        for folder in others[:_MOST_REPOSITORIES]:
            yield from repository_sources(folder, _name(folder, root), looking)
        for folder in others[_MOST_REPOSITORIES:]:
            looking.missed.add(TOO_LARGE, f"objects of {_name(folder, root)}")


def _name(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _walk(
    top: Path, root: Path, places: Sequence[Path], looking: Looking, skip: frozenset[Path]
) -> _Below:
    below = _Below()
    if not top.is_dir():
        if top.is_file():
            below.files.append((top, top.stat().st_size))
        return below
    for folder, folders, names in os.walk(top):
        here = Path(folder)
        if looking.over():
            looking.missed.add(TIME_OVER, f"{_name(here, root)} and what follows")
            break
        if _is_repository(here):
            below.repositories.append(here.resolve())
        in_git = any(here.resolve().is_relative_to(one) for one in below.repositories)
        for name in list(folders):
            place = here / name
            if place in skip:
                folders.remove(name)
                continue
            below.names.append((_name(place, top), "0,0"))
            if place.is_symlink():
                folders.remove(name)
                below.targets.append((os.readlink(place), ""))
                if not any(place.resolve().is_relative_to(one) for one in places):
                    looking.missed.add(LEFT_OUT, _name(place, root))
            elif name == _INSTALLED or (place / "pyvenv.cfg").is_file():
                folders.remove(name)
                looking.missed.add(LEFT_OUT, _name(place, root))
        for name in names:
            place = here / name
            if place not in skip:
                _file(below, place, top, in_git=in_git)
    return below


def _file(below: _Below, place: Path, top: Path, *, in_git: bool) -> None:
    try:
        if place.is_symlink():
            below.targets.append((os.readlink(place), ""))
        status = place.stat()
    except OSError:
        status = None  # a dangling link holds no rows but its own
    if in_git and _hashed(place.name):
        pass  # one of git's own: its name says what it holds
    elif status is None:
        below.names.append((_name(place, top), "0,0"))
    else:
        times = f"{status.st_size},{int(status.st_mtime)}"
        below.names.append((_name(place, top), times))
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_size:
        below.files.append((place, status.st_size))
        if in_git:
            below.git.add(place)


def _is_repository(folder: Path) -> bool:
    """By what lies in it, whatever its name is."""
    return (
        (folder / "HEAD").is_file()
        and (folder / "objects").is_dir()
        and (folder / "refs").is_dir()
    )


def _hashed(name: str) -> bool:
    word = name.removeprefix("pack-").partition(".")[0]
    return len(word) >= 38 and not word.strip("0123456789abcdef")


def _read_all(below: _Below, root: Path, looking: Looking) -> Iterator[Source]:
    for path, size in sorted(below.files, key=lambda found: found[1]):
        name = _name(path, root)
        if looking.over():
            looking.missed.add(TIME_OVER, name)
            continue
        data = _read(path, size, name, looking, git=path in below.git)
        if data is None or not looking.new(data):
            continue
        looking.files += 1
        compiled = name.endswith(".pyc") and data[2:4] == b"\r\n"
        # Of compiled Python the texts are looked at; that the rest is not is no news.
        whole = Source(name=name, data=data, path=name, made=compiled)
        yield from unpacked(whole, looking)


def _read(path: Path, size: int, name: str, looking: Looking, *, git: bool) -> bytes | None:
    most = looking.limits.file_bytes
    try:
        with path.open("rb") as stream:
            if git:
                if _of_git(stream.read(64)):
                    return None
                stream.seek(0)
            data = stream.read(most if size > most else -1)
    except OSError:
        looking.missed.add(DAMAGED, name)
        return None
    if size > most:
        if not is_text(data):
            looking.missed.add(TOO_LARGE, name)
            return None
        looking.missed.add(HEAD_ONLY, name)
    return data


def _of_git(head: bytes) -> bool:
    """Whether a file of a repository's folder holds objects, or is about them: git reads those."""
    if head.startswith(_GIT_BINARY):
        return True
    try:
        return zlib.decompressobj().decompress(head, 32).startswith(_GIT_OBJECT)
    except zlib.error:
        return False
