"""What projections need: which of them a fact puts out of date, notes on files, and the cached rows
of CHECKLIST.md."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.domain.statuses import CLOSED_EXPERIMENTS, DecisionKind, ExperimentStatus
from harness.ledger.chain import StoredFact
from harness.ledger.facts import KINDS
from harness.ledger.facts.base import LedgerPart, Rows, listed
from harness.ledger.facts.experiment import experiments
from harness.ledger.schema import projections
from harness.ledger.store import Connection

_ALWAYS = ("state", "briefing", "facts")

_OPEN = listed(status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS)
_UNSHOWN = {"by", "session", "opened_at", "tree"}
_ROW_COLUMNS = ", ".join(f"e.{name}" for name in experiments.columns if name not in _UNSHOWN)
_ROWS_TOO = "JOIN checklist_rows AS c ON c.number = e.number"


def mark_stale(connection: Connection, fact: StoredFact) -> None:
    """Note that `fact` has to show in the projections. Constant work."""
    kind = KINDS[fact.kind]
    names = [*_ALWAYS, kind.PAGE] if kind.PAGE else list(_ALWAYS)
    body: dict[str, Any] = fact.body() if kind.ROWS is not Rows.NONE else {}
    if body.get("experiment"):
        names.append("checklist")
        _mark_rows(connection, kind.ROWS, body)
    connection.run(
        f"UPDATE projections SET changed = :position WHERE name IN {listed(names)}",
        position=fact.position,
    )


def _mark_rows(connection: Connection, rows: Rows, body: dict[str, Any]) -> None:
    touched = own = "id = :experiment"
    if rows is Rows.NEW:
        connection.run(
            "INSERT INTO checklist_rows (number, text, dirty)"
            f" SELECT number, '', 1 FROM experiments WHERE {own}",
            experiment=body["experiment"],
        )
        touched = "id = :parent"
    elif rows is Rows.WITH_CHILDREN:
        touched = f"{own} OR parent = :experiment"
    connection.run(
        "UPDATE checklist_rows SET dirty = 1"
        f" WHERE number IN (SELECT number FROM experiments WHERE {touched})",
        experiment=body["experiment"],
        parent=body.get("parent"),
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
        rows = self._rows("SELECT name FROM projections WHERE changed > written")
        return {str(row["name"]) for row in rows}

    def projections_written(
        self, names: Iterable[str], *, notes: Mapping[str, Any] | None = None
    ) -> None:
        """Note that these files show every fact, and keep `notes`; inside `refreshing`."""
        with self._database.write(durable=False) as connection:
            for name in names:
                connection.run(
                    "UPDATE projections SET written = changed WHERE name = :name", name=name
                )
                if notes and name in notes:
                    note = projections.encoded({"note": notes[name]})
                    connection.run(projections.update("note"), key_name=name, **note)

    def projection_notes(self) -> dict[str, Any]:
        rows = self._rows("SELECT name, note FROM projections")
        return {row["name"]: row["note"] for row in rows}

    def checklist_inputs(self, *, dirty_only: bool = True) -> list[dict[str, Any]]:
        """The experiments whose row is out of date (or all), by number, with `parent_summary` and
        the number of registered runs as `launches`, of persons' overrides as `overrides`."""
        among = "WHERE c.dirty = 1" if dirty_only else ""
        return self._rows(
            f"SELECT {_ROW_COLUMNS}, parents.summary AS parent_summary,"
            " (SELECT count(*) FROM runs WHERE runs.experiment = e.id) AS launches,"
            " (SELECT count(*) FROM decisions AS d WHERE d.experiment = e.id"
            f" AND d.kind = '{DecisionKind.OVERRIDE}') AS overrides"
            f" FROM experiments AS e {_ROWS_TOO}"
            " LEFT JOIN experiments AS parents ON parents.id = e.parent"
            f" {among} ORDER BY e.number"
        )

    def store_checklist_rows(self, texts: Mapping[int, str]) -> None:
        """Keep the rendered rows; called inside `refreshing`."""
        if not texts:
            return
        statement = "UPDATE checklist_rows SET text = :text, dirty = 0 WHERE number = :number"
        with self._database.write(durable=False) as connection:
            for number, text in texts.items():
                connection.run(statement, number=number, text=text)

    def checklist_texts(self, first: int, last: int | None = None) -> list[str]:
        """The kept rows of experiments `first` to `last`, newest first."""
        up_to = "" if last is None else "AND number <= :last"
        rows = self._rows(
            f"SELECT text FROM checklist_rows WHERE number >= :first {up_to} ORDER BY number DESC",
            first=first,
            last=last,
        )
        return [row["text"] for row in rows]

    def open_checklist_texts(self, last: int, limit: int) -> tuple[list[str], int]:
        """The kept rows of unfinished experiments up to `last`, newest first, at most `limit`; and
        their number."""
        among = f"e.status IN {_OPEN} AND e.number <= :last"
        with self._database.read():
            rows = self._rows(
                f"SELECT c.text FROM experiments AS e {_ROWS_TOO}"
                f" WHERE {among} ORDER BY c.number DESC LIMIT :limit",
                last=last,
                limit=limit,
            )
            total = len(rows)
            # Fewer than the limit are all there are; only a full page needs a second query.
            if total == limit:
                counted = f"SELECT count(*) FROM experiments AS e WHERE {among}"
                total = int(self._value(counted, last=last))
            return [row["text"] for row in rows], total

    def hand_off_keys(self) -> list[tuple[str, str]]:
        """(time, hash) of every hand-off: what names its file."""
        rows = self._rows("SELECT at, hash FROM hand_offs ORDER BY at")
        return [(row["at"], row["hash"]) for row in rows]

    def last_number(self) -> int:
        """The highest number of an experiment; 0 when there is none."""
        return int(self._value("SELECT max(number) FROM experiments") or 0)
