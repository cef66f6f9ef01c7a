"""One replica: torchft's DiLoCo with our data, losses, states and kept rounds. See the package."""

import json
import math
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torchft.local_sgd import DiLoCo as TorchftDiLoCo
from torchft.local_sgd import _StreamingDiLoCoFragment

from harness.domain import variables
from harness.domain.distributed import DiLoCoConfig
from harness.errors import RunError, UsageError
from harness.files import atomic_write
from harness.run_logger import RunLogger
from harness.training.diloco.fragments import fragments_of
from harness.training.diloco.healing import ReplicaManager
from harness.training.diloco.kept import keep_round, kept_round
from harness.training.diloco.rounds import Round, Work, norm, round_of, strays
from harness.training.diloco.samples import Samples
from harness.training.replicas.alike import require_alike, say_what
from harness.training.replicas.network import require_alone
from harness.training.replicas.standing import GO, SAMPLES, Standing, State


class DiLoCo:
    """Context manager around the inner loop; `inner.step()` does the rounds.

    The inner optimizer's state stays with its replica. Buffers, e.g. the running means of a batch
    norm, are not averaged. `scheduler` is taken over with the rest when a replica heals.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        inner: torch.optim.Optimizer,
        config: DiLoCoConfig | None = None,
        *,
        log: RunLogger,
        samples: Samples | None = None,
        scheduler: Any = None,
        by_steps: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`config` is by default what the run's config.yaml says; `by_steps`: rows are placed by
        inner steps, not by rounds. Raises UsageError, RefusedError (open_ports)."""
        values = os.environ if environ is None else environ
        self.config = config or DiLoCoConfig.from_environment(values)
        self.replica = _replica(values, self.config)
        require_alone(accepted=self.config.open_ports)
        self._log, self._samples, self._scheduler = log, samples, scheduler
        self._model, self._inner, self._by_steps = model, inner, by_steps
        log.config.get("distributed")  # it is read
        self.folder = log.checkpoint_dir.parent
        self._standing = Standing(self.folder)
        self._device = next(model.parameters()).device
        self._table = torch.empty(0)
        self._work = self._done = Work()
        self._began = time.monotonic()
        self._step = 0  # inner steps since the last round
        self._over = self._due = False  # a round is over; it is to be kept
        self._batches: Iterator[list[int]] = iter(())
        if samples is not None:
            samples.begin(steps=self.config.steps, replicas=self.config.replicas)
        self._manager = ReplicaManager(
            self.config,
            replica=self.replica,
            lighthouse=_lighthouse(values),
            on_cards=self._device.type == "cuda",
            tell=self._tell,
            load=self._take_over,
            save=self._state,
        )
        self._torchft = self._made()
        self._resumed_at = values.get(variables.REPLICA_ROUND)

    def _made(self) -> TorchftDiLoCo:
        said = self.config
        parts = fragments_of(self._model, said.fragments)
        outer = [
            torch.optim.SGD(
                part.parameters(),
                lr=said.outer_lr,
                momentum=said.momentum,
                nesterov=said.nesterov,
            )
            for part in parts
        ]
        made = TorchftDiLoCo(
            self._manager,
            list(parts),
            self._inner,
            outer,
            sync_every=said.sync_every,
            backup_device=None if said.offload else self._device,
            fragment_sync_delay=said.delay,
            fragment_update_alpha=said.mix,
        )
        for fragment in made._fragments:
            # torchft names the class itself and offers no other place to look into a sync.
            fragment.__class__ = _Fragment
            fragment.owner = self
        return made

    @property
    def rounds(self) -> int:
        """How many rounds count so far, of the whole training."""
        return int(self._manager.current_step())

    @property
    def steps(self) -> int:
        """Inner steps of this replica that count, and those since."""
        return self.rounds * self.config.steps + self._step

    def __enter__(self) -> Self:
        self._torchft.__enter__()
        # After torchft's own, which syncs: then a round's last step is over.
        self._hook = self._inner.register_step_post_hook(self._stepped)
        if self._resumed_at:
            self._resume(int(self._resumed_at))
        self._deal()
        say_what(self.folder, self._about())
        self._tell(State.WAITING)
        # The first to come would else have trained alone before the others are there.
        self._manager.wait_for(self.folder.parent / GO)
        try:
            require_alike(self.folder)
        except RunError as error:
            self.__exit__(type(error), error, None)
            raise
        self._began = time.monotonic()
        self._tell(State.TRAINING)
        return self

    def _about(self) -> dict[str, Any]:
        """What has to be the same in all replicas."""
        named = self._model.named_parameters()
        shapes = {f"parameter {name}": [*each.shape, str(each.dtype)] for name, each in named}
        dealt = {} if self._samples is None else self._samples.state()
        rows = {f"samples.{name}": dealt[name] for name in ("count", "batch", "seed") if dealt}
        said = {f"distributed.{name}": value for name, value in self.config.plain().items()}
        return said | rows | shapes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.remove()
        self._torchft.__exit__(kind, error, trace)
        if self._samples is not None and error is None:
            atomic_write(self.folder / SAMPLES, json.dumps(self._samples.report()))
        self._tell(State.ENDED if error is None else State.STOPPED)
        self._manager.shutdown(wait=False)

    def batch(self) -> list[int]:
        """The rows of the next inner step, as places in the table."""
        assert self._samples is not None, "samples= was not given"
        return next(self._batches)

    def note(self, loss: torch.Tensor | float, *, tokens: float = 1) -> None:
        """Of one inner step, called before it: its mean loss over `tokens`, or rows."""
        self._work.tokens += tokens
        # Read once a round: each look at a tensor on a card waits for all that is queued there.
        value = loss.detach().double() if isinstance(loss, torch.Tensor) else loss
        self._work.loss = self._work.loss + value * tokens

    def save_model(self, path: Path) -> Path:
        """The weights, written whole or not at all."""
        return keep_round(path, self._model.state_dict())

    # What torchft asks for

    def _state(self) -> dict[str, Any]:
        return {
            "model": self._model.state_dict(),
            "inner": self._inner.state_dict(),
            "samples": {} if self._samples is None else self._samples.state(),
            "scheduler": {} if self._scheduler is None else self._scheduler.state_dict(),
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        self._model.load_state_dict(state["model"])
        self._inner.load_state_dict(state["inner"])
        if self._samples is not None:
            self._samples.load(state["samples"])
        if self._scheduler is not None:
            self._scheduler.load_state_dict(state["scheduler"])

    def _take_over(self, state: Mapping[str, Any]) -> None:
        self._load(state)
        self._work = Work(healed=True)

    # A round

    def measured(self, fragment: "_Fragment") -> None:
        """Called with the pseudo-gradients of this replica, before they are averaged."""
        gradients = list(fragment._grads.values())
        self._work.seconds = time.monotonic() - self._began
        self._work.drift = norm(gradients)
        self._work.digest = _digest(fragment.original_parameters)
        self._work.broken = not math.isfinite(self._work.drift)
        if self._work.healed or self._work.broken:
            # Of a healed one torchft would count the donor's work twice.
            for each in gradients:
                each.zero_()

    def exchange(self) -> Any:
        table = self._work.table(self.replica, self.config.replicas)
        self._table = table.to(self._device)
        self._done, self._work = self._work, Work(healed=self._work.healed)
        total = torch.distributed.ReduceOp.SUM
        return self._manager.allreduce(self._table, reduce_op=total)

    def scale(self) -> float:
        """What an average over all who took part is multiplied by, so that it is one over those
        who worked."""
        present, worked = (int(self._table[:, place].sum()) for place in (0, 1))
        return present / worked if worked else 1.0

    @property
    def is_broken(self) -> bool:
        """Whether this replica's own work of the round is not finite."""
        return self._done.broken

    def agreed(self) -> None:
        """Raises RunError (replicas_apart) when the replicas do not start from the same global
        parameters."""
        if apart := strays(self._table):
            said = ", ".join(f"replica {at}: {value:08x}" for at, value in apart.items())
            raise RunError(
                f"The replicas' global parameters differ before round {self.rounds}: {said}.",
                hint="Call torch.manual_seed(log.seed) before the model is made, and do not"
                " change parameters but by the inner optimizer.",
                code="replicas_apart",
            )

    def synced(self, *, counts: bool) -> None:
        """A round is over; `counts` is false when a replica died in it: all go back to the last
        global parameters."""
        healed, self._work.healed = self._work.healed, False
        self._over, self._began = True, time.monotonic()
        if counts:
            done = round_of(self._table, self.rounds - 1)
            if self._samples is not None:
                self._samples.commit(done.worked, done.members)
            self._row(done, healed=healed)
            self._due = self.rounds % self.config.save_every == 0
        self._deal()

    def _row(self, done: Round, *, healed: bool) -> None:
        mine = self._done
        own: dict[str, Any] = {"own/healed": int(healed)}
        if not healed:
            own |= {"own/seconds": mine.seconds, "own/drift": mine.drift}
            own |= {"own/loss": float(mine.loss) / mine.tokens} if mine.tokens else {}
        whole: dict[str, Any] = {"participants": len(done.worked)}
        if done.loss is not None:
            # A trainer logs a loss of its own at the same place.
            name = "global/loss" if self._by_steps else "loss"
            whole |= {name: done.loss, "tokens": done.tokens}
        if self._samples is not None:
            whole["batch"] = len(done.worked) * self._samples.batch
        place = self.rounds * self.config.steps if self._by_steps else self.rounds
        self._log.epoch(place - 1, whole | own)

    def _stepped(self, *_: Any) -> None:
        self._step = 0 if self._over else self._step + 1
        self._over = False
        if self._due:
            # Here the state is whole: torchft's hook has left its locks.
            self._due = False
            self._keep()
        self._tell(State.TRAINING)

    # Kept rounds

    def _keep(self) -> None:
        state = {"manager": self._manager._manager_state_dict(), "random": torch.get_rng_state()}
        if self._device.type == "cuda":
            state["random_on_card"] = torch.cuda.get_rng_state(self._device)
        keep_round(self.folder / f"round-{self.rounds}.pt", state, keep=2)

    def _resume(self, number: int) -> None:
        state = kept_round(self.folder / f"round-{number}.pt")
        for name, load in self._manager._load_state_dict_fns.items():
            given = state["manager"]["user"][name]
            self._load(given) if name == "default" else load(given)
        self._manager.load_state_dict(state["manager"]["torchft"])
        torch.set_rng_state(state["random"])
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(state["random_on_card"], self._device)
        self._log.resumed()

    def _deal(self) -> None:
        if self._samples is not None:
            self._batches = self._samples.batches(self.replica)

    def _tell(self, state: State) -> None:
        held = getattr(self, "_manager", None)
        rounds = 0 if held is None else getattr(held, "_step", 0)
        self._standing.tell(state, rounds=rounds, steps=rounds * self.config.steps + self._step)


class _Fragment(_StreamingDiLoCoFragment):  # type: ignore[misc] # the library is not followed
    owner: DiLoCo

    def _save_grads(self) -> None:
        super()._save_grads()
        self.owner.measured(self)

    def _average_grads(self) -> None:
        super()._average_grads()
        # In every replica as the last one: the order of exchanges is part of the protocol.
        self._allreduce_work.append(self.owner.exchange())

    def _set_grads(self) -> None:
        self.owner.agreed()
        if (scale := self.owner.scale()) != 1.0:
            for each in self._grads.values():
                each.mul_(scale)
        super()._set_grads()

    def _merge_parameters(self) -> None:
        # Of NaN even nothing is too much: 0 * NaN is NaN.
        if self.owner.config.mix and not self.owner.is_broken:
            super()._merge_parameters()

    def perform_sync(self) -> bool:
        counts = bool(super().perform_sync())
        self.owner.synced(counts=counts)
        return counts


_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _digest(tensors: Mapping[str, torch.Tensor]) -> int:
    """32 bits of all bits. Each tensor is summed up where it lies: a checksum of its bytes takes
    seconds for a billion parameters."""
    names = sorted(tensors)
    whole = (tensors[name].detach().contiguous() for name in names)
    sums = [each.view(_WHOLE[each.element_size()]).sum(dtype=torch.int64) for each in whole]
    digest = 0
    for name, value in zip(names, torch.stack(sums).tolist(), strict=True):
        digest = zlib.crc32(f"{name} {value}".encode(), digest)
    return digest


def _replica(values: Mapping[str, str], config: DiLoCoConfig) -> int:
    said = values.get(variables.REPLICA) or ""
    if not said.isdigit() or int(said) >= config.replicas:
        raise UsageError(
            f"{variables.REPLICA} is {said!r}; expected a number below {config.replicas}, the"
            " replicas.",
            hint="Start it with `harness train EXP --replicas N -- CMD`.",
            code="no_replica",
        )
    return int(said)


def _lighthouse(values: Mapping[str, str]) -> str:
    said = values.get(variables.LIGHTHOUSE)
    if not said:
        raise UsageError(
            f"{variables.LIGHTHOUSE} is not set: no lighthouse tells the replicas of each other.",
            hint="Start it with `harness train EXP --replicas N -- CMD`.",
            code="no_replica",
        )
    return said
