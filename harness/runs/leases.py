"""GPUs of this machine, leased: each to one supervisor of this user, of whatever project."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ConfigError
from harness.files import lock
from harness.process import THREADS
from harness.runs.environment import VISIBLE, devices
from harness.runs.run_tail import Event
from harness.settings import state_home

_LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Cards:
    variables: Mapping[str, str]
    """The environment that a training inherits."""
    names: tuple[str, ...] = ()

    @property
    def placed(self) -> dict[str, Any]:
        return {"cards": list(self.names)} if self.names else {}


@contextlib.contextmanager
def leased_cards(count: int, inherited: Mapping[str, str], on_event: Event) -> Iterator[Cards]:
    """`inherited` with `count` GPUs that nobody else has, and its share of the cores; waits until
    so many are free. The kernel takes a lease back when its holder dies. 0: all that is there."""
    if not count:
        yield Cards(variables=inherited)
        return
    names = devices(inherited)
    require_cards(count, names)
    folder = state_home(inherited) / "cards"
    told = False
    while True:
        with contextlib.ExitStack() as held:
            own = _free(held, folder, names, count)
            if len(own) == count:
                threads = str(max(1, (os.cpu_count() or 1) * count // len(names)))
                more = {name: threads for name in THREADS if name not in inherited}
                more[VISIBLE] = ",".join(own)
                yield Cards(variables={**inherited, **more}, names=tuple(own))
                return
        if not told:
            told = True
            text = f"waiting for {count} of the GPUs {', '.join(names)}"
            on_event({"kind": "waiting", "text": text})
        time.sleep(_LOOK_S)


def require_cards(count: int, names: list[str]) -> None:
    """Raises ConfigError (too_few_gpus)."""
    if count > len(names):
        raise ConfigError(
            f"A seed asks for {count} GPUs; this machine shows {len(names)}.",
            hint=f"Lower `gpus` of [launchers.local], or widen {VISIBLE}.",
            code="too_few_gpus",
        )


def _free(held: contextlib.ExitStack, folder: Path, names: list[str], count: int) -> list[str]:
    """At most `count` of `names`, now held. Two that look at once may both find too few."""
    own: list[str] = []
    for name in names:
        if len(own) < count:
            path = folder / f"{_file(name)}.lock"
            if held.enter_context(lock(path, wait=False)):
                own.append(name)
    return own


def _file(name: str) -> str:
    return "".join(one if one.isalnum() else "-" for one in name)
