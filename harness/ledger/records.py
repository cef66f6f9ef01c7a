"""Rows of the state tables as the records of the domain."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

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
from harness.domain.statuses import DecisionKind, ExperimentStatus, RunStatus, Split, Tier, Verdict
from harness.ledger.apply import finite

AnyRow = Mapping[str, Any]


def plan_record(row: AnyRow) -> ApprovedPlan:
    return ApprovedPlan(**_taken(ApprovedPlan, row))


def experiment_record(row: AnyRow) -> Experiment:
    return Experiment(**{**_taken(Experiment, row), "status": ExperimentStatus(row["status"])})


def run_record(row: AnyRow) -> Run:
    values = _taken(Run, row)
    values |= {
        "status": RunStatus(row["status"]),
        "argv": tuple(row["argv"]),
        "findings": tuple(row["findings"]),
    }
    return Run(**values)


def alarm_record(row: AnyRow) -> RaisedAlarm:
    return RaisedAlarm(**_taken(RaisedAlarm, row))


def checkpoint_record(row: AnyRow) -> Checkpoint:
    return Checkpoint(**_taken(Checkpoint, row))


def evaluation_record(row: AnyRow) -> Evaluation:
    body = row["record"]
    low_high = [finite(end) for end in body["interval"] or ()]
    interval = (low_high[0], low_high[1]) if len(low_high) == 2 and None not in low_high else None
    values = {
        **body,
        "split": Split(body["split"]),
        "interval": interval,
        "findings": tuple(body["findings"]),
    }
    values |= {
        "value": finite(body["value"]),
        "baseline": finite(body["baseline"]),
        "at": row["at"],
    }
    return Evaluation(**values)


def verdict_record(row: AnyRow) -> RecordedVerdict:
    body = {name: value for name, value in row["record"].items() if name != "verdict_id"}
    tier = Tier(body["tier"]) if body["tier"] is not None else None
    values = {
        **body,
        "id": row["id"],
        "verdict": Verdict(body["verdict"]),
        "tier": tier,
        "at": row["at"],
    }
    values |= {"findings": tuple(body["findings"]), "notes": tuple(body.get("notes", ()))}
    return RecordedVerdict(**values)


def decision_record(row: AnyRow) -> Decision:
    body = {name: value for name, value in row["record"].items() if name != "decision"}
    return Decision(
        **{**body, "id": row["id"], "kind": DecisionKind(body["kind"]), "at": row["at"]}
    )


def session_record(row: AnyRow) -> Session:
    return Session(**_taken(Session, row))


def hand_off_record(row: AnyRow) -> HandOff:
    return HandOff(**_taken(HandOff, row))


def prior_record(row: AnyRow) -> Prior:
    body = {name: value for name, value in row["record"].items() if name != "prior"}
    body["check"] = None if body["check"] is None else tuple(body["check"])
    return Prior(
        **{**body, "id": row["id"], "superseded_by": row["superseded_by"], "at": row["at"]}
    )


def _taken(record: type[Any], row: AnyRow) -> dict[str, Any]:
    return {item.name: row[item.name] for item in fields(record)}
