"""What the facts of training programs do to the state: see harness.ledger.apply."""

from collections.abc import Callable
from typing import Any

from harness.domain.models import ModelState
from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.state import Row, State

Body = dict[str, Any]


def _log(fact: StoredFact) -> Row:
    return {"at": fact.at, "writer": fact.writer, "seq": fact.seq}


def _require(state: State, fact: StoredFact, table: str, *key: Any) -> None:
    if state.get(table, *key) is None:
        raise LedgerDamagedError(
            f"Fact {fact.seq} of writer {fact.writer} ({fact.kind}) is about"
            f" {'/'.join(map(str, key))} in {table}, which no earlier fact made.",
            hint="Import the text forms of all writers together, or run `harness ledger verify`.",
        )


def _training_specified(state: State, fact: StoredFact, body: Body) -> None:
    _require(state, fact, "experiments", body["experiment"])
    state.insert("programs", {"experiment": body["experiment"], "record": body} | _log(fact))


def _training_judged(state: State, fact: StoredFact, body: Body) -> None:
    _require(state, fact, "runs", body["experiment"], body["run"])
    state.insert("judgements", {"experiment": body["experiment"], "record": body} | _log(fact))


def _model_registered(state: State, fact: StoredFact, body: Body) -> None:
    """A second run that made the same bytes adds nothing: its judgement names them."""
    _require(state, fact, "runs", body["experiment"], body["run"])
    if state.get("models", body["model"]) is None:
        row = {"id": body["model"], "profile": body["profile"], "record": body}
        row |= {"state": ModelState.REGISTERED.value, "since": fact.at}
        state.insert("models", row | _log(fact))


def _model_evaluated(state: State, fact: StoredFact, body: Body) -> None:
    _record(state, fact, body, number=int(body["evaluation"].rpartition("-")[2]))


def _shadow_observed(state: State, fact: StoredFact, body: Body) -> None:
    _record(state, fact, body)


def _model_moved(state: State, fact: StoredFact, body: Body) -> None:
    """In the facts of two clones a step may follow a rejection that its writer had not seen:
    rejected is final."""
    _record(state, fact, body)
    row = state.get("models", body["model"])
    if row is not None and row["state"] != ModelState.REJECTED:
        state.update("models", (body["model"],), {"state": body["after"], "since": fact.at})


def _model_served(state: State, fact: StoredFact, body: Body) -> None:
    state.insert("servings", {"profile": body["profile"], "record": body} | _log(fact))


def _record(state: State, fact: StoredFact, body: Body, *, number: int | None = None) -> None:
    _require(state, fact, "models", body["model"])
    row = {
        "model": body["model"],
        "kind": fact.kind,
        "number": number,
        "hash": fact.hash,
        "record": body,
    }
    state.insert("model_records", row | _log(fact))


PROGRAM_HANDLERS: dict[str, Callable[[State, StoredFact, Body], None]] = {
    "training_specified": _training_specified,
    "training_judged": _training_judged,
    "model_registered": _model_registered,
    "model_evaluated": _model_evaluated,
    "shadow_observed": _shadow_observed,
    "model_moved": _model_moved,
    "model_served": _model_served,
}
