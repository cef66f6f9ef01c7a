"""Which of the processes of one training this one is: all but the first log nothing."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""torchrun and accelerate, srun, mpirun: over all nodes."""
_PLACES = ("LOCAL_RANK", "NODE_RANK", "GROUP_RANK")
"""On the node, and which node: Lightning starts its own processes with these alone."""
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS")
_NAMES = (
    ("TORCHELASTIC_RUN_ID",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMIX_NAMESPACE",),
    ("MASTER_PORT",),
)
"""What tells launches of one parent apart; of torchrun not the port, which a restart changes."""
_SPAWN = "torch.multiprocessing.spawn"


def rank_of(environ: Mapping[str, str]) -> int:
    """0 for the first process, and for the only one."""
    for names in (_RANKS, _PLACES):
        given = [int(value) for name in names if (value := environ.get(name, "")).isdigit()]
        if given:
            return given[0] if names is _RANKS else max(given)
    return _spawned()


def several(environ: Mapping[str, str]) -> dict[str, int]:
    """How many processes the training has, for its start row; empty for one."""
    size = environ.get("WORLD_SIZE", "")
    return {"ranks": int(size)} if size.isdigit() and int(size) > 1 else {}


def is_other() -> bool:
    """Whether torch.distributed, once it is started, says that this is not the first process."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return False
    return bool(distributed.is_initialized() and distributed.get_rank() > 0)


def launch(environ: Mapping[str, str]) -> str | None:
    """A name that the processes of one launch share; None for a process alone."""
    sizes = [size for name in _SIZES if (size := environ.get(name, "")).isdigit()]
    several = any(int(size) > 1 for size in sizes) or rank_of(environ) > 0 or bool(_arguments())
    parent = os.getppid()
    return f"launch-{parent}{_began(parent)}{_named(environ)}" if several else None


def _named(environ: Mapping[str, str]) -> str:
    """One parent may start several at once, each with a port of its own; "" where nothing says
    it."""
    for names in _NAMES:
        given = [environ[name] for name in names if environ.get(name)]
        if given:
            plain = re.sub(r"[^\w-]", "_", "-".join(given), flags=re.ASCII)
            return f"-{plain[:40]}"
    return ""


def started_again(environ: Mapping[str, str]) -> bool:
    """Whether torchrun started the processes of a launch once more, after a failure."""
    return environ.get("TORCHELASTIC_RESTART_COUNT", "0") not in ("", "0")


def _began(pid: int) -> str:
    """The start of a process, for its id comes again; "" where /proc does not say it."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return f"-{told.rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return ""


def _spawned() -> int:
    """The rank that `torch.multiprocessing.spawn` gives as the first argument."""
    arguments = _arguments()
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else 0


def _arguments() -> tuple[Any, ...]:
    """Of a process of spawn's; () of any other."""
    # Not imported: a process that multiprocessing started has it.
    process = sys.modules.get("multiprocessing.process")
    own = None if process is None else process.current_process()
    target = getattr(own, "_target", None)
    return getattr(own, "_args", ()) if getattr(target, "__module__", "") == _SPAWN else ()
