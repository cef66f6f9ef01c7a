"""The CLI's own file beside its folder, `~/.claude.json`: it locks and replaces it, so inside it is
a copy, and what changed in the copy is put into the person's file afterwards.

A bind of the file itself does not do: the CLI makes its lock and the new file beside it, in HOME,
which nobody in the sandbox may write.
"""

import contextlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.files import (
    atomic_write,
    pretty_json,
)

NAME = ".claude.json"
_BEFORE = "claude.before.json"
_LARGEST = 64 << 20
_LOCK_SECONDS, _STALE_SECONDS, _POLL_SECONDS = 5.0, 10.0, 0.05


def copied_in(home: Path, folder: Path, inside: Path) -> None:
    """Copy the person's file to `inside`, the home of the sandbox, and to `folder`."""
    if (home / NAME).is_file():
        for copy in (inside / NAME, folder / _BEFORE):
            shutil.copyfile(home / NAME, copy)
            copy.chmod(0o600)


def put_back(home: Path, folder: Path, inside: Path) -> None:
    """Put into the person's file what changed in the copy since, value by value; what changed in
    the file meanwhile stays. A copy that is no JSON is left out."""
    after = _read(inside / NAME)
    if after is None:
        return
    before = _read(folder / _BEFORE)
    if after == before:
        return
    own = (home / NAME).resolve()  # a person may have it elsewhere, behind a link
    with _locked(own):
        now = _read(own)
        if now is None and own.exists():
            return  # damaged: it is not for us to replace it
        merged = _merged(before, now, after)
        if merged != now:
            atomic_write(own, pretty_json(merged), mode=0o600)


def _merged(before: Any, now: Any, after: Any) -> Any:
    if isinstance(now, dict) and isinstance(after, dict):
        known = before if isinstance(before, dict) else {}
        names = dict.fromkeys((*now, *after))
        parts = {name: _part(name, known, now, after) for name in names}
        return {name: part for name, part in parts.items() if part is not _GONE}
    return now if after == before else after


_GONE = object()


def _part(name: str, before: dict[str, Any], now: dict[str, Any], after: dict[str, Any]) -> Any:
    if name in now and name in after:
        return _merged(before.get(name), now[name], after[name])
    if name in after:  # removed from the file meanwhile, or new inside
        return _GONE if after[name] == before.get(name, _GONE) else after[name]
    return _GONE if now[name] == before.get(name, _GONE) else now[name]


def _read(path: Path) -> Any:
    """The JSON in a regular file; None without one. A link is not followed: whoever made it inside
    may not read what it leads to."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return json.loads(file.read(_LARGEST)) if is_file else None
        except (OSError, ValueError, RecursionError):
            return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """As the CLI locks it: with a folder beside it. An old one is left over from a dead process."""
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > _STALE_SECONDS:
                    os.rmdir(lock)
                    continue
            if time.monotonic() > deadline:
                break  # better a lost value of somebody's than a lost session
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(lock)
