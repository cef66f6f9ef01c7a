"""What judges: the files of this package and of the distributions that judging imports, as one
digest; also files that no distribution lists, and those that Python runs at its start.

This finds what changed between an approval and now: an upgrade, a repair by hand, a file planted
in the site folder. It runs in the Python that it describes, so it is no proof against somebody who
may rewrite that Python; that nobody judged may is seen to elsewhere (harness/guard/own_python.py).
Byte code beside the sources is left out: Python writes it as it goes.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import site
import stat
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

import harness
from harness.artifacts.content import hash_file
from harness.errors import UsageError
from harness.files import atomic_write, canonical_json, sha256_bytes

_OURS = "experiment-harness"
_NO_JUDGES = {"claude-agent-sdk"}
"""Requirements that lead sessions and judge nothing; this one holds a program of 200 MB."""
_CACHE = "__pycache__"
_STARTS = ("sitecustomize", "usercustomize")
_REQUIRES = re.compile(r"^Requires-Dist: *([A-Za-z0-9._-]+)(.*)$", re.M)

_TOP = re.compile(r'^"?([^/,"\n]+)', re.M)
"""The first part of each path of a RECORD."""


@dataclass(frozen=True, kw_only=True)
class JudgeFiles:
    sha256: str
    count: int
    interpreter: str
    prefix: str
    python: str


def judge_files(seen: Path) -> JudgeFiles:
    """Of this process's Python. `seen` keeps one digest of all sizes, times and inodes, so that
    files are read again only when one of them has others."""
    found = sorted(_found())
    signature = _signature(found)
    known = _kept(seen)
    if known.get("signature") != signature:
        files = _contents(signature, found)
        known = {
            "signature": signature,
            "sha256": sha256_bytes(canonical_json(files)),
            "count": len(files),
        }
        atomic_write(seen, canonical_json(known), durable=False, mode=0o600)
    return JudgeFiles(
        sha256=str(known["sha256"]),
        count=int(known["count"]),
        interpreter=os.path.realpath(sys.executable),
        prefix=sys.prefix,
        python=platform.python_version(),
    )


def keep_contents(path: Path) -> None:
    """Write name -> SHA-256 of all of them to `path`: what `differences` compares with."""
    found = sorted(_found())
    content = canonical_json(_contents(_signature(found), found))
    atomic_write(path, content, durable=False, mode=0o600)


def differences(path: Path) -> list[str]:
    """Names of what is not as `path` has it; empty when `path` cannot be read."""
    before = _kept(path)
    found = sorted(_found()) if before else []
    now = _contents(_signature(found), found) if before else {}
    return sorted(name for name in {*now, *before} if now.get(name) != before.get(name))


def _kept(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_text("utf-8"))
        return value if isinstance(value, dict) else {}
    return {}


Found = tuple[str, str, os.stat_result]
"""Name, path and status of a file."""
_KNOWN: dict[str, dict[str, str]] = {}
"""Of this process: signature -> contents."""


def _signature(found: Sequence[Found]) -> str:
    """One digest of all sizes, times and inodes."""
    digest = hashlib.sha256()
    for name, _, status in found:
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        digest.update(f"{name}\0{status.st_size} {times} {status.st_ino}\n".encode())
    digest.update("\0".join(sorted(_site_names())).encode())
    return digest.hexdigest()


def _contents(signature: str, found: Sequence[Found]) -> dict[str, str]:
    if signature in _KNOWN:
        return _KNOWN[signature]
    files = {}
    for name, path, _ in found:
        with contextlib.suppress(UsageError):  # it went away since
            files[name] = hash_file(Path(path))
    files |= {f"unlisted: {name}": "" for name in sorted(_site_names() - _listed())}
    _KNOWN[signature] = files
    return files


def _found() -> Iterator[Found]:
    """Every file that counts."""
    yield from _below("python", os.path.realpath(sys.executable))
    yield from _below("pyvenv.cfg", os.path.join(sys.prefix, "pyvenv.cfg"))
    yield from _below("harness", os.path.dirname(os.path.realpath(harness.__file__)))
    for name in _required():
        one = _installed(name)
        for top in _names(one):
            yield from _below(f"{name}: {top}", str(one.locate_file(top)))
    for folder in _site_folders():
        for name in os.listdir(folder):
            if name.endswith(".pth") or name.partition(".")[0] in _STARTS:
                yield from _below(name, os.path.join(folder, name))


def _below(name: str, path: str) -> Iterator[Found]:
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield name, path, status
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name != _CACHE:
                yield from _below_entry(f"{name}/{entry.name}", entry)


def _below_entry(name: str, entry: os.DirEntry[str]) -> Iterator[Found]:
    if entry.is_dir():
        yield from _below(name, entry.path)
    else:
        with contextlib.suppress(OSError):
            yield name, entry.path, entry.stat()


@functools.cache
def _required() -> frozenset[str]:
    """Names of the installed distributions that the base install asks for, directly or not."""
    names: set[str] = set()
    waiting = [_OURS]
    while waiting:
        for name, condition in _REQUIRES.findall(_head(waiting.pop())):
            plain = re.sub(r"[-_.]+", "-", name).lower()
            wanted = "extra ==" not in condition and plain not in (names | _NO_JUDGES)
            if wanted and _head(plain):
                names.add(plain)
                waiting.append(plain)
    return frozenset(names)


def _head(name: str) -> str:
    """The fields of its metadata; empty when it is not installed."""
    try:
        one = _installed(name)
    except PackageNotFoundError:
        return ""
    return (one.read_text("METADATA") or one.read_text("PKG-INFO") or "").partition("\n\n")[0]


def _installed(name: str) -> Distribution:
    """The one in the site folders, before one that happens to lie on the path: what a build leaves
    in a checkout must not make the judge another one in that folder than in a project."""
    folders = [str(folder) for folder in _site_folders()]
    inside = next(iter(distributions(name=name, path=folders)), None)
    return inside or distribution(name)


def _names(one: Distribution) -> set[str]:
    """First parts of the paths that it lists; a script in a folder above begins with `..`."""
    listed = one.read_text("RECORD") or one.read_text("installed-files.txt") or ""
    return set(_TOP.findall(listed)) - {"..", _CACHE}


def _site_folders() -> list[Path]:
    folders = {
        *site.getsitepackages(),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    }
    return sorted(Path(folder) for folder in folders if os.path.isdir(folder))


def _site_names() -> set[str]:
    return {name for folder in _site_folders() for name in os.listdir(folder)} - {_CACHE}


def _listed() -> set[str]:
    folders = [str(folder) for folder in _site_folders()]
    return {name for one in distributions(path=folders) for name in _names(one)}
