"""A training of several processes: its one command, and what they told meanwhile.

`harness train EXP --launcher torchrun -- python train.py` starts `torchrun --standalone
--nproc-per-node N train.py`, whose processes share each step (DDP, FSDP2). `harness train EXP
--replicas N -- CMD` starts `python -m harness.training.replicas --replicas N -- CMD`, whose
replicas average now and then (DiLoCo); so does `distributed:` of the experiment's config.yaml.
Each is one command in one sandbox, which is what the facts keep.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from harness.artifacts.content import read_text
from harness.artifacts.front_matter import read_yaml
from harness.artifacts.metrics_file import Row, Tail
from harness.domain import variables
from harness.domain.distributed import DiLoCoConfig
from harness.domain.launch_options import LOCAL, TORCHRUN
from harness.domain.plain_text import one_line
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.project import Project
from harness.runs.environment import devices
from harness.settings import CONFIG, Settings

_PYTHON = ("python", "python3")
MODULE = "harness.training.replicas"
EVENTS = "replicas.jsonl"
"""In the run's folder, as its crew writes it (harness/training/replicas/crew.py)."""
_TOLD = ("starting", "healing", "stalled", "stopped", "ended")
"""States; who waits or trains changes them in every round."""
_MOST, _LONGEST = 20, 200
"""Changes of one look, and characters of one: the training could write them itself."""


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


def trainer_ranks(settings: Settings, asked: str | None, sandbox: Sandbox) -> int | None:
    """As `ranks_of`, for a training program. Raises UsageError (wrong_launcher) for a launcher that
    starts none, RefusedError (no_loopback)."""
    if asked not in (None, LOCAL, TORCHRUN):
        raise UsageError(
            f"A training program runs here, not by {asked}.",
            hint="Write `--launcher local`, or `--launcher torchrun` for several processes.",
            code="wrong_launcher",
        )
    ranks = ranks_of(settings, asked)
    if ranks is not None:
        require_loopback(sandbox)
    return ranks


def shared(words: Sequence[str], ranks: int | None) -> list[str]:
    """`words`, which begin with an interpreter, under its own torchrun; as they are for None."""
    if ranks is None:
        return list(words)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [words[0], *launch, *words[1:]]


def shards(settings: Settings, ranks: int | None) -> dict[str, str]:
    """What tells the harness' trainers whether each process holds a part of the weights only."""
    said = settings.launchers.get(TORCHRUN, {}).get("shard")
    return {variables.SHARD: "1"} if ranks and said else {}


def replicated(words: Sequence[str], replicas: int | None) -> list[str]:
    """`words` for so many replicas; as they are where they start replicas already, and for
    None."""
    if replicas is None or MODULE in words:
        return list(words)
    return ["python", "-m", MODULE, "--replicas", str(replicas), "--", *words]


def replicas_of(project: Project, experiment: str, asked: int | None) -> int | None:
    """`asked`, by --replicas; else what config.yaml says under `distributed`; None for a run of one
    process. Raises UsageError where they differ (config_exists), or what config.yaml says cannot
    be (distributed_invalid): else a run would find it out."""
    path, said = _distributed(project, experiment)
    there = DiLoCoConfig.read(said).replicas if isinstance(said, dict) else None
    if asked is not None and there is None:
        DiLoCoConfig(replicas=asked)
    if asked is not None and there is not None and asked != there:
        raise UsageError(
            f"--replicas is {asked}; {project.layout.relative(path)} says {there}.",
            hint="Leave --replicas out, or change distributed.replicas.",
            code="config_exists",
        )
    return there if asked is None else asked


def require_no_replicas(project: Project, experiment: str) -> None:
    """Raises UsageError (distributed_invalid): a training program would not read it."""
    path, said = _distributed(project, experiment)
    if said is not None:
        raise UsageError(
            f"{project.layout.relative(path)} has `distributed`, and a training program does not"
            " train as replicas.",
            hint=f"Remove it; `harness posttrain run {experiment} --launcher torchrun` shares each"
            " step among processes. Replicas are for a program of your own, in another experiment:"
            " `harness train EXP --replicas N -- CMD`.",
            code="distributed_invalid",
        )


def _distributed(project: Project, experiment: str) -> tuple[Path, Any]:
    """The experiment's config.yaml, and what it says under `distributed`."""
    path = project.layout.experiment(experiment, "config")
    try:
        return path, read_yaml(read_text(path), where=path.name).data.get("distributed")
    except NotFoundError:
        return path, None


@dataclass(frozen=True, kw_only=True)
class Many:
    """So many processes of one command; None: one."""

    replicas: int | None = None
    """That average now and then: DiLoCo's."""
    ranks: int | None = None
    """That share each step: torchrun's."""

    def words(self, words: Sequence[str]) -> list[str]:
        return replicated(with_ranks(words, self.ranks), self.replicas)


def require_ports(words: Sequence[str], sandbox: Sandbox) -> None:
    """Raises RefusedError (no_loopback) for replicas that cannot speak to one another."""
    if MODULE in words:
        require_loopback(sandbox)


def require_loopback(sandbox: Sandbox) -> None:
    """Raises RefusedError (no_loopback) under Landlock."""
    if sandbox.kind is SandboxKind.LANDLOCK:
        raise RefusedError(
            "Replicas and ranks speak over the loopback, and the sandbox landlock gives training no"
            " port.",
            hint="Install bubblewrap: its sandbox has a network of its own.",
            code="no_loopback",
        )


class ReplicaNews:
    """What the replicas of one run did since the last look."""

    def __init__(self, folder: Path, run: str) -> None:
        self._tail, self._run = Tail(folder / EVENTS), run

    def take(self) -> dict[str, Any] | None:
        """An event for people, or None."""
        rows = [row for row in self._tail.poll() if row.get("state") in _TOLD]
        if not rows:
            return None
        text = "; ".join(_line(row) for row in rows[-_MOST:])
        states = [{name: row.get(name) for name in ("replica", "state", "round")} for row in rows]
        event = {"kind": "replicas", "run": self._run, "states": states[-_MOST:]}
        return event | {"text": f"{self._run}  {text}"}


def _line(row: Row) -> str:
    why = f" ({row['why']})" if row.get("why") else ""
    told = f"replica {row.get('replica')}: {row['state']}, round {row.get('round')}{why}"
    return one_line(told, _LONGEST)
