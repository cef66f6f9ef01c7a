"""The order for one seed, from the process that fans an experiment out to its seed's supervisor.

It lies in the state directory, where no sandboxed agent reads or writes: who holds its name proves
nothing, that it is there does. It says who asked, so that the run's facts say it too.
"""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.domain.grade import Caller
from harness.domain.launch_options import LOCAL
from harness.errors import NotFoundError
from harness.files import atomic_write, make_folder, pretty_json
from harness.process import boot_id
from harness.runs.endings import Ending, cancelled, cut_off
from harness.runs.launchers.on_node import CANCEL, began

_ORDER = "order.json"


@dataclass(frozen=True, kw_only=True)
class Order:
    experiment: str
    seed: int
    argv: list[str]
    engine: str
    gpus: int
    """That its supervisor leases."""
    code: str
    config: str | None
    asked: dict[str, str]
    """What --set says."""
    caller: str
    session: str | None
    sandbox: str
    resume: bool
    first: bool
    """It tries predict beside the training; the other seeds' predict is the same."""
    silent_s: float
    grace_s: float
    boot: str
    """Of the machine that asked."""

    def placed(self, folder: Path) -> dict[str, Any]:
        """For the run's facts: {engine, job, host, elsewhere}."""
        about = began(folder) or {}
        return {
            "engine": self.engine,
            "job": about.get("job", ""),
            "host": about.get("host", ""),
            "elsewhere": about.get("boot", boot_id()) != self.boot,
        }

    def at_signal(self, folder: Path, is_lost: Callable[[], bool]) -> Ending:
        """How its run ends at a signal; `is_lost`: what had started the supervisor is gone."""
        host = (began(folder) or {}).get("host", "")
        if (folder / CANCEL).exists():
            return cancelled()
        if is_lost():
            return cut_off(f"its {self.engine} worker on {host} died")
        if self.engine == LOCAL:
            return cancelled()
        return cut_off(f"{self.engine} took the node {host} away, or its job was ended there")


def write_order(layout: Layout, order: Order) -> Path:
    """A new folder with the order in it."""
    name = f"{order.experiment}-seed-{order.seed}-{secrets.token_hex(8)}"
    folder = layout.state / "placements" / name
    make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    atomic_write(folder / _ORDER, pretty_json(asdict(order)), mode=0o600)
    return folder


def read_order(layout: Layout, name: str) -> tuple[Order, Path]:
    """The order called `name`, and its folder. Raises NotFoundError (no_order)."""
    folder = layout.state / "placements" / os.path.basename(name)
    try:
        said: Mapping[str, Any] = json.loads((folder / _ORDER).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"There is no order {name!r} for a seed.",
            hint="`harness train EXP` makes them itself.",
            code="no_order",
        ) from error
    return Order(**said), folder


def caller(order: Order) -> Caller:
    return Caller.read(order.caller)


def forget(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
