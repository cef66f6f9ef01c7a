"""What a sandboxed process can reach: the system's folders, the interpreters, and what its
Confinement lists.

One ordered list of grants, from which bwrap makes mounts and Landlock rules. A deeper path wins
over a shallower one; at one path the order of Access decides.
"""

import os
import stat
import sys
from collections.abc import (
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from harness.domain.commands import found
from harness.domain.sandbox import (
    Confinement,
    Placed,
)
from harness.errors import SandboxError

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix", "/gnu", "/run/current-system"),
)
KERNEL = ("/sys/devices", "/sys/bus", "/sys/class", "/sys/module", "/sys/fs/cgroup")
"""Topology and accelerators, read-only: OpenMP and CUDA look there."""
ACCELERATORS = ("nvidia*", "nvidia-caps", "dri", "kfd")
"""Patterns below /dev."""


class Access(IntEnum):
    """In rising order of precedence at one path."""

    SYSTEM = 0
    WRITE = 1
    READ = 2
    HIDE = 3


@dataclass(frozen=True, kw_only=True)
class Grant:
    path: Path
    """Where the process sees it."""
    source: Path
    """What it sees there; no symbolic links in it."""
    access: Access
    held: tuple[int, int] | None = None
    """Device and inode of what was looked at, where somebody may exchange it: who makes the mount
    or the rule takes nothing else."""


def grants(argv: Sequence[str], confinement: Confinement, *, moves: bool = True) -> list[Grant]:
    """All grants for `argv`, shallow ones first; where the sandbox `moves` nothing, what is placed
    is granted at its source. Raises SandboxError."""
    system = {Path(name) for name in (*SYSTEM, *KERNEL) if os.path.exists(name)} | _interpreters(
        argv
    )
    written, read = (
        [_seen(path) for path in _listed(paths)]
        for paths in (confinement.writable, confinement.read_only)
    )
    moved = [(one, _unlinked(one.source)) for one in confinement.placed]
    _refuse_links_into(confinement.hidden, (*written, *read, *(seen for _, seen in moved)))
    listed = {
        *_spelled(system, Access.SYSTEM),
        *(grant for seen in written for grant in seen.grants(Access.WRITE)),
        *(grant for seen in read for grant in seen.grants(Access.READ)),
    }
    placed = {grant for one, seen in moved for grant in _placed(one, seen, moves=moves)}
    hidden = {
        grant
        for path in confinement.hidden
        for grant in _spelled([path], Access.HIDE)
        if _needs_hiding(grant.path, listed | placed)
    }
    strongest: dict[Path, Grant] = {}
    for grant in (*sorted(listed, key=lambda grant: grant.access), *placed, *hidden):
        strongest[grant.path] = grant
    ordered = sorted(strongest.values(), key=lambda grant: (len(grant.path.parts), grant.path))
    return [grant for grant in ordered if not _behind_a_link(grant, ordered)]


def accelerators(devices: Path = Path("/dev")) -> list[Path]:
    """Device nodes of GPUs that exist on this machine."""
    return sorted({path for pattern in ACCELERATORS for path in devices.glob(pattern)})


def require_visible(cwd: Path, granted: Iterable[Grant], *, private: Path | None = None) -> None:
    """Raises SandboxError when a process cannot see its `cwd`; it always has `private`."""
    place = cwd.resolve()
    holders = [grant for grant in granted if place.is_relative_to(grant.path)]
    if place == private:
        return
    if not holders or holders[-1].access is Access.HIDE:
        raise SandboxError(
            f"The working directory {cwd} is not among the paths of the confinement.",
            hint="List it, or a folder above it, as writable or read_only.",
        )


def _listed(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_absolute() or not path.exists():
            raise SandboxError(
                f"The confinement lists {path}, which is"
                f" {'missing' if path.is_absolute() else 'not absolute'}.",
                hint="Create it first, or leave it out.",
                code="sandbox_path_missing",
            )
        yield path


@dataclass(frozen=True)
class _Seen:
    """A listed path and what it led to at one moment: an agent may exchange it at any other."""

    path: Path
    source: Path
    held: tuple[int, int]

    def grants(self, access: Access) -> Iterator[Grant]:
        for name in {Path(os.path.normpath(self.path)), self.source}:
            yield Grant(path=name, source=self.source, access=access, held=self.held)


def _seen(path: Path) -> _Seen:
    """Raises SandboxError when something else came into its place meanwhile."""
    source = path.resolve()
    try:
        descriptor = os.open(source, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            # The kernel's word for where the descriptor is: no link on the way can change it.
            same = os.readlink(f"/proc/self/fd/{descriptor}") == str(source)
            same = same and not stat.S_ISLNK(found.st_mode)
        finally:
            os.close(descriptor)
    except OSError:
        same = False
    if not same:
        raise _exchanged(path)
    return _Seen(path, source, (found.st_dev, found.st_ino))


def _unlinked(path: Path) -> _Seen:
    """Of a path that was resolved before: a link that came since leads elsewhere."""
    seen = _seen(next(_listed([path])))
    if seen.source != Path(os.path.normpath(path)):
        raise _exchanged(path)
    return seen


def _exchanged(path: Path) -> SandboxError:
    return SandboxError(
        f"{path} was exchanged while it was looked at.",
        hint="End the program that moves it or puts links in its place, then try again.",
        code="exchanged_meanwhile",
    )


def _refuse_links_into(hidden: Iterable[Path], listed: Iterable[_Seen]) -> None:
    # By name a listed path may lie in a hidden folder, as the harness's own do. Through a link it
    # may not: whoever made the link would open the hidden folder.
    for secret in hidden:
        names = {Path(os.path.normpath(secret)), secret.resolve()}
        for seen in listed:
            if not seen.source.is_relative_to(secret.resolve()):
                continue
            path = Path(os.path.normpath(seen.path))
            if not any(path.is_relative_to(name) for name in names):
                raise SandboxError(
                    f"The confinement lists {path}, which leads to {seen.source}, inside the"
                    f" hidden {secret}.",
                    hint="Remove the link.",
                    code="link_into_hidden",
                )


def _spelled(paths: Iterable[Path], access: Access) -> Iterator[Grant]:
    """Each path as it was written and, where that differs, without symbolic links."""
    # A program may open either name.
    for path in paths:
        source = path.resolve()
        for name in {Path(os.path.normpath(path)), source}:
            yield Grant(path=name, source=source, access=access)


def _placed(placed: Placed, seen: _Seen, *, moves: bool) -> Iterator[Grant]:
    access = Access.WRITE if placed.writable else Access.READ
    names = {Path(os.path.normpath(placed.path)), placed.path.resolve()}
    for name in names if moves else {seen.source}:
        yield Grant(path=name, source=seen.source, access=access, held=seen.held)


def _behind_a_link(grant: Grant, ordered: Sequence[Grant]) -> bool:
    """Whether, in what is mounted above it, a link stands on the grant's way. Nothing can be
    mounted there, nor need be: where the link leads is granted under its name without links."""
    if grant.path == grant.source:
        return False
    holders = [other for other in ordered if other.path in grant.path.parents]
    if not holders:
        return False
    here = holders[-1].source
    for part in grant.path.relative_to(holders[-1].path).parts:
        here = here / part
        if here.is_symlink():
            return True
    return False


def _needs_hiding(path: Path, granted: Iterable[Grant]) -> bool:
    # What no grant contains does not exist in the sandbox anyway.
    below = any(path.is_relative_to(grant.path) for grant in granted)
    if below and not path.exists():
        raise SandboxError(
            f"{path} must be hidden and lies in a listed folder, but does not exist yet.",
            hint="Create it before the sandbox is made, so that it cannot appear inside later.",
            code="sandbox_path_missing",
        )
    return below


def _interpreters(argv: Sequence[str]) -> set[Path]:
    """Our own Python and package, and whatever the command's first word needs to start."""
    paths = {Path(__file__).resolve().parents[1]}
    for prefix in (sys.prefix, sys.base_prefix):
        paths |= _prefix(Path(prefix))
    program = found(argv[0]) if argv else None
    if program is not None and os.path.isabs(program):
        paths |= _program(Path(program))
    return {path for path in paths if path.exists()}


def _program(program: Path) -> set[Path]:
    """Of each hop of the program's symbolic links the Python prefix, else the file alone."""
    paths: set[Path] = set()
    for hop in _hops(program):
        prefix = hop.parent.parent
        marks = [prefix / "pyvenv.cfg", prefix / "conda-meta", *prefix.glob("lib/python3*/os.py")]
        is_python = hop.parent.name == "bin" and any(mark.exists() for mark in marks)
        paths |= _prefix(prefix) if is_python else {hop}
    return paths


def _hops(path: Path) -> Iterator[Path]:
    for _ in range(40):  # the kernel's own limit on links
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield path.resolve()


def _prefix(prefix: Path) -> set[Path]:
    """A Python installation and those that its pyvenv.cfg names."""
    paths = {prefix}
    # A prefix that holds a home directory would grant all of it: only the parts that Python uses.
    home = Path.home()
    if home.is_relative_to(prefix) or prefix == home / ".local":
        paths = {prefix / name for name in ("bin", "lib", "lib64", "include", "pyvenv.cfg")}
    config = prefix / "pyvenv.cfg"
    if config.is_file():
        for line in config.read_text("utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                base = Path(value.strip()).parent
                paths |= {base} if base == prefix else _prefix(base)
    return paths
