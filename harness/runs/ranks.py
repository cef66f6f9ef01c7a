"""`--launcher torchrun`: a training of several processes that share each step (DDP, FSDP2).

`harness train EXP --launcher torchrun -- python train.py` starts `torchrun --standalone
--nproc-per-node N train.py`, one command in one sandbox, which is what the facts keep.
"""

import os
from collections.abc import Sequence
from pathlib import PurePath

from harness.domain.launch_options import TORCHRUN
from harness.errors import UsageError
from harness.runs.slots import devices
from harness.settings import CONFIG, Settings

_PYTHON = ("python", "python3")


def ranks_of(settings: Settings, asked: str | None) -> int | None:
    """How many, as `[launchers.torchrun]` says, else one a GPU; None where another launcher is
    asked for. Raises UsageError (no_ranks)."""
    if (asked or settings.launcher) != TORCHRUN:
        return None
    said = settings.launchers.get(TORCHRUN, {}).get("processes")
    count = int(said or len(devices(os.environ)))
    if count < 1:
        raise UsageError(
            "torchrun starts a process for each GPU, and this machine shows none.",
            hint=f"Write `[launchers.torchrun]` with `processes = 2` into {CONFIG}.",
            code="no_ranks",
        )
    return count


def with_ranks(words: Sequence[str], ranks: int | None) -> list[str]:
    """`words` under torchrun; as they are for None, and where they name it already. Raises
    UsageError (no_script)."""
    if ranks is None or PurePath(words[0]).name == TORCHRUN:
        return list(words)
    if PurePath(words[0]).name not in _PYTHON or len(words) < 2:
        raise UsageError(
            f"torchrun starts a Python program; {' '.join(words)!r} is none.",
            hint="E.g. `harness train EXP --launcher torchrun -- python train.py`.",
            code="no_script",
        )
    return [TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), *words[1:]]
