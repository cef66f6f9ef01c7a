"""Reading the ledger. Lists are oldest first; each call sees one state, several inside `snapshot`
see the same."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa

from harness.domain.facts import (
    CheckpointRemoved,
    ControlAccepted,
    ExperimentMoved,
    LogImported,
    LoopEnded,
    TamperingNoticed,
)
from harness.domain.records import (
    ApprovedPlan,
    Checkpoint,
    Decision,
    Evaluation,
    Experiment,
    HandOff,
    Prior,
    RaisedAlarm,
    RecordedVerdict,
    Run,
    Session,
)
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    Direction,
    ExperimentStatus,
    GateName,
    RunStatus,
    Split,
)
from harness.ledger import records
from harness.ledger.chain import StoredFact
from harness.ledger.database import Database
from harness.ledger.replay import stored
from harness.ledger.rules import find_experiment, find_run
from harness.ledger.schema import (
    alarms,
    checkpoints,
    decisions,
    evaluations,
    experiments,
    facts,
    hand_offs,
    notes,
    plans,
    priors,
    queries,
    runs,
    sessions,
    verdicts,
)
from harness.ledger.state import SqlState
from harness.ledger.text_form import writers

_BEGINNINGS = ("plan_approved", "experiment_opened", "run_registered", "session_started")


class LedgerReads:
    """The reading half of `Ledger`."""

    _database: Database

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the ledger as it was at the first one."""
        with self._database.read():
            yield

    def plan(self) -> ApprovedPlan | None:
        """The plan that was approved last."""
        found = self._rows(sa.select(plans).order_by(*_newest(plans)).limit(1))
        return records.plan_record(found[0]) if found else None

    def plans(self) -> list[ApprovedPlan]:
        return [
            records.plan_record(row)
            for row in self._rows(sa.select(plans).order_by(*_oldest(plans)))
        ]

    def experiment(self, identifier: str) -> Experiment:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            return records.experiment_record(find_experiment(SqlState(connection), identifier))

    def experiments(
        self, *, newest: int | None = None, statuses: Iterable[ExperimentStatus] | None = None
    ) -> list[Experiment]:
        """By number; `newest` keeps the last so many."""
        query = sa.select(experiments).order_by(experiments.c.number.desc()).limit(newest)
        if statuses is not None:
            query = query.where(
                experiments.c.status.in_([ExperimentStatus(item).value for item in statuses])
            )
        return [records.experiment_record(row) for row in reversed(self._rows(query))]

    def best_experiment(
        self, plan: str, split: Split, direction: Direction, status: ExperimentStatus
    ) -> str | None:
        """The best by the last verdict's score on `split`, among those of a plan and a status; the
        oldest of equals."""
        column = experiments.c.held_out if split == Split.HELD_OUT else experiments.c.validation
        best = column.desc() if direction == Direction.MAXIMIZE else column.asc()
        among = sa.and_(
            experiments.c.plan == plan, experiments.c.status == status.value, column.is_not(None)
        )
        found = self._rows(
            sa.select(experiments.c.id).where(among).order_by(best, experiments.c.number).limit(1)
        )
        return str(found[0]["id"]) if found else None

    def summary(self, experiment: str) -> dict[str, Any]:
        """What CHECKLIST.md shows beside the columns: see harness.ledger.apply. Raises
        NotFoundError."""
        with self._database.read() as connection:
            found: dict[str, Any] = find_experiment(SqlState(connection), experiment)["summary"]
            return found

    def runs(self, experiment: str) -> list[Run]:
        query = sa.select(runs).where(runs.c.experiment == experiment).order_by(runs.c.number)
        return [records.run_record(row) for row in self._rows(query)]

    def run(self, experiment: str, run: str) -> Run:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            return records.run_record(find_run(SqlState(connection), experiment, run))

    def open_runs(self) -> list[Run]:
        """Those that are pending or running, by (time of registration, experiment, number)."""
        unfinished = runs.c.status.in_([RunStatus.PENDING.value, RunStatus.RUNNING.value])
        query = (
            sa.select(runs)
            .where(unfinished)
            .order_by(runs.c.registered_at, runs.c.experiment, runs.c.number)
        )
        return [records.run_record(row) for row in self._rows(query)]

    def imported_logs(self, experiment: str) -> list[dict[str, Any]]:
        """The bodies of `LogImported` of an experiment, oldest first, each with its time as
        `at`."""
        query = sa.select(notes).where(notes.c.kind == LogImported.KIND).order_by(*_oldest(notes))
        found = ({**row["record"], "at": row["at"]} for row in self._rows(query))
        return [item for item in found if item["experiment"] == experiment]

    def alarms(self, experiment: str, run: str | None = None) -> list[RaisedAlarm]:
        """What the detectors said, oldest first; of one run in the order of its rows."""
        query = (
            sa.select(alarms).where(alarms.c.experiment == experiment).order_by(*_oldest(alarms))
        )
        if run is not None:
            query = query.where(alarms.c.run == run)
        return [records.alarm_record(row) for row in self._rows(query)]

    def checkpoints(self, experiment: str, run: str | None = None) -> list[Checkpoint]:
        query = (
            sa.select(checkpoints)
            .where(checkpoints.c.experiment == experiment)
            .order_by(*_oldest(checkpoints))
        )
        if run is not None:
            query = query.where(checkpoints.c.run == run)
        return [records.checkpoint_record(row) for row in self._rows(query)]

    def removed_checkpoints(self, experiment: str) -> list[tuple[CheckpointRemoved, str]]:
        """What `harness gc` removed of an experiment, oldest first, each with its time."""
        query = (
            sa.select(notes).where(notes.c.kind == CheckpointRemoved.KIND).order_by(*_oldest(notes))
        )
        found = [(CheckpointRemoved(**row["record"]), str(row["at"])) for row in self._rows(query)]
        return [(fact, at) for fact, at in found if fact.experiment == experiment]

    def first_with_checkpoint(self, content: str) -> Checkpoint | None:
        """The earliest record of these weights, whichever run left them."""
        query = (
            sa.select(checkpoints)
            .where(checkpoints.c.id == content)
            .order_by(*_oldest(checkpoints))
            .limit(1)
        )
        found = self._rows(query)
        return records.checkpoint_record(found[0]) if found else None

    def evaluations(self, experiment: str, split: Split | None = None) -> list[Evaluation]:
        query = (
            sa.select(evaluations)
            .where(evaluations.c.experiment == experiment)
            .order_by(*_oldest(evaluations))
        )
        if split is not None:
            query = query.where(evaluations.c.split == Split(split).value)
        return [records.evaluation_record(row) for row in self._rows(query)]

    def verdicts(
        self, experiment: str, gate: GateName | str | None = None
    ) -> list[RecordedVerdict]:
        query = (
            sa.select(verdicts)
            .where(verdicts.c.experiment == experiment)
            .order_by(verdicts.c.number)
        )
        if gate is not None:
            query = query.where(verdicts.c.gate == str(gate))
        return [records.verdict_record(row) for row in self._rows(query)]

    def latest_verdict(
        self, experiment: str, gate: GateName | str | None = None
    ) -> RecordedVerdict | None:
        query = sa.select(verdicts).where(verdicts.c.experiment == experiment)
        if gate is not None:
            query = query.where(verdicts.c.gate == str(gate))
        found = self._rows(query.order_by(verdicts.c.number.desc()).limit(1))
        return records.verdict_record(found[0]) if found else None

    def newest_verdict(self) -> RecordedVerdict | None:
        """The verdict that was recorded last, of whatever experiment."""
        found = self._rows(sa.select(verdicts).order_by(verdicts.c.number.desc()).limit(1))
        return records.verdict_record(found[0]) if found else None

    def decisions(
        self, experiment: str | None = None, *, newest: int | None = None
    ) -> list[Decision]:
        query = sa.select(decisions).order_by(decisions.c.number.desc()).limit(newest)
        if experiment is not None:
            query = query.where(decisions.c.experiment == experiment)
        return [records.decision_record(row) for row in reversed(self._rows(query))]

    def decisions_after(self, number: int) -> list[tuple[int, Decision]]:
        """Decisions with their numbers, from the one after `number`."""
        query = sa.select(decisions).where(decisions.c.number > number).order_by(decisions.c.number)
        return [(int(row["number"]), records.decision_record(row)) for row in self._rows(query)]

    def moved_after(self, decision: str, experiment: str | None) -> bool:
        """Whether the experiment moved after the decision was recorded in this database."""
        same = sa.and_(facts.c.writer == decisions.c.writer, facts.c.seq == decisions.c.seq)
        place = (
            sa.select(facts.c.position)
            .join(decisions, same)
            .where(decisions.c.id == decision)
            .scalar_subquery()
        )
        query = sa.select(facts).where(
            facts.c.position > place, facts.c.kind == ExperimentMoved.KIND
        )
        return any(
            StoredFact(**row).body()["experiment"] == experiment for row in self._rows(query)
        )

    def sessions(self, *, open_only: bool = False) -> list[Session]:
        query = sa.select(sessions).order_by(*_oldest(sessions))
        if open_only:
            query = query.where(sessions.c.ended_at.is_(None))
        return [records.session_record(row) for row in self._rows(query)]

    def session(self, identifier: str) -> Session | None:
        found = self._rows(sa.select(sessions).where(sessions.c.id == identifier))
        return records.session_record(found[0]) if found else None

    def loop_end(self) -> LoopEnded | None:
        """How the loop ended, or None when it never did or something was begun after that."""
        query = (
            sa.select(notes)
            .where(notes.c.kind == LoopEnded.KIND)
            .order_by(*_newest(notes))
            .limit(1)
        )
        with self._database.read():
            found = self._rows(query)
            if not found:
                return None
            end = found[0]
            same = sa.and_(
                facts.c.at == end["at"], facts.c.writer == end["writer"], facts.c.seq > end["seq"]
            )
            later = sa.and_(facts.c.kind.in_(_BEGINNINGS), sa.or_(facts.c.at > end["at"], same))
            if self._scalar(sa.select(sa.exists().where(later))):
                return None
            return LoopEnded(**end["record"])

    def loop_ended_at(self) -> str | None:
        """When the loop ended last, whatever was begun since; None when it never did."""
        at: str | None = self._scalar(
            sa.select(sa.func.max(notes.c.at)).where(notes.c.kind == LoopEnded.KIND)
        )
        return at

    def tampering(self) -> list[TamperingNoticed]:
        query = (
            sa.select(notes).where(notes.c.kind == TamperingNoticed.KIND).order_by(*_oldest(notes))
        )
        return [TamperingNoticed(**row["record"]) for row in self._rows(query)]

    def accepted_list(self, writer: str) -> str | None:
        """The digest of the control files that a person accepted last, by `writer`, whose state
        directory holds the list; None when none was recorded."""
        mine = sa.and_(notes.c.kind == ControlAccepted.KIND, notes.c.writer == writer)
        found = self._rows(sa.select(notes).where(mine).order_by(*_newest(notes)).limit(1))
        return str(found[0]["record"]["sha256"]) if found else None

    def open_tampering(self) -> list[TamperingNoticed]:
        """What still matters, oldest first: of an experiment until it is decided, of what is frozen
        until a plan is approved again."""
        approved = self._scalar(sa.select(sa.func.max(plans.c.at))) or ""
        closed = self._rows(
            sa.select(experiments.c.id).where(
                experiments.c.status.in_([item.value for item in CLOSED_EXPERIMENTS])
            )
        )
        decided = {row["id"] for row in closed}
        query = (
            sa.select(notes).where(notes.c.kind == TamperingNoticed.KIND).order_by(*_oldest(notes))
        )
        found = [(row["at"], TamperingNoticed(**row["record"])) for row in self._rows(query)]
        return [
            item
            for at, item in found
            if (at > approved if item.experiment is None else item.experiment not in decided)
        ]

    def hand_offs(self, *, newest: int | None = None) -> list[HandOff]:
        """Oldest first; `newest` keeps the last so many."""
        found = self._rows(sa.select(hand_offs).order_by(*_newest(hand_offs)).limit(newest))
        return [records.hand_off_record(row) for row in reversed(found)]

    def priors(self, *, standing: bool = False) -> list[Prior]:
        """By number; with `standing` without those that a later one supersedes."""
        query = sa.select(priors).order_by(priors.c.number)
        if standing:
            query = query.where(priors.c.superseded_by.is_(None))
        return [records.prior_record(row) for row in self._rows(query)]

    def queries(self, plan: str, split: Split) -> int:
        """How many looks at `split` were taken under a plan's name."""
        counted = sa.and_(queries.c.plan == plan, queries.c.split == Split(split).value)
        return int(
            self._scalar(sa.select(sa.func.count()).select_from(queries).where(counted)) or 0
        )

    def counts(self, plan: str | None = None) -> dict[str, Any]:
        """{"experiments": {status: n}, "verdicts": n, "decisions": n, "facts": n}; a status without
        any is left out.

        With `plan` only the experiments that were opened under that name are counted, from an
        index.
        """
        grouped = sa.select(experiments.c.status, sa.func.count().label("n")).group_by(
            experiments.c.status
        )
        if plan is not None:
            grouped = grouped.where(experiments.c.plan == plan)
        with self._database.read():
            found = {row["status"]: row["n"] for row in self._rows(grouped)}
            return {
                "experiments": {
                    status.value: found[status] for status in ExperimentStatus if status in found
                },
                "verdicts": self._scalar(sa.select(sa.func.max(verdicts.c.number))) or 0,
                "decisions": self._scalar(sa.select(sa.func.max(decisions.c.number))) or 0,
                "facts": self.position(),
            }

    def position(self) -> int:
        """The position of the last fact in this database; 0 when there is none."""
        return int(self._scalar(sa.select(sa.func.max(facts.c.position))) or 0)

    def last_fact(self) -> StoredFact | None:
        """By the order of all facts, which is the same in every clone."""
        found = self._rows(sa.select(facts).order_by(*_newest(facts)).limit(1))
        return StoredFact(**found[0]) if found else None

    def writers(self) -> list[str]:
        """Whose chains the ledger holds, by name."""
        with self._database.read() as connection:
            return writers(connection)

    def facts(self, after: int = 0) -> Iterator[StoredFact]:
        """Facts by their position in this database, from the one after `after`."""
        with self._database.read() as connection:
            query = sa.select(facts).where(facts.c.position > after).order_by(facts.c.position)
            for row in connection.execute(query).mappings():
                yield stored(row)

    def _rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _scalar(self, query: sa.Select[Any]) -> Any:
        with self._database.read() as connection:
            return connection.execute(query).scalar()


def _oldest(table: sa.Table) -> tuple[Any, ...]:
    return (table.c.at, table.c.writer, table.c.seq)


def _newest(table: sa.Table) -> tuple[Any, ...]:
    return tuple(column.desc() for column in _oldest(table))
