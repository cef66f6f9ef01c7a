"""Evaluations: looks at held-out rows, scores of checkpoints, and the verdicts of gates."""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.domain.findings import Finding
from harness.domain.grade import Caller, Grade, grade_of, was_elsewhere
from harness.domain.late import dataclass
from harness.domain.statuses import GateName, SandboxKind, Split, Tier, Verdict
from harness.errors import RefusedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    Body,
    Fact,
    LedgerPart,
    Readers,
    Row,
    Rows,
    State,
    existing,
    finite,
    first_finding,
    from_body,
    log,
    next_number,
    read_findings,
    read_interval,
    require_new,
    tail_number,
    word,
)
from harness.ledger.facts.experiment import find_experiment, summarise
from harness.ledger.facts.run import find_run
from harness.ledger.schema import INTEGER, JSON, TEXT, Table, index, keys, log_columns, required


@dataclass(frozen=True, kw_only=True)
class HeldOutQueried(Fact):
    """An evaluation that counts against the plan's query budget; written before it begins, so a
    killed one counts too."""

    KIND: ClassVar[str] = "held_out_queried"
    experiment: str
    split: str
    query: int

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])
        word(Split, body["split"], "A split")

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        experiment = existing(state, fact, "experiments", body["experiment"])
        state.insert("queries", {**body, "plan": experiment["plan"], **log(fact)})


@dataclass(frozen=True, kw_only=True)
class EvaluationRecorded(Fact):
    KIND: ClassVar[str] = "evaluation_recorded"
    SPOOLED: ClassVar[bool] = True
    ROWS: ClassVar[Rows] = Rows.WITH_CHILDREN
    READ: ClassVar[Readers] = {"findings": read_findings}
    experiment: str
    run: str
    seed: int
    split: str
    metric: str
    value: float | None  # None when the harness could not score: see findings
    n: int
    interval: Sequence[float] | None  # [low, high], 95%, over rows; see evaluation.intervals
    checkpoint: str
    code: str
    inputs: str
    labels: str
    scorer: str
    predictions: str | None
    query: int
    sandbox: str
    plan_version: int  # that began the comparison it belongs to
    baseline: float | None  # the trivial predictor's score on the same rows
    findings: Sequence[Finding] = ()
    caller: str | None = None  # where the command came from: domain.grade.Caller as text
    # That one call of predict took, the longer of the two; None when none ended well
    predict_seconds: float | None = None
    # Of the exact record in the vault, where the split's labels are nobody's: then value, interval,
    # baseline and seconds are not here, and `predictions` is a keyed hash
    sealed: str | None = None
    # Of the packages that predict could import, where its environment lies in the project: their
    # names and digests, in the vault's objects
    libraries: str | None = None

    @property
    def scored(self) -> bool:
        """Whether the harness could score; what the value is may be sealed."""
        return self.value is not None or self.sealed is not None

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_run(state, body["experiment"], body["run"])
        word(Split, body["split"], "A split")
        word(SandboxKind, body["sandbox"], "An evaluation's sandbox")

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        run = existing(state, fact, "runs", body["experiment"], body["run"])
        callers = [Caller.read(run["caller"]), Caller.read(body.get("caller"))]
        grade = grade_of(
            callers,
            [run["sandbox"]],
            [body["sandbox"]],
            elsewhere=was_elsewhere(run["job"]),
        )
        lowered = grade.codes
        row = {"experiment": body["experiment"], "split": body["split"], "record": body}
        state.insert("evaluations", row | {"not_isolated": lowered} | log(fact))
        experiment = existing(state, fact, "experiments", body["experiment"])
        evaluated, baselines = (experiment["summary"][name] for name in ("evaluated", "baseline"))
        seeds = dict(evaluated.get(body["split"], {}))
        seeds[str(body["seed"])] = {
            "value": finite(body["value"]),
            "sealed": body.get("sealed") is not None,
            "not_isolated": lowered,
        }
        baseline = finite(body["baseline"])
        if baseline is not None:
            baselines = {**baselines, body["split"]: baseline}
        evaluated = {**evaluated, body["split"]: seeds}
        summarise(state, experiment, evaluated=evaluated, baseline=baselines)


@dataclass(frozen=True, kw_only=True)
class Evaluation(EvaluationRecorded):
    READ: ClassVar[Readers] = {
        "split": Split,
        "value": finite,
        "baseline": finite,
        "predict_seconds": finite,
        "interval": read_interval,
        "findings": read_findings,
    }
    split: Split
    interval: tuple[float, float] | None
    findings: tuple[Finding, ...] = ()
    at: str
    grade: Grade
    """Of its caller and predict, of the run's callers and training, and of the sessions seen."""


@dataclass(frozen=True, kw_only=True)
class VerdictRecorded(Fact):
    KIND: ClassVar[str] = "verdict_recorded"
    MAKES: ClassVar[tuple[str, ...]] = ("verdict_id",)
    ROWS: ClassVar[Rows] = Rows.WITH_CHILDREN
    READ: ClassVar[Readers] = {"findings": read_findings}
    verdict_id: str  # "v-000001", from the ledger
    experiment: str
    gate: str
    verdict: str
    findings: Sequence[Finding]
    evidence: dict[str, str]  # name -> hash of everything the gate read
    # {metric, split, mean, spread, n_seeds, values, interval, not_isolated}
    score: dict[str, Any] | None
    tier: str | None  # the highest tier reached
    comparison: dict[str, Any] | None  # {against, difference, floor, better}
    # the first that the oracle named in result.md; never decides anything
    shortfall: str | None = None
    notes: Sequence[str] = ()  # what a reader noticed in the metrics; blocks nothing
    next_planned: str | None = None  # the first idea in next.md; never decides anything

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])
        word(GateName, body["gate"], "A gate")
        word(Verdict, body["verdict"], "A verdict")
        if body["tier"] is not None:
            word(Tier, body["tier"], "A tier")
        require_new(state, "verdicts", body["verdict_id"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        experiment = existing(state, fact, "experiments", body["experiment"])
        identifier = body["verdict_id"]
        row = {name: body[name] for name in ("experiment", "gate", "verdict")}
        row |= {"id": identifier, "number": tail_number(identifier), "record": body}
        state.insert("verdicts", row | log(fact))
        summary, score = experiment["summary"], body["score"] or {}
        split, mean = score.get("split", body["gate"]), finite(score.get("mean"))
        scores = dict(summary["scores"])
        if mean is not None:
            parts = {name: score.get(name) for name in ("n_seeds", "not_isolated", "metric")}
            scores[split] = {"mean": mean, **parts}
            # Into a column of its own, so that the search of the best is one index look-up.
            if split in set(Split):
                state.update("experiments", (experiment["id"],), {split: mean})
        verdict = {name: body[name] for name in ("gate", "verdict", "tier")} | {"id": identifier}
        # Optional fields may be absent from the bytes of older facts.
        planned = {"next_planned": body["next_planned"]} if "next_planned" in body else {}
        summarise(
            state,
            experiment,
            verdict=verdict,
            shortfall=_shortfall(body),
            scores=scores,
            comparison=_compared(body["comparison"]) or summary.get("comparison"),
            **planned,
        )


def _shortfall(body: Body) -> str | None:
    """What a PASS found are notes: they displace nothing that the oracle misses."""
    found, missed = first_finding(body["findings"]), body.get("shortfall")
    return (missed or found) if body["verdict"] == Verdict.PASS else (found or missed)


@dataclass(frozen=True, kw_only=True)
class RecordedVerdict(VerdictRecorded):
    """A verdict as the ledger holds it. Its `verdict_id` is empty for what a gate says of a decided
    experiment: that is shown, and not recorded."""

    READ: ClassVar[Readers] = {
        "verdict": Verdict,
        "tier": lambda tier: None if tier is None else Tier(tier),
        "findings": read_findings,
        "notes": tuple,
    }
    verdict: Verdict
    tier: Tier | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    at: str

    @property
    def id(self) -> str:
        return self.verdict_id


Table(
    "queries",
    *log_columns(key=True),
    *required(TEXT, "plan", "experiment", "split"),
    *required(INTEGER, "query"),
    index("queries_split", "plan", "split"),
)

Table(
    "evaluations",
    *log_columns(key=True),
    *required(TEXT, "experiment", "split"),
    *required(JSON, "record", "not_isolated"),
    index("evaluations_experiment", "experiment"),
)

Table(
    "verdicts",
    *keys(TEXT, "id"),
    *required(INTEGER, "number"),
    *required(TEXT, "experiment", "gate", "verdict"),
    *required(JSON, "record"),
    *log_columns(),
    index("verdicts_number", "number"),
    index("verdicts_experiment", "experiment", "number"),
)


def _compared(body: Body | None) -> Body | None:
    """What pages say of a verdict's comparison; None where it has none, or lacks a part."""
    names = ("against", "better", "comparisons")
    if body is None or not {*names, "difference", "p_corrected"} <= set(body):
        return None
    numbers = {name: finite(body[name]) for name in ("difference", "p_corrected")}
    named = {name: body[name] for name in names}
    more = {"no_longer": list(body.get("no_longer", ())), "labels": body.get("labels")}
    if body.get("parent") is not None:
        beside = finite(body["parent"].get("difference"))
        more["parent"] = {"against": body["parent"]["against"], "difference": beside}
    return named | numbers | more


def _grade(row: Row) -> Grade:
    """As it was recorded, lowered by a plain session that was seen, whenever that was."""
    grade = Grade.read(row["not_isolated"])
    return grade.and_session if row["summary"].get("open_session") else grade


class EvaluationLedger(LedgerPart):
    def evaluations(self, experiment: str, split: Split | None = None) -> list[Evaluation]:
        """Oldest first."""
        of_split = "" if split is None else "AND e.split = :split"
        rows = self._rows(
            "SELECT e.*, x.summary FROM evaluations AS e"
            " JOIN experiments AS x ON x.id = e.experiment"
            f" WHERE e.experiment = :experiment {of_split} ORDER BY e.at, e.writer, e.seq",
            experiment=experiment,
            split=split and Split(split).value,
        )
        return [
            from_body(Evaluation, row["record"], at=row["at"], grade=_grade(row)) for row in rows
        ]

    def queries(self, plan: str, split: Split) -> int:
        """How many evaluations of `split` were counted under a plan's name."""
        query = "SELECT count(*) FROM queries WHERE plan = :plan AND split = :split"
        return int(self._value(query, plan=plan, split=Split(split).value) or 0)

    def query_held_out(self, experiment: str, limit: int) -> int:
        """Record one held-out evaluation before it begins; returns its number under the plan.
        Raises RefusedError (query_budget_spent) beyond `limit`."""
        with self.transaction() as writer:
            plan = find_experiment(writer.state, experiment)["plan"]
            # Counted while the write lock is held: two processes cannot both take the last one.
            query = self.queries(plan, Split.HELD_OUT) + 1
            if query > limit:
                raise RefusedError(
                    f"{experiment}: all {limit} held-out evaluations of the plan are used.",
                    hint="A person may approve the plan with a larger oracle.queries.",
                    code="query_budget_spent",
                )
            split = Split.HELD_OUT.value
            writer.append(HeldOutQueried(experiment=experiment, split=split, query=query))
            return query

    def verdicts(
        self, experiment: str, gate: GateName | str | None = None
    ) -> list[RecordedVerdict]:
        """Oldest first."""
        query = f"SELECT * FROM verdicts WHERE {_of(gate)} ORDER BY number"
        rows = self._rows(query, experiment=experiment, gate=gate and str(gate))
        return [_verdict(row) for row in rows]

    def latest_verdict(
        self, experiment: str, gate: GateName | str | None = None
    ) -> RecordedVerdict | None:
        return self._last(_of(gate), experiment=experiment, gate=gate and str(gate))

    def newest_verdict(self) -> RecordedVerdict | None:
        """The verdict that was recorded last, of whatever experiment."""
        return self._last("TRUE")

    def record_verdict(self, **fields: Any) -> RecordedVerdict:
        """`fields`: those of VerdictRecorded without verdict_id. The status stays."""
        with self.transaction() as writer:
            identifier = f"v-{next_number(writer, 'verdicts'):06d}"
            writer.append(VerdictRecorded(verdict_id=identifier, **fields))
            row = writer.state.get("verdicts", identifier)
            assert row is not None
            return _verdict(row)

    def _last(self, where: str, **values: Any) -> RecordedVerdict | None:
        query = f"SELECT * FROM verdicts WHERE {where} ORDER BY number DESC LIMIT 1"
        rows = self._rows(query, **values)
        return _verdict(rows[0]) if rows else None


def _of(gate: GateName | str | None) -> str:
    """An experiment's verdicts, of one gate or of all."""
    return "experiment = :experiment" + ("" if gate is None else " AND gate = :gate")


def _verdict(row: Row) -> RecordedVerdict:
    return from_body(RecordedVerdict, row["record"], at=row["at"])


FACTS: tuple[type[Fact], ...] = (HeldOutQueried, EvaluationRecorded, VerdictRecorded)
