"""What each kind of fact does to the state. Deterministic: the same facts in the same order give
the same rows.

Each handler gets the fact's body as parsed from its stored bytes, never the object that the caller
had, so that the first time and every replay see the same values. An experiment's `summary` collects
what CHECKLIST.md shows:

    verdict   {id, gate, verdict, tier} of the last verdict
    scores    split -> {mean, n_seeds, evidence} of the last verdict on that split with a score
    comparison  {against, difference, better, p_corrected, comparisons, no_longer} of the last verdict that compared
    evaluated split -> seed -> {value, sandbox} of the last evaluation
    baseline  split -> the trivial predictor's score
    shortfall first finding of the last verdict, else the oracle's first; of the last run while there is no verdict
    decision  {kind, choice} of the last decision;  child: the last experiment that has it as its parent
    next_planned  first idea of next.md at the last verdict; absent before there was a verdict that says
"""

import math
from collections.abc import Callable
from typing import Any

from harness.domain.ids import experiment_number, run_number
from harness.domain.statuses import ExperimentStatus, RunStatus, Split
from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.program_apply import PROGRAM_HANDLERS
from harness.ledger.state import Row, State

Body = dict[str, Any]

_SUMMARY: Body = {
    "verdict": None,
    "scores": {},
    "comparison": None,
    "evaluated": {},
    "baseline": {},
    "shortfall": None,
    "decision": None,
    "child": None,
}


def apply(state: State, fact: StoredFact) -> None:
    """Bring the state tables from before `fact` to after it.

    Raises LedgerDamagedError when it refers to something that no earlier fact made, or is of an
    unknown kind.
    """
    handler = _HANDLERS.get(fact.kind)
    if handler is None:
        fact.fact()  # raises, and says what to do about an unknown kind
        raise AssertionError(f"the kind {fact.kind} has no handler")
    handler(state, fact, fact.body())


def finite(value: Any) -> float | None:
    """A number that columns and comparisons can hold: None for null, text and what is not
    finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _compared(body: Body | None) -> Body | None:
    """What pages say of a verdict's comparison; None where it has none, or is of before it had all
    of this."""
    names = ("against", "better", "comparisons")
    if body is None or not {*names, "difference", "p_corrected"} <= set(body):
        return None
    numbers = {name: finite(body[name]) for name in ("difference", "p_corrected")}
    return (
        {name: body[name] for name in names}
        | numbers
        | {"no_longer": list(body.get("no_longer", ()))}
    )


def _log(fact: StoredFact) -> Row:
    return {"at": fact.at, "writer": fact.writer, "seq": fact.seq}


def _existing(state: State, fact: StoredFact, table: str, *key: Any) -> Row:
    row = state.get(table, *key)
    if row is None:
        name = "/".join(str(part) for part in key)
        raise LedgerDamagedError(
            f"Fact {fact.seq} of writer {fact.writer} ({fact.kind}) is about {name} in {table},"
            " which no earlier fact made.",
            hint="Import the text forms of all writers together, or run `harness ledger verify`.",
        )
    return row


def _plan_approved(state: State, fact: StoredFact, body: Body) -> None:
    state.insert("plans", {**body, **_log(fact)})


def _experiment_opened(state: State, fact: StoredFact, body: Body) -> None:
    row = {name: value for name, value in body.items() if name != "experiment"}
    row |= {"id": body["experiment"], "number": experiment_number(body["experiment"])}
    row |= {"status": ExperimentStatus.OPEN.value, "opened_at": fact.at, "summary": dict(_SUMMARY)}
    state.insert("experiments", row)
    if body["parent"] is not None:
        parent = _existing(state, fact, "experiments", body["parent"])
        _summarise(state, parent, child=body["experiment"])


def _experiment_moved(state: State, fact: StoredFact, body: Body) -> None:
    _existing(state, fact, "experiments", body["experiment"])
    state.update("experiments", (body["experiment"],), {"status": body["status"]})


def _run_registered(state: State, fact: StoredFact, body: Body) -> None:
    _existing(state, fact, "experiments", body["experiment"])
    row = {name: value for name, value in body.items() if name != "run"}
    row |= {"id": body["run"], "number": run_number(body["run"]), "status": RunStatus.PENDING.value}
    row |= {
        "registered_at": fact.at,
        "supervisor": {},
        "reason": "",
        "rows": 0,
        "files": {},
        "findings": [],
    }
    state.insert("runs", row)


def _run_started(state: State, fact: StoredFact, body: Body) -> None:
    key = (body["experiment"], body["run"])
    _existing(state, fact, "runs", *key)
    changes = {name: body[name] for name in ("pid", "boot", "supervisor")}
    changes |= {
        "started": finite(body["started"]),
        "status": RunStatus.RUNNING.value,
        "started_at": fact.at,
    }
    state.update("runs", key, changes)


def _run_resumed(state: State, fact: StoredFact, body: Body) -> None:
    key = (body["experiment"], body["run"])
    _existing(state, fact, "runs", *key)
    changes: Body = {name: body[name] for name in ("attempt", "environment", "session")}
    changes |= {
        "status": RunStatus.PENDING.value,
        "ended_at": None,
        "exit_code": None,
        "reason": "",
    }
    state.update("runs", key, changes | {"files": {}, "pid": None, "boot": None, "started": None})


def _run_ended(state: State, fact: StoredFact, body: Body) -> None:
    key = (body["experiment"], body["run"])
    _existing(state, fact, "runs", *key)
    changes = {
        name: body[name] for name in ("status", "exit_code", "reason", "rows", "files", "findings")
    }
    state.update("runs", key, changes | {"seconds": finite(body["seconds"]), "ended_at": fact.at})
    experiment = _existing(state, fact, "experiments", body["experiment"])
    if experiment["summary"]["verdict"] is None:
        shortfall = _first_finding(body["findings"])
        if shortfall is None and body["status"] != RunStatus.COMPLETED:
            shortfall = f"{body['run']} {body['status']}: {body['reason']}"
        _summarise(state, experiment, shortfall=shortfall)


def _alarm_raised(state: State, fact: StoredFact, body: Body) -> None:
    _existing(state, fact, "runs", body["experiment"], body["run"])
    state.insert("alarms", {**body, **_log(fact)})


def _checkpoint_recorded(state: State, fact: StoredFact, body: Body) -> None:
    key = (body["experiment"], body["run"], body["checkpoint"])
    _existing(state, fact, "runs", *key[:2])
    row = {name: value for name, value in body.items() if name != "checkpoint"} | {
        "id": body["checkpoint"]
    }
    if state.get("checkpoints", *key) is None:
        state.insert("checkpoints", row | _log(fact))
    else:  # the same content again: only the hint where it lies and its part may have changed
        state.update("checkpoints", key, {name: row[name] for name in ("path", "epoch", "final")})


def _held_out_queried(state: State, fact: StoredFact, body: Body) -> None:
    experiment = _existing(state, fact, "experiments", body["experiment"])
    state.insert("queries", {**body, "plan": experiment["plan"], **_log(fact)})


def _evaluation_recorded(state: State, fact: StoredFact, body: Body) -> None:
    _existing(state, fact, "runs", body["experiment"], body["run"])
    row = {"experiment": body["experiment"], "split": body["split"], "record": body}
    state.insert("evaluations", row | _log(fact))
    experiment = _existing(state, fact, "experiments", body["experiment"])
    summary = experiment["summary"]
    seeds = dict(summary["evaluated"].get(body["split"], {}))
    seeds[str(body["seed"])] = {"value": finite(body["value"]), "sandbox": body["sandbox"]}
    baseline = finite(body["baseline"])
    _summarise(
        state,
        experiment,
        evaluated={**summary["evaluated"], body["split"]: seeds},
        baseline={**summary["baseline"], **({} if baseline is None else {body["split"]: baseline})},
    )


def _verdict_recorded(state: State, fact: StoredFact, body: Body) -> None:
    experiment = _existing(state, fact, "experiments", body["experiment"])
    row = {name: body[name] for name in ("experiment", "gate", "verdict")}
    row |= {"id": body["verdict_id"], "number": tail_number(body["verdict_id"]), "record": body}
    state.insert("verdicts", row | _log(fact))
    score = body["score"] or {}
    split, mean = score.get("split", body["gate"]), finite(score.get("mean"))
    scores = dict(experiment["summary"]["scores"])
    if mean is not None:
        kept = {name: score.get(name) for name in ("n_seeds", "evidence", "metric")}
        scores[split] = {"mean": mean, **kept}
        if split in set(Split):
            state.update("experiments", (experiment["id"],), {split: mean})
    _summarise(
        state,
        experiment,
        verdict={
            "id": body["verdict_id"],
            "gate": body["gate"],
            "verdict": body["verdict"],
            "tier": body["tier"],
        },
        shortfall=_first_finding(body["findings"]) or body.get("shortfall"),
        scores=scores,
        comparison=_compared(body["comparison"]) or experiment["summary"].get("comparison"),
        **({"next_planned": body["next_planned"]} if "next_planned" in body else {}),
    )


def _decision_recorded(state: State, fact: StoredFact, body: Body) -> None:
    row = {"id": body["decision"], "number": tail_number(body["decision"]), "kind": body["kind"]}
    state.insert("decisions", row | {"experiment": body["experiment"], "record": body} | _log(fact))
    if body["experiment"] is not None:
        experiment = _existing(state, fact, "experiments", body["experiment"])
        _summarise(state, experiment, decision={"kind": body["kind"], "choice": body["choice"]})


def _session_started(state: State, fact: StoredFact, body: Body) -> None:
    row = {name: value for name, value in body.items() if name != "session"} | {
        "id": body["session"]
    }
    row |= {"started_at": fact.at, "detail": "", "turns": 0, "usage": {}}
    state.insert("sessions", row | _log(fact))


def _session_ended(state: State, fact: StoredFact, body: Body) -> None:
    _existing(state, fact, "sessions", body["session"])
    changes = {name: body[name] for name in ("outcome", "detail", "turns", "usage")}
    changes |= {"cost_usd": finite(body["cost_usd"]), "ended_at": fact.at}
    state.update("sessions", (body["session"],), changes)


def _hand_off_written(state: State, fact: StoredFact, body: Body) -> None:
    state.insert("hand_offs", {**body, **_log(fact), "hash": fact.hash})


def _prior_recorded(state: State, fact: StoredFact, body: Body) -> None:
    row = {"id": body["prior"], "number": tail_number(body["prior"]), "record": body}
    state.insert("priors", row | _log(fact))
    if body["supersedes"] is not None:
        _existing(state, fact, "priors", body["supersedes"])
        state.update("priors", (body["supersedes"],), {"superseded_by": body["prior"]})


def _note(state: State, fact: StoredFact, body: Body) -> None:
    state.insert("notes", {"kind": fact.kind, "record": body} | _log(fact))


def _summarise(state: State, experiment: Row, **changes: Any) -> None:
    state.update(
        "experiments", (experiment["id"],), {"summary": {**experiment["summary"], **changes}}
    )


def _first_finding(findings: list[Body]) -> str | None:
    if not findings:
        return None
    return f"[{findings[0].get('code', '?')}] {findings[0].get('message', '')}".strip()


def tail_number(identifier: str) -> int:
    """The number at the end of "v-000001", "d-0001" or "p-0001"; 0 when there is none."""
    digits = identifier.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


_HANDLERS: dict[str, Callable[[State, StoredFact, Body], None]] = {
    "plan_approved": _plan_approved,
    "experiment_opened": _experiment_opened,
    "experiment_moved": _experiment_moved,
    "run_registered": _run_registered,
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "run_ended": _run_ended,
    "alarm_raised": _alarm_raised,
    "checkpoint_recorded": _checkpoint_recorded,
    "held_out_queried": _held_out_queried,
    "evaluation_recorded": _evaluation_recorded,
    "verdict_recorded": _verdict_recorded,
    "decision_recorded": _decision_recorded,
    "session_started": _session_started,
    "session_ended": _session_ended,
    "hand_off_written": _hand_off_written,
    "prior_recorded": _prior_recorded,
    "loop_ended": _note,
    "control_accepted": _note,
    "log_imported": _note,
    "checkpoint_removed": _note,
    "tampering_noticed": _note,
    **PROGRAM_HANDLERS,
}
