"""One of several equal parts of the machine, for trainings that run at once."""

import contextlib
import os
from collections.abc import Iterator, Mapping

from harness.artifacts.locate import Layout
from harness.files import lock
from harness.process import THREADS
from harness.runs.environment import gpus

VISIBLE = "CUDA_VISIBLE_DEVICES"


@contextlib.contextmanager
def machine_slot(
    layout: Layout, slots: int, inherited: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """`inherited`, with the GPUs and threads of the first free one of `slots` parts. Where all are
    taken, by trainings of other calls, the first is shared. Nothing changes for one part."""
    if slots < 2:
        yield inherited
        return
    # Locks: the kernel takes a part back when its holder dies.
    with contextlib.ExitStack() as held:
        place = 0
        for number in range(slots):
            path = layout.state / "locks" / f"slot-{number}-of-{slots}.lock"
            if held.enter_context(lock(path, wait=False)):
                place = number
                break
        yield {
            **inherited,
            **part(place, slots, inherited, devices(inherited), os.cpu_count() or 1),
        }


def devices(inherited: Mapping[str, str]) -> list[str]:
    """The GPUs that a training may see, by what names them."""
    said = inherited.get(VISIBLE)
    if said is None:
        return [str(number) for number in range(len(gpus()))]
    return [name.strip() for name in said.split(",") if name.strip()]


def part(
    place: int, slots: int, inherited: Mapping[str, str], names: list[str], cores: int
) -> dict[str, str]:
    """The variables of part `place` of `slots`: whole GPUs, one that others use too only where
    there are fewer GPUs than parts. A number of threads that a person set stays."""
    own: list[str] = []
    if names:
        first, last = place * len(names) // slots, (place + 1) * len(names) // slots
        own = names[first:last] or [names[place % len(names)]]
    threads = str(max(1, cores // slots))
    found = {name: threads for name in THREADS if name not in inherited}
    return found | ({VISIBLE: ",".join(own)} if own else {})
