"""The control files of a project and a digest of each: what decides what is enforced.

Of three of them only a part counts. People, Claude Code and git write the rest in ordinary work,
where it decides nothing: what settings_keys.py calls harmless, and which branch follows which.
"""

from __future__ import annotations

import os
import stat

from harness.guard.policy.json_text import dumps
from harness.guard.policy.receipt import sha256_hex

from .projects import CONFIG, FILTER, LOCAL_SETTINGS, SETTINGS
from .settings_keys import counts, parts, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .hook_scene import HookScene

WORKTREES = ".claude/worktrees"
"""Where Claude Code puts whole copies of the repository for its agents; none of them is what a
session obeys."""
_GIT_CONFIG = ".git/config"
_REMOTE_KEYS = frozenset({"url", "pushurl", "fetch", "push", "tagopt", "prune"})


def counted(name: str, data: bytes) -> bytes:
    """Of the control file `name`, relative to its project; nothing when none of it counts, all when
    it is not plain."""
    if name in (SETTINGS, LOCAL_SETTINGS):
        return _settings(name, data)
    return _git(data) if name == _GIT_CONFIG else data


def _settings(name: str, data: bytes) -> bytes:
    settings = settings_of(data)
    if settings is None:
        return data
    found = parts(settings, carries=name == SETTINGS)
    kept = {part: text for part, text in found.items() if counts(part)}
    return dumps(kept, sort_keys=True).encode("ascii") if kept else b""


def _git(data: bytes) -> bytes:
    """Git's configuration without its branches and the addresses of remotes."""
    try:
        lines = [line.strip() for line in data.decode("utf-8").split("\n")]
    except UnicodeDecodeError:
        return data
    section, kept = "", []
    for line in lines:
        if line.endswith("\\"):
            return data
        heads = line.startswith("[")
        if heads:
            section = _section(line)
            if not section:
                return data
        key, equals, _ = line.partition("=")
        address = equals and key.rstrip().lower() in _REMOTE_KEYS
        if section != "branch" and not (section == "remote" and (heads or address)):
            kept.append(line)
    return "\n".join(line for line in kept if line).encode("utf-8")


def _section(line: str) -> str:
    """The name in `[name]` or `[name "part"]`, a remark may follow; empty for another form. By
    hand: `re` takes longer to import than all of this."""
    inner = line[1:].lstrip()
    name = inner[: next((at for at, sign in enumerate(inner) if not _names(sign)), len(inner))]
    rest = inner[len(name) :]
    part = rest.lstrip()
    if part.startswith('"') and part != rest:
        rest = _after_quotes(part)
    closing, _, remark = rest.partition("]")
    plain = not closing.strip() and rest != closing
    return name.casefold() if plain and remark.lstrip()[:1] in ("", "#", ";") else ""


def _names(sign: str) -> bool:
    return sign.isalnum() or sign in "_.-"


def _after_quotes(text: str) -> str:
    """What follows the string that `text` begins with; a backslash keeps the sign behind it."""
    at = 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return text[at + 1 :]


GIT = ".git"
MISSING = "missing"
_DIGITS = 16
_LARGE = 1 << 20


def control_digests(scene: HookScene) -> dict[str, str]:
    """Path -> the first digits of its SHA-256, "missing" where there is nothing that counts.

    The paths are those of the snapshot's `control`: what the audit looks at, with the plan. A
    folder counts as one, without what has an entry of its own; so do the programs of the hooks,
    with their library.
    """
    home = scene.home
    if home is None:
        return {}
    folder = scene.installed.folder
    shown = os.path.relpath(folder, home.root) if folder.startswith(home.root + "/") else folder
    names = _control(home.snapshot)
    apart = frozenset((*names, shown, WORKTREES))
    digests = {name: _digest(home.root, name, apart) for name in names}
    library = (
        os.path.join(scene.installed.library, room) for room in ("guard/policy", "guard/hooks")
    )
    files = [name for place in (folder, *library) for name in _sources(place)]
    files.append(os.path.join(scene.installed.library, FILTER))
    return {**digests, shown: _together((name, _digest_of(name, name)) for name in files)}


def _control(snapshot: dict[str, Any]) -> list[str]:
    """A snapshot that an older harness wrote, or none, leaves what every project has."""
    control = snapshot.get("control")
    if isinstance(control, list) and all(isinstance(name, str) for name in control):
        return [name for name in dict.fromkeys(control) if _inside(name)]
    plans = [
        artifact["glob"]
        for artifact in snapshot.get("artifacts", ())
        if artifact["writer"] == "human"
    ]
    return list(
        dict.fromkeys(
            [SETTINGS, LOCAL_SETTINGS, CONFIG, *plans, *(["plan.md"] if not plans else [])]
        )
    )


def _inside(name: str) -> bool:
    return (
        name == os.path.normpath(name)
        and name not in (".", "..")
        and not name.startswith(("/", "../"))
    )


def _sources(folder: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name.endswith((".py", ".json")))


def _digest(root: str, name: str, apart: frozenset[str]) -> str:
    """Of a file; of a folder, of all that is below it and not in `apart`."""
    top = os.path.join(root, name)
    if not os.path.isdir(top):
        return _digest_of(top, name)
    if name == GIT:
        return MISSING  # of a repository its parts have entries; the file of a worktree is one
    below = [
        (path, _digest_of(os.path.join(root, path), path)) for path in _below(root, name, apart)
    ]
    there = [(path, digest) for path, digest in below if digest != MISSING]
    return _together(there) if there else MISSING


def _below(root: str, name: str, apart: frozenset[str]) -> Iterator[str]:
    """Files and links, links to folders too, in order, relative to `root`; nothing behind a
    link."""
    for folder, inner, files in os.walk(os.path.join(root, name)):
        here = os.path.relpath(folder, root)
        inner[:] = sorted(item for item in inner if os.path.join(here, item) not in apart)
        links = [item for item in inner if os.path.islink(os.path.join(folder, item))]
        paths = (os.path.join(here, item) for item in sorted((*files, *links)))
        yield from (path for path in paths if path not in apart)


def _digest_of(path: str, name: str) -> str:
    """Of what counts of one file; of a large one only its size and time are looked at, of a link to
    a folder its text, of what is no file its kind."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            data = os.fsencode(os.readlink(path))
        elif not stat.S_ISREG(status.st_mode) or status.st_size > _LARGE:
            data = f"{stat.S_IFMT(status.st_mode)} {status.st_size} {status.st_mtime_ns}".encode(
                "ascii"
            )
        else:
            with open(path, "rb") as file:
                data = counted(name, file.read())
    except (OSError, ValueError):
        return MISSING
    return sha256_hex(data)[:_DIGITS] if data else MISSING


def _together(digests: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{name} {digest}\n" for name, digest in digests)
    return sha256_hex(text.encode("utf-8", "surrogateescape"))[:_DIGITS]
