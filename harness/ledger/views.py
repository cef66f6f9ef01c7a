"""What projections need: which of them a fact puts out of date, notes on files, and the cached rows
of CHECKLIST.md."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus
from harness.ledger.chain import StoredFact
from harness.ledger.facts import KINDS
from harness.ledger.facts.base import LedgerPart, Rows
from harness.ledger.facts.decision import hand_offs
from harness.ledger.facts.experiment import experiments
from harness.ledger.facts.run import runs
from harness.ledger.schema import checklist_rows, projections

_ALWAYS = ("state", "briefing", "facts")

_OPEN = [status.value for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS]
_ROW_COLUMNS = [
    column for column in experiments.c if column.name not in ("by", "session", "opened_at", "tree")
]


def mark_stale(connection: sa.Connection, fact: StoredFact) -> None:
    """Note that `fact` has to show in the projections. Constant work."""
    kind = KINDS[fact.kind]
    names = [*_ALWAYS, kind.PAGE] if kind.PAGE else list(_ALWAYS)
    body: dict[str, Any] = fact.body() if kind.ROWS is not Rows.NONE else {}
    if body.get("experiment"):
        names.append("checklist")
        _mark_rows(connection, kind.ROWS, body)
    connection.execute(_CHANGED, {"position": fact.position, "names": names})


def _mark_rows(connection: sa.Connection, rows: Rows, body: dict[str, Any]) -> None:
    own = experiments.c.id == body["experiment"]
    if rows is Rows.NEW:
        new = sa.select(experiments.c.number, sa.literal(""), sa.literal(1)).where(own)
        connection.execute(checklist_rows.insert().from_select(["number", "text", "dirty"], new))
        touched = experiments.c.id == body["parent"]
    elif rows is Rows.WITH_CHILDREN:
        touched = sa.or_(own, experiments.c.parent == body["experiment"])
    else:
        touched = own
    numbers = sa.select(experiments.c.number).where(touched)
    connection.execute(
        checklist_rows.update().where(checklist_rows.c.number.in_(numbers)).values(dirty=1)
    )


_CHANGED = (
    projections.update()
    .where(projections.c.name.in_(sa.bindparam("names", expanding=True)))
    .values(changed=sa.bindparam("position"))
)


class LedgerViews(LedgerPart):
    """The part of `Ledger` that only harness.projections uses."""

    @contextlib.contextmanager
    def refreshing(self) -> Iterator[None]:
        """Hold the write lock while projections are rendered and written: no fact comes in between,
        and of two processes the later one writes the newer files."""
        # Not synced: a note that a power cut takes back makes a projection out of date again.
        with self._database.write(durable=False):
            yield

    def stale_projections(self) -> set[str]:
        """Names of the projections that do not show all facts yet."""
        query = sa.select(projections.c.name).where(projections.c.changed > projections.c.written)
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def projections_written(
        self, names: Iterable[str], *, notes: Mapping[str, Any] | None = None
    ) -> None:
        """Note that these files show every fact, and keep `notes`; inside `refreshing`."""
        with self._database.write(durable=False) as connection:
            for name in names:
                values: dict[str, Any] = {"written": projections.c.changed}
                if notes and name in notes:
                    values["note"] = notes[name]
                connection.execute(
                    projections.update().where(projections.c.name == name).values(**values)
                )

    def projection_notes(self) -> dict[str, Any]:
        with self._database.read() as connection:
            return {row.name: row.note for row in connection.execute(sa.select(projections))}

    def checklist_inputs(self, *, dirty_only: bool = True) -> list[dict[str, Any]]:
        """The experiments whose row is out of date (or all), by number, with `parent_summary` and
        the number of registered runs as `launches`."""
        parents = experiments.alias("parents")
        launched = (
            sa.select(sa.func.count())
            .where(runs.c.experiment == experiments.c.id)
            .scalar_subquery()
        )
        query = (
            sa.select(
                *_ROW_COLUMNS,
                parents.c.summary.label("parent_summary"),
                launched.label("launches"),
            )
            .select_from(
                checklist_rows.join(
                    experiments, experiments.c.number == checklist_rows.c.number
                ).outerjoin(parents, parents.c.id == experiments.c.parent)
            )
            .order_by(experiments.c.number)
        )
        if dirty_only:
            query = query.where(checklist_rows.c.dirty == 1)
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def store_checklist_rows(self, texts: Mapping[int, str]) -> None:
        """Keep the rendered rows; called inside `refreshing`."""
        if not texts:
            return
        statement = (
            checklist_rows.update()
            .where(checklist_rows.c.number == sa.bindparam("key_number"))
            .values(text=sa.bindparam("new_text"), dirty=0)
        )
        rows = [{"key_number": number, "new_text": text} for number, text in texts.items()]
        with self._database.write(durable=False) as connection:
            connection.execute(statement, rows)

    def checklist_texts(self, first: int, last: int | None = None) -> list[str]:
        """The kept rows of experiments `first` to `last`, newest first."""
        query = sa.select(checklist_rows.c.text).where(checklist_rows.c.number >= first)
        if last is not None:
            query = query.where(checklist_rows.c.number <= last)
        with self._database.read() as connection:
            return list(
                connection.execute(query.order_by(checklist_rows.c.number.desc())).scalars()
            )

    def open_checklist_texts(self, last: int, limit: int) -> tuple[list[str], int]:
        """The kept rows of unfinished experiments up to `last`, newest first, at most `limit`; and
        their number."""
        among = sa.and_(experiments.c.status.in_(_OPEN), experiments.c.number <= last)
        query = (
            sa.select(checklist_rows.c.text)
            .select_from(
                checklist_rows.join(experiments, experiments.c.number == checklist_rows.c.number)
            )
            .where(among)
            .order_by(checklist_rows.c.number.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            texts = list(connection.execute(query).scalars())
            total = len(texts)
            # Fewer than the limit are all there are; only a full page needs a second query.
            if total == limit:
                counted = sa.select(sa.func.count()).select_from(experiments).where(among)
                total = int(connection.execute(counted).scalar_one())
            return texts, total

    def hand_off_keys(self) -> list[tuple[str, str]]:
        """(time, hash) of every hand-off: what names its file."""
        query = sa.select(hand_offs.c.at, hand_offs.c.hash).order_by(hand_offs.c.at)
        with self._database.read() as connection:
            return [(row.at, row.hash) for row in connection.execute(query)]

    def last_number(self) -> int:
        """The highest number of an experiment; 0 when there is none."""
        with self._database.read() as connection:
            return int(
                connection.execute(sa.select(sa.func.max(experiments.c.number))).scalar() or 0
            )
