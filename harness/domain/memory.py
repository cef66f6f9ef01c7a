"""How much memory this process may use: a container or a job scheduler often grants less than the
machine has."""

import os
from pathlib import Path, PurePosixPath

_V1, _V2 = "memory.limit_in_bytes", "memory.max"
_MOUNTS = {_V1: ("sys/fs/cgroup/memory",), _V2: ("sys/fs/cgroup", "sys/fs/cgroup/unified")}


def granted_memory(root: Path = Path("/")) -> int:
    """Bytes: the machine's memory, or the smallest limit of this process's control groups.

    `root` holds `proc` and `sys`. A limit holds for all groups below, so the own group and each
    above it is asked; version 1 and version 2 may both be mounted.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> list[int]:
    limits = []
    for name, group in _groups(root):
        own = PurePosixPath(group.lstrip("/"))
        for mount in _MOUNTS[name]:
            for folder in (own, *own.parents):
                try:
                    limits.append(int((root / mount / folder / name).read_text("ascii")))
                except (OSError, ValueError):
                    continue  # not there, e.g. above the container's own group; or "max": no limit
    return [limit for limit in limits if limit > 0]


def _groups(root: Path) -> list[tuple[str, str]]:
    """(name of the limit's file, path of the group) of this process."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:  # no Linux
        return []
    groups = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if ".." in PurePosixPath(path).parts:
            path = "/"  # outside of what this process can see; its namespace's root is not
        if "memory" in controllers.split(","):
            groups.append((_V1, path))
        elif number == "0" and not controllers:
            groups.append((_V2, path))
    return groups
