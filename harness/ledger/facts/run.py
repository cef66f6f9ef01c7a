"""Runs: registered before they are launched, started, ended, resumed; and what detectors said of
them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import sqlalchemy as sa

from harness.domain.findings import Finding
from harness.domain.grade import OPEN, Caller, weakest
from harness.domain.ids import run_id, run_number
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
    from_body,
    log,
    next_number,
    oldest_first,
    read_findings,
    require_new,
    require_spelled,
    without,
    word,
)
from harness.ledger.facts.experiment import (
    ExperimentMoved,
    experiments,
    find_experiment,
    require_open,
    summarise,
)
from harness.ledger.schema import JSON, log_columns, metadata, required
from harness.ledger.state import SqlState


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
    environment: dict[str, Any]
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
            "id": body["run"],
            "number": run_number(body["run"]),
            "status": RunStatus.PENDING.value,
            "registered_at": fact.at,
            "supervisor": {},
            "reason": "",
            "rows": 0,
            "files": {},
            "findings": [],
            "resources": {},
        }
        state.insert("runs", row)


def local_job(identity: dict[str, Any]) -> dict[str, Any]:
    """The job of a run that is a process of this machine: pid, boot, started."""
    return {"launcher": "local", "handle": identity}


@dataclass(frozen=True, kw_only=True)
class RunStarted(Fact):
    KIND: ClassVar[str] = "run_started"
    EXACT: ClassVar[frozenset[str]] = frozenset({"job", "supervisor"})
    SPOOLED: ClassVar[bool] = True
    experiment: str
    run: str
    job: dict[str, Any]  # {launcher, handle}: who launched it, and what finds it there again
    supervisor: dict[str, Any]  # identity of the process that watches it: pid, boot, started

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _require_move(state, body, RunStatus.RUNNING)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "runs", *_key(body))
        changes = {
            "job": body["job"],
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
        changes: Body = {name: body[name] for name in ("attempt", "environment", "session")}
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


runs = sa.Table(
    "runs",
    metadata,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    *required(sa.Integer, "number", "seed", "attempt"),
    *required(sa.Text, "status"),
    *required(JSON, "argv"),
    *required(sa.Text, "code"),
    *required(JSON, "data", "environment"),
    *required(sa.Text, "sandbox", "token"),
    sa.Column("session", sa.Text),
    sa.Column("caller", sa.Text),
    sa.Column("config", sa.Text),
    *required(sa.Text, "registered_at"),
    sa.Column("job", JSON),
    *required(JSON, "supervisor"),
    sa.Column("started_at", sa.Text),
    sa.Column("ended_at", sa.Text),
    sa.Column("exit_code", sa.Integer),
    *required(sa.Text, "reason"),
    sa.Column("seconds", sa.Float),
    *required(sa.Integer, "rows"),
    *required(JSON, "files", "findings", "resources"),
    sa.Index("runs_status", "status"),
)

alarms = sa.Table(
    "alarms",
    metadata,
    *log_columns(key=True),
    *required(sa.Text, "experiment", "run"),
    *required(JSON, "alarm"),
    sa.Index("alarms_experiment", "experiment", "run"),
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


def first_finding(plain: list[Body]) -> str | None:
    if not plain:
        return None
    return f"[{plain[0].get('code', '?')}] {plain[0].get('message', '')}".strip()


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


_RUNS = sa.select(runs, experiments.c.summary).join(
    experiments, experiments.c.id == runs.c.experiment
)


class RunLedger(LedgerPart):
    def run(self, experiment: str, run: str) -> Run:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            return _found(SqlState(connection), experiment, run)

    def runs(self, experiment: str) -> list[Run]:
        query = _RUNS.where(runs.c.experiment == experiment).order_by(runs.c.number)
        return [_record(row, row["summary"]) for row in self._rows(query)]

    def open_runs(self) -> list[Run]:
        """Those that are pending or running, by (time of registration, experiment, number)."""
        query = _RUNS.where(
            runs.c.status.in_([RunStatus.PENDING.value, RunStatus.RUNNING.value])
        ).order_by(runs.c.registered_at, runs.c.experiment, runs.c.number)
        return [_record(row, row["summary"]) for row in self._rows(query)]

    def training_seconds(self, plan: str) -> float:
        """Seconds of training by all ended runs under the plan, however they ended."""
        of_plan = sa.select(experiments.c.id).where(experiments.c.plan == plan)
        query = sa.select(sa.func.sum(runs.c.seconds)).where(runs.c.experiment.in_(of_plan))
        return float(self._scalar(query) or 0.0)

    def alarms(self, experiment: str, run: str | None = None) -> list[RaisedAlarm]:
        """What the detectors said, oldest first; of one run in the order of its rows."""
        query = sa.select(alarms).where(alarms.c.experiment == experiment)
        if run is not None:
            query = query.where(alarms.c.run == run)
        rows = self._rows(query.order_by(*oldest_first(alarms)))
        return [from_body(RaisedAlarm, without(row, "writer", "seq")) for row in rows]

    def register_run(self, *, experiment: str, seed: int, **fields: Any) -> Run:
        """A run before its launch, with the next id and attempt. An open or judged experiment
        becomes running. `fields`: the others of RunRegistered."""
        with self.transaction() as writer:
            before = find_experiment(writer.state, experiment)
            of_it = runs.c.experiment == experiment
            run = run_id(next_number(writer, runs.c.number, of_it))
            # Read under the write lock that the transaction holds: no other process can take the
            # same id or attempt.
            same_seed = sa.select(sa.func.count()).where(of_it, runs.c.seed == seed)
            attempt = int(writer.connection.execute(same_seed).scalar_one()) + 1
            fields["argv"] = list(fields["argv"])
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
            seed = find_run(writer.state, experiment, run)["seed"]
            of_seed = (runs.c.experiment == experiment, runs.c.seed == seed)
            writer.append(
                RunResumed(
                    experiment=experiment,
                    run=run,
                    attempt=next_number(writer, runs.c.attempt, *of_seed),
                    environment=environment,
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
