"""Which projections a fact makes out of date, and the cache of CHECKLIST.md's rows."""

from typing import Any

import sqlalchemy as sa

from harness.ledger.chain import StoredFact
from harness.ledger.schema import checklist_rows, experiments, projections

_ALWAYS = ("state", "briefing", "facts")
_OWN_PAGES = {
    "decision_recorded": "decision_log",
    "hand_off_written": "hand_offs",
    "prior_recorded": "priors",
}
_CHECKLIST = {
    "experiment_opened",
    "experiment_moved",
    "run_registered",
    "run_ended",
    "evaluation_recorded",
    "verdict_recorded",
    "decision_recorded",
}
_SCORES = {
    "evaluation_recorded",
    "verdict_recorded",
}  # children show their change against this experiment


def mark_stale(connection: sa.Connection, fact: StoredFact) -> None:
    """Note that `fact` has to show in the projections. Constant work, whatever the number of
    experiments."""
    names = list(_ALWAYS)
    if fact.kind in _OWN_PAGES:
        names.append(_OWN_PAGES[fact.kind])
    body: dict[str, Any] = fact.body() if fact.kind in _CHECKLIST else {}
    if body.get("experiment"):
        names.append("checklist")
        _mark_rows(connection, fact.kind, body)
    connection.execute(_CHANGED, {"position": fact.position, "names": names})


def _mark_rows(connection: sa.Connection, kind: str, body: dict[str, Any]) -> None:
    if kind == "experiment_opened":
        number = sa.select(experiments.c.number, sa.literal(""), sa.literal(1)).where(
            experiments.c.id == body["experiment"]
        )
        connection.execute(checklist_rows.insert().from_select(["number", "text", "dirty"], number))
        touched = experiments.c.id == body["parent"]
    elif kind in _SCORES:
        touched = sa.or_(
            experiments.c.id == body["experiment"], experiments.c.parent == body["experiment"]
        )
    else:
        touched = experiments.c.id == body["experiment"]
    numbers = sa.select(experiments.c.number).where(touched)
    connection.execute(
        checklist_rows.update().where(checklist_rows.c.number.in_(numbers)).values(dirty=1)
    )


_CHANGED = (
    projections.update()
    .where(projections.c.name.in_(sa.bindparam("names", expanding=True)))
    .values(changed=sa.bindparam("position"))
)
