"""Models of training programs: registered, evaluated, observed in shadow, moved and served.

A model is a checkpoint that a validated result brought; its id is the checkpoint's content hash.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.domain.late import Late, dataclass
from harness.domain.models import ModelState, require_model_transition
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Readers,
    Row,
    State,
    existing,
    from_body,
    log,
    next_number,
    read_interval,
    tail_number,
)
from harness.ledger.facts.program import require_running
from harness.ledger.schema import (
    INTEGER,
    JSON,
    TEXT,
    Table,
    index,
    keys,
    log_columns,
    optional,
    required,
)

_SHORTEST = 8
"""Characters of a model's id that a person has to type."""


@dataclass(frozen=True, kw_only=True)
class ModelRegistered(Fact):
    KIND: ClassVar[str] = "model_registered"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path", "base"})
    model: str
    experiment: str
    run: str
    profile: str
    path: str  # relative to the project; a hint, never trusted
    format: str
    base: dict[str, Any]  # id, family, path, sha256 of the base model

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_running(state, body)
        if state.get("checkpoints", body["experiment"], body["run"], body["model"]) is None:
            raise RefusedError(
                f"{body['experiment']}/{body['run']} has no checkpoint {body['model'][:12]}.",
                hint="Record the checkpoint before the model.",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        """A second run that made the same bytes adds nothing: its judgement names them."""
        existing(state, fact, "runs", body["experiment"], body["run"])
        if state.get("models", body["model"]) is None:
            row = {"id": body["model"], "profile": body["profile"], "record": body}
            row |= {"state": ModelState.REGISTERED.value, "since": fact.at}
            state.insert("models", row | log(fact))


@dataclass(frozen=True, kw_only=True)
class Model(ModelRegistered):
    """A model with the state that its moves led to."""

    state: ModelState
    since: str
    """When it came into its state."""
    at: str

    @property
    def id(self) -> str:
        return self.model


class _AboutAModel(Fact):
    """A fact that is kept with its model."""

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _find_model(state, body["model"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "models", body["model"])
        number = tail_number(body["evaluation"]) if "evaluation" in body else None
        row = {"model": body["model"], "kind": fact.kind, "number": number, "record": body}
        state.insert("model_records", row | {"hash": fact.hash} | log(fact))


@dataclass(frozen=True, kw_only=True)
class ModelEvaluated(_AboutAModel):
    KIND: ClassVar[str] = "model_evaluated"
    EXACT: ClassVar[frozenset[str]] = frozenset({"benchmark"})
    evaluation: str  # "me-0001", from the ledger
    model: str
    against: str  # "base", or the content hash of the model that was the baseline
    benchmark: dict[str, Any]  # sha256, rows, evaluator
    mode: str  # prompt_assisted, reduced_prompt
    verdict: str  # PASS, FAIL, INCONCLUSIVE
    reason: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    interval: Sequence[float] | None  # 95%, paired bootstrap of the difference over rows
    margin: float | None  # mean of the candidate's margins, where the evaluator gives them
    n: int
    seed: int
    evidence: dict[str, str]  # name -> hash of all that was read, and of the evaluator's code
    problems: Sequence[dict[str, Any]] = ()
    sandbox: str | None = None  # that the evaluator ran in; None for an imported evaluation
    caller: str | None = None  # where the command came from: domain.grade.Caller as text
    joint: dict[str, Any] | None = None  # over the approved seeds: models, delta, p, tries


@dataclass(frozen=True, kw_only=True)
class ModelEvaluation(ModelEvaluated):
    READ: ClassVar[Readers] = {"interval": read_interval, "problems": tuple}
    interval: tuple[float, float] | None
    at: str
    hash: str  # of the fact

    @property
    def id(self) -> str:
        return self.evaluation

    @property
    def subject(self) -> tuple[str, str, str]:
        """What two evaluations share when the later one replaces the earlier: benchmark, mode and
        baseline. A win over a poor model undoes no failure against the base."""
        return str(self.benchmark["sha256"]), self.mode, self.against


@dataclass(frozen=True, kw_only=True)
class ShadowObserved(_AboutAModel):
    """One answer of a model that ran beside the deployed one and was not used."""

    KIND: ClassVar[str] = "shadow_observed"
    model: str
    outcome: str  # accepted, rejected, timed_out, failed, invalid_output
    by: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ShadowObservation(ShadowObserved):
    at: str
    hash: str  # of the fact


@dataclass(frozen=True, kw_only=True)
class ModelMoved(_AboutAModel):
    KIND: ClassVar[str] = "model_moved"
    model: str
    before: str
    after: str
    why: str
    by: str
    checks: Sequence[dict[str, Any]]  # {constraint, actual, threshold, passed}
    evidence: dict[str, str]  # name -> hash of every fact and file that the checks read
    decision: str | None  # the person's

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        row = _find_model(state, body["model"])
        if body["before"] != row["state"]:
            raise RefusedError(
                f"Model {body['model'][:12]} is {row['state']} by now, not {body['before']}.",
                hint="Look at `harness posttrain status`, then decide again.",
                code="model_moved",
            )
        require_model_transition(
            body["model"], ModelState(row["state"]), ModelState(body["after"])
        )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        super().apply(state, fact, body)
        # Rejected is final, also on replay: in the merged facts of two clones a move may follow a
        # rejection that its writer had not seen.
        row = state.get("models", body["model"])
        if row is not None and row["state"] != ModelState.REJECTED:
            state.update("models", (body["model"],), {"state": body["after"], "since": fact.at})


@dataclass(frozen=True, kw_only=True)
class ModelMove(ModelMoved):
    READ: ClassVar[Readers] = {"before": ModelState, "after": ModelState, "checks": tuple}
    before: ModelState
    after: ModelState
    at: str


@dataclass(frozen=True, kw_only=True)
class ModelServed(Fact):
    """The pointer that `posttrain serve-path` resolves, for one profile."""

    KIND: ClassVar[str] = "model_served"
    profile: str
    model: str | None  # None: nothing is served
    before: str | None
    how: str  # deploy, rollback, clear
    why: str
    by: str
    decision: str | None

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        if body["model"] is None:
            return
        row = _find_model(state, body["model"])
        if row["state"] != ModelState.DEPLOYED or row["profile"] != body["profile"]:
            raise RefusedError(
                f"Model {body['model'][:12]} is {row['state']} for {row['profile']}; only a"
                " deployed one is served.",
                hint="Promote it first: `harness posttrain promote`.",
                code="not_deployed",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        state.insert("servings", {"profile": body["profile"], "record": body} | log(fact))


@dataclass(frozen=True, kw_only=True)
class Serving(ModelServed):
    """What was served from a time on."""

    at: str


@dataclass(frozen=True, kw_only=True)
class ModelHistory(Late):
    """All that was recorded about one model, oldest first."""

    evaluations: tuple[ModelEvaluation, ...] = ()
    observations: tuple[ShadowObservation, ...] = ()
    moves: tuple[ModelMove, ...] = ()


Table(
    "models",
    *keys(TEXT, "id"),
    *required(TEXT, "profile", "state", "since"),
    *required(JSON, "record"),
    *log_columns(),
)

Table(
    "model_records",  # evaluations, shadow observations and moves of models
    *log_columns(key=True),
    *required(TEXT, "model", "kind"),
    *optional(INTEGER, "number"),  # of an evaluation
    *required(TEXT, "hash"),
    *required(JSON, "record"),
    index("model_records_model", "model", "kind"),
    index("model_records_number", "number"),
)

Table(
    "servings",
    *log_columns(key=True),
    *required(TEXT, "profile"),
    *required(JSON, "record"),
    index("servings_profile", "profile", "at"),
)


def _find_model(state: State, identifier: str) -> Row:
    row = state.get("models", identifier)
    if row is None:
        raise _no_model(f"There is no model {identifier[:12]!r}.")
    return row


def _no_model(message: str) -> NotFoundError:
    return NotFoundError(message, hint="`harness posttrain status` lists the models.")


class ModelLedger(LedgerPart):
    """Lists are oldest first."""

    def models(self, *, experiment: str | None = None) -> list[Model]:
        every = map(_model, self._rows(f"SELECT * FROM models ORDER BY {OLDEST_FIRST}"))
        return [model for model in every if experiment is None or model.experiment == experiment]

    def model(self, identifier: str) -> Model:
        """By its content hash or a prefix of 8 characters or more. Raises NotFoundError, or
        UsageError when the prefix is ambiguous."""
        length = len(identifier)
        query = "SELECT * FROM models WHERE substr(id, 1, :length) = :start LIMIT 2"
        rows = []
        if length >= _SHORTEST:
            rows = self._rows(query, length=length, start=identifier)
        if len(rows) > 1:
            raise UsageError(
                f"Several models begin with {identifier!r}.", hint="Give more of the id."
            )
        if not rows:
            raise _no_model(
                f"There is no model {identifier!r}; give at least {_SHORTEST} characters of its id."
            )
        return _model(rows[0])

    def model_history(self, model: str) -> ModelHistory:
        query = f"SELECT * FROM model_records WHERE model = :model ORDER BY {OLDEST_FIRST}"
        rows = self._rows(query, model=model)
        of_kind = {
            kind.KIND: [row for row in rows if row["kind"] == kind.KIND]
            for kind in (ModelEvaluated, ShadowObserved, ModelMoved)
        }
        return ModelHistory(
            evaluations=tuple(_evaluation(row) for row in of_kind[ModelEvaluated.KIND]),
            observations=tuple(
                from_body(ShadowObservation, row["record"], at=row["at"], hash=row["hash"])
                for row in of_kind[ShadowObserved.KIND]
            ),
            moves=tuple(
                from_body(ModelMove, row["record"], at=row["at"])
                for row in of_kind[ModelMoved.KIND]
            ),
        )

    def servings(self, profile: str) -> list[Serving]:
        """The pointer's whole history; the last one is what is served now."""
        query = f"SELECT * FROM servings WHERE profile = :profile ORDER BY {OLDEST_FIRST}"
        rows = self._rows(query, profile=profile)
        return [from_body(Serving, row["record"], at=row["at"]) for row in rows]

    def record_model_evaluation(self, **fields: Any) -> ModelEvaluation:
        """`fields`: those of ModelEvaluated without evaluation."""
        with self.transaction() as writer:
            identifier = f"me-{next_number(writer, 'model_records'):04d}"
            stored = writer.append(ModelEvaluated(evaluation=identifier, **fields))
            row = writer.state.get("model_records", stored.writer, stored.seq)
            assert row is not None
            return _evaluation(row)


def _model(row: Row) -> Model:
    more = {"state": ModelState(row["state"]), "since": row["since"], "at": row["at"]}
    return from_body(Model, row["record"], **more)


def _evaluation(row: Row) -> ModelEvaluation:
    return from_body(ModelEvaluation, row["record"], at=row["at"], hash=row["hash"])


FACTS: tuple[type[Fact], ...] = (
    ModelRegistered,
    ModelEvaluated,
    ShadowObserved,
    ModelMoved,
    ModelServed,
)
