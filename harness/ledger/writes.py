"""Appending facts. One transaction a fact (or a group that belongs together): rules, bytes, state,
stale marks."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from harness.clock import Clock, iso, parse_iso
from harness.domain.facts import (
    ControlAccepted,
    DecisionRecorded,
    ExperimentMoved,
    ExperimentOpened,
    Fact,
    HeldOutQueried,
    PriorRecorded,
    RunRegistered,
    RunResumed,
    TamperingNoticed,
    VerdictRecorded,
)
from harness.domain.ids import experiment_id, run_id
from harness.domain.records import Decision, Experiment, Prior, RecordedVerdict, Run
from harness.domain.statuses import ExperimentStatus, Split
from harness.errors import LedgerDamagedError, LedgerError, RefusedError
from harness.ledger.anchors import Anchor, read_anchors, write_anchor
from harness.ledger.apply import apply
from harness.ledger.chain import FIRST_PREV, StoredFact, seal
from harness.ledger.creation import not_imported, require_anchored
from harness.ledger.database import Database
from harness.ledger.records import (
    decision_record,
    experiment_record,
    prior_record,
    run_record,
    verdict_record,
)
from harness.ledger.rules import find_experiment, find_run, require_allowed
from harness.ledger.schema import (
    decisions,
    experiments,
    facts,
    plans,
    priors,
    queries,
    runs,
    verdicts,
)
from harness.ledger.spool import drain, keep
from harness.ledger.staleness import mark_stale
from harness.ledger.state import SqlState
from harness.ledger.text_form import text_files

_INSERT = facts.insert().returning(facts.c.position)


class Writer:
    """One open write transaction: facts appended through it become visible together or not at
    all."""

    def __init__(self, connection: sa.Connection, *, writer: str, clock: Clock) -> None:
        self.connection = connection
        self.state = SqlState(connection)
        self._writer = writer
        self._clock = clock
        self._head = self._read_head()
        self.appended: list[StoredFact] = []

    def append(self, fact: Fact) -> StoredFact:
        """Raises TransitionError, NotFoundError, RefusedError or UsageError; then nothing of it is
        stored."""
        body = fact.body()
        require_allowed(self.state, fact.KIND, body)
        head = self._head
        sealed = seal(
            writer=self._writer,
            seq=head.seq + 1 if head else 1,
            prev=head.hash if head else FIRST_PREV,
            at=self._time(),
            kind=fact.KIND,
            body=body,
        )
        row = {
            name: getattr(sealed, name)
            for name in ("writer", "seq", "prev", "hash", "kind", "at", "data")
        }
        position = self.connection.execute(_INSERT, row).scalar_one()
        stored = StoredFact(**row, position=position)
        apply(self.state, stored)
        mark_stale(self.connection, stored)
        self._head = stored
        self.appended.append(stored)
        return stored

    def _read_head(self) -> StoredFact | None:
        query = (
            sa.select(facts)
            .where(facts.c.writer == self._writer)
            .order_by(facts.c.seq.desc())
            .limit(1)
        )
        row = self.connection.execute(query).mappings().first()
        return StoredFact(**row) if row is not None else None

    def _time(self) -> str:
        """Now; but never before a fact that is here already, and after every other writer's.

        So sorting by (time, writer, number) puts no fact before one that it may rest on, in any
        clone.
        """
        now = iso(self._clock.now())
        query = sa.select(facts.c.at, facts.c.writer).order_by(facts.c.at.desc()).limit(1)
        last = self.connection.execute(query).first()
        if last is None or now > last.at:
            return now
        foreign = sa.exists().where(facts.c.at == last.at, facts.c.writer != self._writer)
        if self.connection.execute(sa.select(foreign)).scalar():
            return iso(parse_iso(last.at) + timedelta(milliseconds=1))
        return str(last.at)


class LedgerWrites:
    """The writing half of `Ledger`."""

    _database: Database
    _clock: Clock
    _active: threading.local
    _restoring: bool
    _text: Path | None
    anchors: Path
    writer: str

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Append several facts as one step; nests. What was spooled comes first, the anchor after
        the commit."""
        active: Writer | None = getattr(self._active, "writer", None)
        if active is not None:
            yield active
            return
        with self._database.write() as connection:
            if self._restoring:
                require_anchored(connection, read_anchors(self.anchors), self._database.path)
            self.require_imported()
            writer = Writer(connection, writer=self.writer, clock=self._clock)
            self._active.writer = writer
            try:
                drained = drain(self._spool, connection, writer.append)
                yield writer
            finally:
                self._active.writer = None
        for path in drained:
            path.unlink(missing_ok=True)
        if writer.appended:
            last = writer.appended[-1]
            write_anchor(self.anchors, Anchor(writer=last.writer, seq=last.seq, hash=last.hash))

    def facts_wait(self) -> bool:
        """Whether the ledger is empty and the project brings facts as text: a clone, before they
        are imported."""
        if self._text is None:
            return False
        with self._database.read() as connection:
            empty = connection.execute(sa.select(facts.c.position).limit(1)).first() is None
        return empty and bool(text_files(self._text))

    def require_imported(self) -> None:
        """Raises NotFoundError (facts_not_imported) while facts wait: a fact of our own would take
        one of their ids."""
        if self._text is not None and self.facts_wait():
            raise not_imported(self._text)

    def append(self, fact: Fact) -> StoredFact:
        """Store one fact and its effect.

        Raises what `Writer.append` does, and LedgerError; a result that could not be stored because
        the ledger was busy or its disk full is kept in a file beside it and recorded at the next
        write.
        """
        try:
            with self.transaction() as writer:
                return writer.append(fact)
        except LedgerDamagedError:
            raise
        except LedgerError as error:
            raise keep(self._spool, fact, iso(self._clock.now()), error) from error

    @property
    def _spool(self) -> Path:
        return self._database.path.with_name("spool")

    def open_experiment(
        self,
        *,
        hypothesis: str,
        parent: str | None,
        by: str,
        session: str | None = None,
        reserve: Callable[[str], bool] | None = None,
        of_plan: bool = True,
    ) -> Experiment:
        """The next experiment. Its number is taken inside the transaction and never used again.

        `reserve` is called with each candidate id while the write lock is held: it makes the folder
        exclusively and returns False when there is one already, e.g. of a ledger that was lost;
        then the number is skipped. Without `of_plan` it is no experiment of the approved plan: a
        training program has budget and benchmark itself.
        """
        with self.transaction() as writer:
            number = _next(writer, experiments.c.number)
            while reserve is not None and not reserve(experiment_id(number)):
                number += 1
            latest = sa.select(plans.c.name, plans.c.version).order_by(*_newest(plans)).limit(1)
            plan = writer.connection.execute(latest).first() if of_plan else None
            identifier = experiment_id(number)
            writer.append(
                ExperimentOpened(
                    experiment=identifier,
                    plan=plan.name if plan else "",
                    plan_version=plan.version if plan else 0,
                    hypothesis=hypothesis,
                    parent=parent,
                    by=by,
                    session=session,
                )
            )
            return experiment_record(find_experiment(writer.state, identifier))

    def register_run(self, *, experiment: str, seed: int, **fields: Any) -> Run:
        """A run before its launch; id and attempt are allotted. An open or judged experiment
        becomes running.

        `fields`: argv, code, data, environment, sandbox, token, session (see RunRegistered).
        """
        with self.transaction() as writer:
            before = find_experiment(writer.state, experiment)
            of_it = runs.c.experiment == experiment
            number = _next(writer, runs.c.number, of_it)
            same_seed = sa.select(sa.func.count()).where(of_it, runs.c.seed == seed)
            attempt = int(writer.connection.execute(same_seed).scalar_one()) + 1
            fields["argv"] = list(fields["argv"])
            identifier = run_id(number)
            writer.append(
                RunRegistered(
                    experiment=experiment, run=identifier, seed=seed, attempt=attempt, **fields
                )
            )
            if before["status"] in (ExperimentStatus.OPEN, ExperimentStatus.JUDGED):
                why = f"{identifier} was registered"
                moved = ExperimentMoved(
                    experiment=experiment, status=ExperimentStatus.RUNNING.value, why=why
                )
                writer.append(moved)
            row = writer.state.get("runs", experiment, identifier)
            assert row is not None
            return run_record(row)

    def resume_run(
        self, *, experiment: str, run: str, environment: dict[str, Any], session: str | None
    ) -> Run:
        """A run that ended without completing, before it is launched again as its seed's next
        attempt."""
        with self.transaction() as writer:
            before, row = (
                find_experiment(writer.state, experiment),
                find_run(writer.state, experiment, run),
            )
            of_seed = sa.and_(runs.c.experiment == experiment, runs.c.seed == row["seed"])
            highest = sa.select(sa.func.max(runs.c.attempt)).where(of_seed)
            attempt = int(writer.connection.execute(highest).scalar_one()) + 1
            writer.append(
                RunResumed(
                    experiment=experiment,
                    run=run,
                    attempt=attempt,
                    environment=environment,
                    session=session,
                )
            )
            if before["status"] in (ExperimentStatus.OPEN, ExperimentStatus.JUDGED):
                why = f"{run} goes on"
                moved = ExperimentMoved(
                    experiment=experiment, status=ExperimentStatus.RUNNING.value, why=why
                )
                writer.append(moved)
            return run_record(find_run(writer.state, experiment, run))

    def move_experiment(self, experiment: str, status: ExperimentStatus, why: str) -> StoredFact:
        return self.append(
            ExperimentMoved(experiment=experiment, status=ExperimentStatus(status).value, why=why)
        )

    def record_verdict(self, **fields: Any) -> RecordedVerdict:
        """`fields`: those of VerdictRecorded without verdict_id. The experiment's status stays as
        it is."""
        with self.transaction() as writer:
            identifier = f"v-{_next(writer, verdicts.c.number):06d}"
            writer.append(VerdictRecorded(verdict_id=identifier, **fields))
            row = writer.state.get("verdicts", identifier)
            assert row is not None
            return verdict_record(row)

    def record_decision(self, **fields: Any) -> Decision:
        """`fields`: those of DecisionRecorded without decision."""
        with self.transaction() as writer:
            identifier = f"d-{_next(writer, decisions.c.number):04d}"
            writer.append(DecisionRecorded(decision=identifier, **fields))
            row = writer.state.get("decisions", identifier)
            assert row is not None
            return decision_record(row)

    def record_prior(self, **fields: Any) -> Prior:
        """`fields`: those of PriorRecorded without prior."""
        with self.transaction() as writer:
            identifier = f"p-{_next(writer, priors.c.number):04d}"
            writer.append(PriorRecorded(prior=identifier, **fields))
            row = writer.state.get("priors", identifier)
            assert row is not None
            return prior_record(row)

    def note_tampering(
        self, *, what: str, path: str, expected: str, actual: str, experiment: str | None = None
    ) -> StoredFact:
        """Something frozen or recorded is not what it was."""
        return self.append(
            TamperingNoticed(
                what=what, path=path, expected=expected, actual=actual, experiment=experiment
            )
        )

    def accept_control(self, *, sha256: str, files: int, by: str) -> StoredFact:
        """A person accepts the control files whose list has this digest."""
        return self.append(ControlAccepted(sha256=sha256, files=files, by=by))

    def query_held_out(self, experiment: str, limit: int) -> int:
        """Record one look at held-out before it is taken, and return its number: 1, 2, ... a plan.

        Raises RefusedError (query_budget_spent) when it would be beyond `limit`.
        """
        with self.transaction() as writer:
            plan, split = find_experiment(writer.state, experiment)["plan"], Split.HELD_OUT.value
            counted = sa.and_(queries.c.plan == plan, queries.c.split == split)
            query = (
                int(
                    writer.connection.execute(
                        sa.select(sa.func.count()).where(counted)
                    ).scalar_one()
                )
                + 1
            )
            if query > limit:
                raise RefusedError(
                    f"{experiment}: the plan allows {limit} looks at held-out and all of them are"
                    " used.",
                    hint="A person may approve the plan with a larger oracle.queries.",
                    code="query_budget_spent",
                )
            writer.append(HeldOutQueried(experiment=experiment, split=split, query=query))
            return query


def _next(writer: Writer, column: sa.Column[int], *where: sa.ColumnElement[bool]) -> int:
    return (
        int(writer.connection.execute(sa.select(sa.func.max(column)).where(*where)).scalar() or 0)
        + 1
    )


def _newest(table: sa.Table) -> tuple[Any, ...]:
    return (table.c.at.desc(), table.c.writer.desc(), table.c.seq.desc())
