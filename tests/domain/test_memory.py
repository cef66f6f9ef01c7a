"""A process gets a share of what its control group grants, wherever that is less than the machine's
memory."""

import os
from pathlib import Path

import pytest

from harness.domain.memory import granted_memory
from harness.domain.sandbox import MEMORY_SHARE, machine_share

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 1 << 20
V1_UNLIMITED = "9223372036854771712"


def tree(root: Path, groups: str, limits: dict[str, str]) -> Path:
    """A root with /proc/self/cgroup and the given files below /sys/fs/cgroup."""
    for name, text in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": limits[name] for name in limits},
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("groups", "limits", "granted"),
    [
        ("0::/job/step", {"job/step/memory.max": str(100 * MIB)}, 100 * MIB),
        (
            "0::/job/step",
            {"job/step/memory.max": "max", "job/memory.max": str(70 * MIB)},
            70 * MIB,
        ),
        (
            "0::/job/step",
            {
                "job/step/memory.max": str(90 * MIB),
                "job/memory.max": str(70 * MIB),
                "other/memory.max": "1",
            },
            70 * MIB,
        ),
        ("0::/", {"memory.max": str(60 * MIB)}, 60 * MIB),
        ("0::/../outside", {"memory.max": str(50 * MIB)}, 50 * MIB),
        ("0::/job", {"job/memory.max": "max"}, MACHINE),
        ("0::/job", {"job/memory.max": str(MACHINE * 4)}, MACHINE),
        ("4:memory:/a/b", {"memory/a/memory.limit_in_bytes": str(40 * MIB)}, 40 * MIB),
        ("4:cpu,memory:/docker/x", {"memory/memory.limit_in_bytes": str(30 * MIB)}, 30 * MIB),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": V1_UNLIMITED}, MACHINE),
        (
            "4:memory:/a\n0::/b",
            {"memory/a/memory.limit_in_bytes": V1_UNLIMITED, "b/memory.max": str(MIB)},
            MIB,
        ),
        (
            "0::/a\n3:cpu:/c",
            {"unified/a/memory.max": str(20 * MIB), "c/memory.max": "1"},
            20 * MIB,
        ),
        ("nonsense", {"memory.max": "1"}, MACHINE),
        ("0::/a", {"a/memory.max": "12 apples"}, MACHINE),
    ],
)
def test_the_smallest_limit_up_the_own_path_counts(
    tmp_path: Path, groups: str, limits: dict[str, str], granted: int
) -> None:
    root = tree(tmp_path, groups, limits)
    assert granted_memory(root) == granted
    assert machine_share(root) == int(MEMORY_SHARE * granted)


def test_without_control_groups_the_machine_counts(tmp_path: Path) -> None:
    assert granted_memory(tmp_path) == MACHINE
