"""Runs: registered before they are launched, started, ended, resumed; and what detectors said of
them."""

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, ClassVar

from harness.domain.findings import Finding
from harness.domain.grade import OPEN, Caller, next_job, weakest
from harness.domain.ids import run_id, run_number
from harness.domain.late import dataclass
from harness.domain.records import Run
from harness.domain.statuses import (
    FINAL_RUNS,
    ExperimentStatus,
    RunStatus,
    SandboxKind,
    require_run_transition,
)
from harness.errors import NotFoundError, UsageError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Readers,
    Row,
    Rows,
    State,
    Transaction,
    existing,
    finite,
    first_finding,
    from_body,
    listed,
    log,
    next_number,
    read_findings,
    require_new,
    require_spelled,
    without,
    word,
)
from harness.ledger.facts.experiment import (
    ExperimentMoved,
    find_experiment,
    require_open,
    summarise,
)
from harness.ledger.facts.parts import named, said
from harness.ledger.schema import (
    FLOAT,
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
from harness.ledger.state import SqlState

_PARTS = ("data", "environment")


@dataclass(frozen=True, kw_only=True)
class RunRegistered(Fact):
    """Written before anything is launched, so that every launch is visible."""

    KIND: ClassVar[str] = "run_registered"
    EXACT: ClassVar[frozenset[str]] = frozenset({"argv", "environment"})
    MAKES: ClassVar[tuple[str, ...]] = ("experiment", "run")
    ROWS: ClassVar[Rows] = Rows.OWN
    experiment: str
    run: str
    seed: int
    attempt: int  # 1 for the first run of this seed, then 2, ...
    argv: list[str]
    code: str  # hash of the code snapshot's manifest (code.json)
    data: dict[str, str]  # split name -> hash of its file
    environment: dict[str, Any]  # as data: in full, or {same: HASH} of what an earlier fact says
    sandbox: str
    token: str  # SHA-256 of the run's link token; the token itself is only in the training process
    session: str | None = None
    caller: str | None = None  # where the command came from: domain.grade.Caller as text
    config: str | None = None  # SHA-256 of the experiment's config.yaml then, kept in the vault

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_spelled(run_number, body["run"])
        require_open(find_experiment(state, body["experiment"]))
        require_new(state, "runs", body["experiment"], body["run"])
        word(SandboxKind, body["sandbox"], "A run's sandbox")

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "experiments", body["experiment"])
        row = {
            **without(body, "run"),
            **{name: said(state, fact, body[name]) for name in _PARTS},
            "id": body["run"],
            "number": run_number(body["run"]),
            "status": RunStatus.PENDING.value,
            "registered_at": fact.at,
            **{name: {} for name in ("supervisor", "files", "resources")},
            "reason": "",
            "rows": 0,
            "findings": [],
        }
        state.insert("runs", row)


def local_job(identity: dict[str, Any]) -> dict[str, Any]:
    """The job of a run that is a process of this machine, by its identity."""
    return {"launcher": "local", "handle": identity}


@dataclass(frozen=True, kw_only=True)
class RunStarted(Fact):
    KIND: ClassVar[str] = "run_started"
    EXACT: ClassVar[frozenset[str]] = frozenset({"job", "supervisor"})
    SPOOLED: ClassVar[bool] = True
    experiment: str
    run: str
    job: dict[str, Any]  # {launcher, handle}: who launched it, and what finds it there again
    supervisor: dict[str, Any]  # identity of the process that watches it

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _require_move(state, body, RunStatus.RUNNING)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        before = existing(state, fact, "runs", *_key(body))
        changes = {
            "job": next_job(before["job"], body["job"]),
            "supervisor": body["supervisor"],
            "status": RunStatus.RUNNING.value,
            "started_at": fact.at,
        }
        state.update("runs", _key(body), changes)


@dataclass(frozen=True, kw_only=True)
class RunResumed(Fact):
    """A run that ended without completing is launched again in its own folder."""

    KIND: ClassVar[str] = "run_resumed"
    EXACT: ClassVar[frozenset[str]] = frozenset({"environment"})
    experiment: str
    run: str
    attempt: int  # of its seed
    environment: dict[str, Any]
    session: str | None = None
    caller: str | None = None

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_open(find_experiment(state, body["experiment"]))
        _require_move(state, body, RunStatus.PENDING)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        before = existing(state, fact, "runs", *_key(body))
        # Rows, seconds and resources stay: they count for all attempts, as the weakest caller does.
        changes: Body = {name: body[name] for name in ("attempt", "session")}
        changes["environment"] = said(state, fact, body["environment"])
        callers = (Caller.read(before["caller"]), Caller.read(body.get("caller")))
        changes["caller"] = str(weakest(*callers))
        changes |= {"status": RunStatus.PENDING.value, "job": None, "files": {}, "reason": ""}
        state.update("runs", _key(body), changes | {"ended_at": None, "exit_code": None})


@dataclass(frozen=True, kw_only=True)
class RunEnded(Fact):
    KIND: ClassVar[str] = "run_ended"
    SPOOLED: ClassVar[bool] = True
    ROWS: ClassVar[Rows] = Rows.OWN
    READ: ClassVar[Readers] = {"findings": read_findings}
    experiment: str
    run: str
    status: str  # completed, failed, killed, lost, cancelled
    exit_code: int | None
    reason: str  # one sentence
    seconds: float | None  # of all its attempts
    rows: int  # in metrics.jsonl
    files: dict[str, str] = field(default_factory=dict)  # artifact -> hash at the end of the run
    findings: Sequence[Finding] = ()
    resources: dict[str, Any] = field(default_factory=dict)  # figure -> {peak, mean}

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        after: RunStatus = word(RunStatus, body["status"], "A run's status")
        _require_move(state, body, after)
        if after not in FINAL_RUNS:
            raise UsageError(
                f"A run does not end as {after}.",
                hint="Use completed, failed, killed, lost or cancelled.",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "runs", *_key(body))
        changes = without(body, "experiment", "run") | {"ended_at": fact.at}
        state.update("runs", _key(body), changes | {"seconds": finite(body["seconds"])})
        experiment = existing(state, fact, "experiments", body["experiment"])
        # A verdict says more than a run's end: once there is one, its first finding stays.
        if experiment["summary"]["verdict"] is None:
            shortfall = first_finding(body["findings"])
            if shortfall is None and body["status"] != RunStatus.COMPLETED:
                shortfall = f"{body['run']} {body['status']}: {body['reason']}"
            summarise(state, experiment, shortfall=shortfall)


@dataclass(frozen=True, kw_only=True)
class AlarmRaised(Fact):
    """A detector's alarm, during the run or when its rows were read again after its supervisor
    died."""

    KIND: ClassVar[str] = "alarm_raised"
    SPOOLED: ClassVar[bool] = True
    experiment: str
    run: str
    alarm: dict[str, Any]  # as detectors.Alarm.plain gives it

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_run(state, *_key(body))

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "runs", *_key(body))
        state.insert("alarms", body | log(fact))


@dataclass(frozen=True, kw_only=True)
class RaisedAlarm(AlarmRaised):
    at: str


Table(
    "runs",
    *keys(TEXT, "experiment", "id"),
    *required(INTEGER, "number", "seed", "attempt", "rows"),
    *required(TEXT, "status", "code", "sandbox", "token", "registered_at", "reason"),
    *optional(TEXT, "session", "caller", "config", "started_at", "ended_at"),
    *required(JSON, "argv", "data", "environment", "supervisor"),
    *required(JSON, "files", "findings", "resources"),
    *optional(JSON, "job"),
    *optional(INTEGER, "exit_code"),
    *optional(FLOAT, "seconds"),
    index("runs_status", "status"),
)

Table(
    "alarms",
    *log_columns(key=True),
    *required(TEXT, "experiment", "run"),
    *required(JSON, "alarm"),
    index("alarms_experiment", "experiment", "run"),
)


def find_run(state: State, experiment: str, run: str) -> Row:
    """Raises NotFoundError."""
    find_experiment(state, experiment)
    row = state.get("runs", experiment, run)
    if row is None:
        raise NotFoundError(
            f"{experiment} has no run {run!r}.",
            hint=f"`harness experiment show {experiment}` lists its runs.",
        )
    return row


def _key(body: Body) -> tuple[str, str]:
    return body["experiment"], body["run"]


def _require_move(state: State, body: Body, after: RunStatus) -> None:
    row = find_run(state, *_key(body))
    require_run_transition(f"{row['experiment']}/{row['id']}", RunStatus(row["status"]), after)


def _record(row: Row, summary: Body) -> Run:
    """`summary` is the experiment's: a plain session that was seen lowers all its runs."""
    values = {part.name: row[part.name] for part in fields(Run)}
    if summary.get("open_session"):
        values["caller"] = str(OPEN)
    values |= {
        "status": RunStatus(row["status"]),
        "argv": tuple(row["argv"]),
        "findings": read_findings(row["findings"]),
    }
    return Run(**values)


def _found(state: State, experiment: str, run: str) -> Run:
    row = find_run(state, experiment, run)
    return _record(row, find_experiment(state, experiment)["summary"])


_RUNS = (
    "SELECT runs.*, experiments.summary FROM runs"
    " JOIN experiments ON experiments.id = runs.experiment"
)
_UNENDED = listed((RunStatus.PENDING, RunStatus.RUNNING))
_OF_IT = "experiment = :experiment"
_OF_SEED = f"{_OF_IT} AND seed = :seed"
_OF_PLAN = "SELECT id FROM experiments WHERE plan = :plan"


class RunLedger(LedgerPart):
    def run(self, experiment: str, run: str) -> Run:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            return _found(SqlState(connection), experiment, run)

    def runs(self, experiment: str) -> list[Run]:
        of_it = "runs.experiment = :experiment ORDER BY runs.number"
        return self._read(f"{_RUNS} WHERE {of_it}", experiment=experiment)

    def open_runs(self) -> list[Run]:
        """Those that are pending or running, by (time of registration, experiment, number)."""
        order = "runs.registered_at, runs.experiment, runs.number"
        return self._read(f"{_RUNS} WHERE runs.status IN {_UNENDED} ORDER BY {order}")

    def _read(self, query: str, **values: Any) -> list[Run]:
        return [_record(row, row["summary"]) for row in self._rows(query, **values)]

    def training_seconds(self, plan: str) -> float:
        """Seconds of training by all ended runs under the plan, however they ended."""
        query = f"SELECT sum(seconds) FROM runs WHERE experiment IN ({_OF_PLAN})"
        return float(self._value(query, plan=plan) or 0.0)

    def alarms(self, experiment: str, run: str | None = None) -> list[RaisedAlarm]:
        """What the detectors said, oldest first; of one run in the order of its rows."""
        of_run = "" if run is None else "AND run = :run"
        query = f"SELECT * FROM alarms WHERE {_OF_IT} {of_run} ORDER BY {OLDEST_FIRST}"
        rows = self._rows(query, experiment=experiment, run=run)
        return [from_body(RaisedAlarm, without(row, "writer", "seq")) for row in rows]

    def register_run(self, *, experiment: str, seed: int, **fields: Any) -> Run:
        """A run before its launch, with the next id and attempt. An open or judged experiment
        becomes running. `fields`: the others of RunRegistered."""
        with self.transaction() as writer:
            before = find_experiment(writer.state, experiment)
            of_it: dict[str, Any] = {"experiment": experiment}
            run = run_id(next_number(writer, "runs", "number", _OF_IT, **of_it))
            # Read under the write lock that the transaction holds: no other process can take the
            # same id or attempt.
            same_seed = f"SELECT count(*) FROM runs WHERE {_OF_SEED}"
            attempt = int(writer.connection.value(same_seed, **of_it, seed=seed)) + 1
            fields["argv"] = list(fields["argv"])
            fields |= {name: named(writer.state, fields[name]) for name in _PARTS}
            writer.append(
                RunRegistered(experiment=experiment, run=run, seed=seed, attempt=attempt, **fields)
            )
            _set_running(writer, before, f"{run} was registered")
            return _found(writer.state, experiment, run)

    def resume_run(
        self,
        *,
        experiment: str,
        run: str,
        environment: dict[str, Any],
        session: str | None,
        caller: str | None = None,
    ) -> Run:
        """Before an ended run is launched again, as its seed's next attempt."""
        with self.transaction() as writer:
            before = find_experiment(writer.state, experiment)
            found = find_run(writer.state, experiment, run)
            own = {"experiment": experiment, "seed": found["seed"]}
            writer.append(
                RunResumed(
                    experiment=experiment,
                    run=run,
                    attempt=next_number(writer, "runs", "attempt", _OF_SEED, **own),
                    environment=named(writer.state, environment),
                    session=session,
                    caller=caller,
                )
            )
            _set_running(writer, before, f"{run} was resumed")
            return _found(writer.state, experiment, run)


def _set_running(writer: Transaction, experiment: Row, why: str) -> None:
    if experiment["status"] in (ExperimentStatus.OPEN, ExperimentStatus.JUDGED):
        status = ExperimentStatus.RUNNING.value
        writer.append(ExperimentMoved(experiment=experiment["id"], status=status, why=why))


FACTS: tuple[type[Fact], ...] = (RunRegistered, RunStarted, RunResumed, RunEnded, AlarmRaised)
