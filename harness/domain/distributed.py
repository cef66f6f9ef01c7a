"""What `distributed:` of config.yaml says about replicas. Standard library only."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from harness.domain import variables
from harness.errors import UsageError

ENGINE = "diloco"
_WHOLE = {
    "replicas": 1,
    "minimum_replicas": 1,
    "sync_every": 1,
    "fragments": 1,
    "delay": 0,
    "save_every": 1,
    "restarts": 0,
}
"""Name -> the least that it may be."""
_MOST_REPLICAS = 64
"""On one machine; a slip of the keyboard starts no thousands."""
_SECONDS = ("join_s", "heartbeat_s", "timeout_s", "waiting_s", "stalled_s")


@dataclass(frozen=True, kw_only=True)
class DiLoCoConfig:
    """Defaults are DiLoCo's (arXiv 2311.08105): outer SGD 0.7, Nesterov momentum 0.9.

    Raises UsageError (distributed_invalid) with the name of what is wrong.
    """

    replicas: int = 2
    minimum_replicas: int = 1
    """Fewer wait for a quorum; no round is counted meanwhile."""
    sync_every: int = 100
    """Inner steps in which every fragment is synced once."""
    outer_lr: float = 0.7
    momentum: float = 0.9
    nesterov: bool = True
    fragments: int = 1
    """Streaming DiLoCo (arXiv 2501.18512): parts of the model that are synced one by one."""
    delay: int = 0
    """Inner steps for which training goes on while a fragment is averaged."""
    mix: float = 0.0
    """How much of the local parameters is kept after a sync: 0 nothing, 1 all. With more than 0
    the replicas' parameters differ after a sync; their global copies do not."""
    offload: bool = False
    """The global parameters wait in the machine's memory, not on the card: one copy of the model
    less there, and two ways over the bus in each round."""
    save_every: int = 1
    """Rounds between two kept states, of which the last two stay."""
    restarts: int = 3
    """How often failed replicas are started again, all of them together."""
    join_s: float = 5.0
    """How long a round waits for replicas that are alive and late."""
    heartbeat_s: float = 5.0
    """A replica without a heartbeat for so long is out of the quorum."""
    timeout_s: float = 60.0
    """Of one exchange between replicas."""
    waiting_s: float = 600.0
    """A replica that has waited so long for a quorum fails."""
    stalled_s: float = 300.0
    """A replica without an inner step for so long is ended and started again."""
    open_ports: bool = False
    """Allow ports that other machines reach: docs/threat-model.md."""

    def __post_init__(self) -> None:
        for name, least in _WHOLE.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise _wrong(name, value, f"a whole number of at least {least}")
        for name in _SECONDS:
            if not _number(value := getattr(self, name)) or value <= 0:
                raise _wrong(name, value, "a number of seconds above 0")
        for name, most in (("outer_lr", math.inf), ("momentum", 1.0), ("mix", 1.0)):
            if not _number(value := getattr(self, name)) or not 0 <= value <= most:
                raise _wrong(name, value, "a number from 0" + f" to {most:g}" * (most == 1))
        for name in ("nesterov", "offload", "open_ports"):
            if type(value := getattr(self, name)) is not bool:
                raise _wrong(name, value, "true or false")
        if self.replicas > _MOST_REPLICAS:
            raise _wrong("replicas", self.replicas, f"at most {_MOST_REPLICAS}")
        self._together()

    def _together(self) -> None:
        if self.outer_lr == 0:
            raise _wrong("outer_lr", 0, "a number above 0")
        if self.nesterov and self.momentum == 0:
            raise _wrong("nesterov", True, "false where momentum is 0")
        if self.minimum_replicas > self.replicas:
            said = f"at most replicas, {self.replicas}"
            raise _wrong("minimum_replicas", self.minimum_replicas, said)
        if self.sync_every % self.fragments:
            said = f"a multiple of fragments, {self.fragments}"
            raise _wrong("sync_every", self.sync_every, said)
        if self.delay >= self.steps:
            raise _wrong("delay", self.delay, f"less than {self.steps}, the steps of a round")

    @property
    def steps(self) -> int:
        """Inner steps of a round, in which one fragment is synced."""
        return self.sync_every // self.fragments

    @classmethod
    def read(cls, said: Any, **more: Any) -> Self:
        """Of a mapping such as `{engine: diloco, replicas: 4}`, or of None; `more` goes before
        it."""
        values = {} if said is None else said
        if not isinstance(values, Mapping):
            raise _wrong("", values, "a mapping, e.g. {engine: diloco, replicas: 2}")
        values = {**values, **more}
        engine = values.pop("engine", ENGINE)
        if engine != ENGINE:
            raise _wrong("engine", engine, ENGINE)
        known = {field.name for field in fields(cls)}
        if unknown := sorted(str(name) for name in values if name not in known):
            raise _wrong(unknown[0], values.get(unknown[0]), f"one of {', '.join(sorted(known))}")
        return cls(**values)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **more: Any) -> Self:
        """Of the run's config.yaml, as `harness train` hands it over."""
        said = json.loads(environ.get(variables.CONFIG) or "{}").get("distributed")
        given = environ.get(variables.REPLICAS)
        replicas = {"replicas": int(given)} if given and given.isdigit() else {}
        return cls.read(said, **{**replicas, **more})

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and not math.isnan(value)


def _wrong(name: str, value: Any, expected: str) -> UsageError:
    where = f"distributed.{name}" if name else "distributed"
    return UsageError(
        f"{where} is {value!r}; expected {expected}.",
        hint="Correct it in the experiment's config.yaml; docs/diloco.md names all of them.",
        code="distributed_invalid",
    )
