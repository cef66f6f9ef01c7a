"""Whether the replicas of a run train the same model in the same way, asked before their first
exchange: gloo ends a process that gets tensors of another shape, and the rest would go on as if it
had died. Standard library only."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import RunError
from harness.files import atomic_write

_FILE = "alike.json"


def say_what(folder: Path, about: Mapping[str, Any]) -> None:
    """What this replica, whose folder it is, trains: name -> what JSON can hold."""
    atomic_write(folder / _FILE, json.dumps(about), durable=False)


def require_alike(folder: Path) -> None:
    """Raises RunError (replicas_apart) with the first thing in which a replica differs from the
    one of `folder`."""
    own = _said(folder)
    for other in sorted(folder.parent.iterdir()):
        said = _said(other) or own
        for name in {**own, **said}:
            if own.get(name) != said.get(name):
                raise RunError(
                    f"The replicas do not train the same: {name} is {own.get(name, 'absent')} in"
                    f" replica {folder.name}, {said.get(name, 'absent')} in replica {other.name}.",
                    hint="Make model, samples and configuration from what is the same in all of"
                    " them, e.g. the whole table, not a replica's own rows.",
                    code="replicas_apart",
                )


def _said(folder: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        about = json.loads((folder / _FILE).read_text("utf-8"))
        return about if isinstance(about, dict) else {}
    return {}
