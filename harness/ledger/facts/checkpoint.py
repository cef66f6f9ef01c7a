"""Checkpoints: recorded by content hash, and removed from the disk by `harness gc`."""

from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.domain.statuses import FINAL_RUNS, ExperimentStatus
from harness.errors import NotFoundError, RefusedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Note,
    State,
    existing,
    from_body,
    log,
    without,
)
from harness.ledger.facts.experiment import find_experiment
from harness.ledger.facts.run import find_run
from harness.ledger.schema import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Table,
    keys,
    log_columns,
    optional,
    required,
)


@dataclass(frozen=True, kw_only=True)
class CheckpointRecorded(Fact):
    KIND: ClassVar[str] = "checkpoint_recorded"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path"})
    SPOOLED: ClassVar[bool] = True
    experiment: str
    run: str
    checkpoint: str  # content hash, of a file or of a folder's sorted (path, hash) list
    path: str  # where it lay, relative to the project; a hint, never trusted
    bytes: int
    epoch: int | None
    final: bool  # the one that evaluations use
    # Which of the run's checkpoint rows told of it, from 1: written only by the run's supervisor,
    # which found these bytes there. None for what was found after its death.
    told: int | None = None

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_run(state, body["experiment"], body["run"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        key = (body["experiment"], body["run"], body["checkpoint"])
        existing(state, fact, "runs", *key[:2])
        # Optional fields may be absent from the bytes of older facts.
        told = body.get("told")
        if state.get("checkpoints", *key) is None:
            state.insert("checkpoints", without(body, "told") | log(fact))
        else:  # the same content again: only where it lies and its part may have changed
            changes = {name: body[name] for name in ("path", "epoch", "final")}
            state.update("checkpoints", key, changes)
        if told is not None:
            _note_telling(state, (*key[:2], body["path"]), told, body["checkpoint"])


def _note_telling(state: State, key: tuple[str, str, str], told: int, content: str) -> None:
    """Of each path its newest telling counts."""
    known = state.get("tellings", *key)
    if known is None:
        names = dict(zip(("experiment", "run", "path"), key, strict=True))
        state.insert("tellings", names | {"told": told, "checkpoint": content})
    elif told >= known["told"]:
        state.update("tellings", key, {"told": told, "checkpoint": content})


@dataclass(frozen=True, kw_only=True)
class Checkpoint(CheckpointRecorded):
    at: str

    @property
    def id(self) -> str:
        return self.checkpoint


@dataclass(frozen=True, kw_only=True)
class CheckpointRemoved(Note):
    """`harness gc` removes a recorded checkpoint's files; the record stays."""

    # Written before the files go: after a kill in between, the next gc removes the rest. The other
    # way round, a gate would find evidence missing and no record of why.
    KIND: ClassVar[str] = "checkpoint_removed"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path"})
    experiment: str
    run: str
    checkpoint: str  # content hash, as recorded
    path: str  # what is removed: the checkpoint or the Checkpointer's folder that holds it
    sha256: str  # content hash of `path`
    bytes: int  # of `path`
    by: str

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        """Never of an open run, and the final one only of a discarded experiment."""
        run = find_run(state, body["experiment"], body["run"])
        name = f"{body['experiment']}/{body['run']}"
        row = state.get("checkpoints", body["experiment"], body["run"], body["checkpoint"])
        if row is None:
            raise NotFoundError(
                f"{name} has no checkpoint {body['checkpoint'][:12]}.",
                hint=f"`harness experiment show {body['experiment']}` lists them.",
            )
        status = find_experiment(state, body["experiment"])["status"]
        needed = row["final"] and status != ExperimentStatus.DISCARDED
        if run["status"] not in FINAL_RUNS or needed:
            raise RefusedError(
                f"The checkpoint {body['checkpoint'][:12]} of {name} is needed: the run is"
                f" {run['status']}, the experiment {status}"
                + (", and this is its final one." if row["final"] else "."),
                hint="Leave it where it is.",
                code="checkpoint_needed",
            )


Table(
    "checkpoints",
    *keys(TEXT, "experiment", "run", "checkpoint"),
    *required(TEXT, "path"),
    *required(INTEGER, "bytes"),
    *optional(INTEGER, "epoch"),
    *required(BOOLEAN, "final"),
    *log_columns(),
)

Table(
    "tellings",
    *keys(TEXT, "experiment", "run", "path"),
    *required(INTEGER, "told"),
    *required(TEXT, "checkpoint"),
)


class CheckpointLedger(LedgerPart):
    def checkpoints(self, experiment: str, run: str | None = None) -> list[Checkpoint]:
        """Oldest first."""
        of_run = "" if run is None else "AND run = :run"
        rows = self._rows(
            "SELECT * FROM checkpoints"
            f" WHERE experiment = :experiment {of_run} ORDER BY {OLDEST_FIRST}",
            experiment=experiment,
            run=run,
        )
        return [_record(row) for row in rows]

    def tellings(self, experiment: str, run: str) -> dict[str, tuple[int, str]]:
        """Path -> (row, content hash): the newest telling that the run's supervisor hashed."""
        query = "SELECT * FROM tellings WHERE experiment = :experiment AND run = :run"
        rows = self._rows(query, experiment=experiment, run=run)
        return {row["path"]: (row["told"], row["checkpoint"]) for row in rows}

    def first_with_checkpoint(self, content: str) -> Checkpoint | None:
        """The earliest record of these weights, whichever run left them."""
        return next(iter(self.with_checkpoint(content)), None)

    def with_checkpoint(self, content: str) -> list[Checkpoint]:
        """Every record of these weights, oldest first."""
        query = f"SELECT * FROM checkpoints WHERE checkpoint = :content ORDER BY {OLDEST_FIRST}"
        return [_record(row) for row in self._rows(query, content=content)]

    def removed_checkpoints(self, experiment: str) -> list[tuple[CheckpointRemoved, str]]:
        """What `harness gc` removed of an experiment, oldest first, each with its time."""
        removed = self._notes(CheckpointRemoved)
        return [(fact, at) for fact, at in removed if fact.experiment == experiment]


def _record(row: dict[str, Any]) -> Checkpoint:
    return from_body(Checkpoint, without(row, "writer", "seq"))


FACTS: tuple[type[Fact], ...] = (CheckpointRecorded, CheckpointRemoved)
