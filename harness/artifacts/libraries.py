"""What lies in a Python environment below the project: those who are judged may write there, and
what they registered imports from it.

Nothing of it is run. A file is known by size, times and inode, and read again only when one of them
differs. Byte code beside its source is left out, for Python writes it by itself: predict is given
its own, see `evaluation.byte_code`. Any other is a file like others.
"""

import contextlib
import itertools
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from harness.artifacts.content import hash_file, read_bytes
from harness.artifacts.looked import Seen, seen
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.errors import HarnessError
from harness.files import atomic_write, canonical_json, sha256_bytes

_SITES = ("site-packages", "dist-packages")
_STARTS = frozenset({"sitecustomize", "usercustomize"})
_METADATA = (".dist-info", ".egg-info")
_PLUGINS = "entry_points.txt"
_SCRIPTS = frozenset({"console_scripts", "gui_scripts"})
_OF_A_ROOT = ("bin", "lib", "lib64", "pyvenv.cfg")
"""Of an environment that is the project's root itself."""
_SETTLED_NS = 2_000_000_000
"""The coarsest clock of a file system: what changed later is read again the next time."""
_LONGEST = 80
"""Of a name, which stands in messages."""
_GUARDED = re.compile(rb"^try:\s*\n(?:\s*#.*\n)*[ \t]+(?:from|import)[ \t]+([A-Za-z_]\w*)", re.M)
"""An import that a module does without, at its top level."""
_GROUP = re.compile(rb"^\[([^\]\n]+)\]", re.M)
_IMPORTED = re.compile(rb"^import[ \t]+([A-Za-z_]\w*)", re.M)
_ANYWHERE = re.compile(
    rb"^[ \t]*from[ \t]+([A-Za-z_]\w*)|^[ \t]*import[ \t]+([A-Za-z_][\w., \t]*)"
    rb"|(?:import_module|__import__)\([ \t]*[\"']([A-Za-z_]\w*)",
    re.M,
)
"""Also within a function, where it is imported late, and by a name that is written out."""
_FORM = 2
"""Of what is remembered."""


@dataclass(frozen=True, kw_only=True)
class Libraries(Late):
    digests: dict[str, str]
    """Name -> digest of all its files: a top-level package or module, else a part of the
    environment, such as "bin/python" or "standard library"."""
    wanted: frozenset[str]
    """Names that Python or a package takes by itself as soon as they are there."""
    imported: dict[str, tuple[str, ...]]
    """Name -> what its sources import anywhere, the top level of each."""
    signature: str
    """Of all sizes, times and inodes: equal while nothing was changed, not even and back."""

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """`names`, and all that the libraries among them import at some time, and those again."""
        found, due = set(names), list(names)
        while due:
            more = set(self.imported.get(due.pop(), ())) - found
            found |= more
            due += more
        return frozenset(found)


class _Found(NamedTuple):
    relative: str
    """To the environment."""
    path: str
    looks: tuple[Seen, ...]
    """At the file, and of a link at what it leads to."""
    link: str
    """The text of a link."""
    folder: bool


def environments(root: Path, program: Path) -> list[Path]:
    """The Python environments below `root` by which `program` starts, its own first: that of each
    of its links, and those from which they were made."""
    due, found = list(_hops(program)), []
    while due:
        hop = due.pop(0)
        prefix = hop.parent.parent if hop.parent.name == "bin" else hop
        places = {prefix, prefix.resolve()}
        inside = any(root == place or root in place.parents for place in places)
        if inside and prefix not in found:
            found.append(prefix)
            due += [Path(home) / "python" for home in _homes(prefix)]
    return found


def read_libraries(root: Path, prefixes: Sequence[Path], seen_at: Path) -> Libraries:
    """Of these environments. `seen_at`: the file that remembers what was read; losing it costs time
    only."""
    kept, began = _kept(seen_at), time.time_ns()
    key = [_FORM, str(root), *map(str, prefixes)]
    if kept.get("key") != key:
        kept = {"key": key, "parts": {}}
    elif _unchanged(kept):
        return _libraries(kept["parts"])
    found = [(number, one) for number, prefix in enumerate(prefixes) for one in _all(root, prefix)]
    parts: dict[str, list[_Found]] = defaultdict(list)
    for number, one in found:
        if not one.folder and (name := _name(one.relative)) is not None:
            parts["base: " * (number > 0) + one_line(name, _LONGEST)].append(one)
    now: dict[str, Any] = {}
    for name, files in parts.items():
        signature = sha256_bytes(
            repr(sorted((one.path, one.looks, one.link) for one in files)).encode()
        )
        known = kept["parts"].get(name)
        if known is None or known[0] != signature:
            known = [signature, *_content(name, files)]
        now[name] = known
    settled = {name: now[name] for name, files in parts.items() if _settled(files, began)}
    whole = bool(found) and len(settled) == len(now) and _settled([one for _, one in found], began)
    remembered = {
        "key": key,
        "parts": settled,
        **(_looks(one for _, one in found) if whole else {}),
    }
    atomic_write(seen_at, orjson.dumps(remembered), durable=False, mode=0o600)
    return _libraries(now)


def _libraries(parts: dict[str, Any]) -> Libraries:
    return Libraries(
        # Metadata is read by an installer alone, but for what names a plugin.
        digests={
            name: known[1]
            for name, known in sorted(parts.items())
            if known[2] or not name.endswith(_METADATA)
        },
        wanted=frozenset(name for known in parts.values() for name in known[2]),
        imported={name: tuple(known[3]) for name, known in parts.items()},
        signature=sha256_bytes(canonical_json({name: known[0] for name, known in parts.items()})),
    )


def _looks(found: Iterable[_Found]) -> dict[str, Any]:
    """What tells that nothing changed, folders included: of links also what they lead to."""
    every = list(found)
    return {
        "paths": _joined(one.path for one in every),
        "links": _joined(one.path for one in every if len(one.looks) > 1),
        "seen": _flat([one.looks[0] for one in every]),
        "led": _flat([one.looks[1] for one in every if len(one.looks) > 1]),
    }


def _unchanged(kept: dict[str, Any]) -> bool:
    """One look at each, in loops of C: this is what a check costs."""
    try:
        return "paths" in kept and (
            kept["seen"] == _flat(map(seen, map(os.lstat, _split(kept["paths"]))))
            and kept["led"] == _flat(map(seen, map(os.stat, _split(kept["links"]))))
        )
    except OSError:
        return False


def _flat(looks: Iterable[Seen]) -> list[int]:
    return list(itertools.chain.from_iterable(looks))


def _joined(paths: Iterable[str]) -> str:
    return b"\0".join(map(os.fsencode, paths)).decode("latin-1")


def _split(paths: str) -> list[bytes]:
    return paths.encode("latin-1").split(b"\0") if paths else []


def _settled(files: Iterable[_Found], began: int) -> bool:
    return all(max(look[1], look[2]) + _SETTLED_NS < began for one in files for look in one.looks)


def _hops(path: Path) -> Iterator[Path]:
    for _ in range(40):  # the kernel's own limit on links
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _homes(prefix: Path) -> list[str]:
    """The folder of the Python from which the environment was made."""
    with contextlib.suppress(OSError):
        text = (prefix / "pyvenv.cfg").read_text("utf-8", errors="replace")
        fields = [line.partition("=") for line in text.splitlines()]
        return [value.strip() for key, _, value in fields if key.strip() == "home"]
    return []


def _all(root: Path, prefix: Path) -> Iterator[_Found]:
    """Everything in the environment, or the one file that it is."""
    parts: Iterable[str] = _OF_A_ROOT
    if not prefix.is_dir():
        prefix, parts = prefix.parent, [prefix.name]
    elif prefix.resolve() != root.resolve():
        parts = sorted(os.listdir(prefix))
        yield _look("", str(prefix), os.lstat(prefix))._replace(folder=True)
    due = [(name, str(prefix / name)) for name in parts]
    while due:
        relative, path = due.pop()
        with contextlib.suppress(OSError):
            if os.path.islink(path) or not os.path.isdir(path):
                yield _look(relative, path, os.lstat(path))
                continue
            yield _Found(relative, path, (seen(os.lstat(path)),), "", True)
            with os.scandir(path) as entries:
                for entry in entries:
                    name = f"{relative}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        due.append((name, entry.path))
                    elif not _beside_source(path, entry.name):
                        yield _look(name, entry.path, entry.stat(follow_symlinks=False))


def _beside_source(folder: str, name: str) -> bool:
    """Whether it is byte code as Python writes it: of a source in the folder above."""
    if not name.endswith(".pyc") or os.path.basename(folder) != "__pycache__":
        return False
    source = f"{name.partition('.')[0]}.py"
    return os.path.isfile(os.path.join(os.path.dirname(folder), source))


def _look(relative: str, path: str, status: os.stat_result) -> _Found:
    relative = _text(relative)
    looks: tuple[Seen, ...] = (seen(status),)
    if not stat.S_ISLNK(status.st_mode):
        return _Found(relative, path, looks, "", False)
    with contextlib.suppress(OSError):  # it leads nowhere
        looks = (*looks, seen(os.stat(path)))
    return _Found(relative, path, looks, _text(os.readlink(path)), False)


def _text(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def _name(relative: str) -> str | None:
    """What the file is a part of; None for what nothing runs."""
    match relative.split("/"):
        case ["lib" | "lib64", python, site, top, *_] if (
            python.startswith("python") and site in _SITES
        ):
            if top.endswith(_METADATA):
                return top if relative.endswith(f"/{_PLUGINS}") else None
            return top if top.endswith(".pth") else top.partition(".")[0]
        case ["lib" | "lib64", python, *_] if python.startswith("python"):
            return "standard library"
        case ["bin" | "lib" | "lib64" as folder, name, *_]:
            return f"{folder}/{name}"
        case [top, *_]:
            return top
    return None


def _content(name: str, files: Iterable[_Found]) -> tuple[str, list[str], list[str]]:
    """Digest of the files, what they want, and what they import."""
    digests, wanted, imported = [], set(), set()
    for one in sorted(files):
        digest = ""
        with contextlib.suppress(HarnessError, OSError):  # it is a folder, or went away since
            if one.relative.endswith((".py", ".pth", _PLUGINS)):
                data = read_bytes(Path(one.path))
                digest = sha256_bytes(data)
                wanted |= _wants(name, one.relative, data)
                imported |= _imports(one.relative, data)
            else:
                digest = hash_file(Path(one.path))
        digests.append([one.relative, one.link, digest])
    return sha256_bytes(canonical_json(digests)), sorted(wanted), sorted(imported)


def _imports(relative: str, data: bytes) -> set[str]:
    if not relative.endswith(".py") or "/tests/" in relative:
        return set()
    texts = (b"".join(groups).decode("utf-8", "replace") for groups in _ANYWHERE.findall(data))
    return {
        name.split(".")[0].split()[0] for text in texts for name in text.split(",") if name.strip()
    }


def _wants(name: str, relative: str, data: bytes) -> set[str]:
    if relative.endswith(".pth"):
        return {name, *_words(_IMPORTED, data)}
    if relative.endswith(_PLUGINS):
        return {name} if set(_words(_GROUP, data)) - _SCRIPTS else set()
    if name in _STARTS:
        return {name}
    return set() if "/tests/" in relative else set(_words(_GUARDED, data))


def _words(pattern: re.Pattern[bytes], data: bytes) -> list[str]:
    return [word.decode("utf-8", "replace").strip() for word in pattern.findall(data)]


def _kept(seen_at: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        value = orjson.loads(seen_at.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}
