"""What must hold before a fact may be appended: what it refers to exists, ids are new, statuses may
follow."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from harness.domain.facts import LONGEST_HAND_OFF
from harness.domain.ids import experiment_number, no_experiment, run_number
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    FINAL_RUNS,
    DecisionKind,
    ExperimentStatus,
    GateName,
    RunStatus,
    SandboxKind,
    Split,
    Tier,
    Verdict,
    require_experiment_transition,
    require_run_transition,
)
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.program_rules import PROGRAM_RULES
from harness.ledger.state import Row, State

Body = dict[str, Any]

LONGEST_LESSON = 300


def require_allowed(state: State, kind: str, body: Body) -> None:
    """Raises TransitionError, NotFoundError, RefusedError or UsageError when the fact may not
    follow the state."""
    rule = _RULES.get(kind)
    if rule is not None:
        rule(state, body)


def find_experiment(state: State, identifier: str) -> Row:
    row = state.get("experiments", identifier)
    if row is None:
        raise no_experiment(identifier)
    return row


def find_run(state: State, experiment: str, run: str) -> Row:
    find_experiment(state, experiment)
    row = state.get("runs", experiment, run)
    if row is None:
        raise NotFoundError(
            f"{experiment} has no run {run!r}.",
            hint=f"`harness experiment show {experiment}` lists its runs.",
        )
    return row


def word(kind: type[StrEnum], value: str, what: str) -> Any:
    """`value` as a member of `kind`. Raises UsageError listing what was expected."""
    try:
        return kind(value)
    except ValueError as error:
        raise UsageError(
            f"{what} is {value!r}; expected one of {', '.join(kind)}.", hint="Correct the word."
        ) from error


def _is_new(state: State, table: str, *key: Any) -> None:
    if state.get(table, *key) is not None:
        raise RefusedError(
            f"{'/'.join(str(part) for part in key)} is in the ledger's {table} already.",
            hint="Ids are never reused: take the next one.",
            code="id_taken",
        )


def _spelled(check: Callable[[str], int], identifier: str) -> None:
    try:
        check(identifier)
    except ValueError as error:
        raise UsageError(f"{error}.", hint="Ids look like exp-0001 and run-01.") from error


def _plan_approved(state: State, body: Body) -> None:
    version = body["version"]
    if version < 1 or (version > 1 and state.get("plans", body["name"], version - 1) is None):
        raise RefusedError(
            f"Version {version} of plan {body['name']!r} does not follow the last one.",
            hint="Approve the next version.",
        )
    _is_new(state, "plans", body["name"], version)


def _experiment_opened(state: State, body: Body) -> None:
    _spelled(experiment_number, body["experiment"])
    _is_new(state, "experiments", body["experiment"])
    if body["parent"] is not None:
        find_experiment(state, body["parent"])


def _experiment_moved(state: State, body: Body) -> None:
    row = find_experiment(state, body["experiment"])
    after = word(ExperimentStatus, body["status"], "An experiment's status")
    require_experiment_transition(row["id"], ExperimentStatus(row["status"]), after)


def _require_open(row: Row) -> None:
    if row["status"] in CLOSED_EXPERIMENTS:
        raise RefusedError(
            f"{row['id']} is {row['status']}: it gets no further runs.",
            hint="Open a new experiment with it as the parent.",
            code="experiment_closed",
        )


def _run_registered(state: State, body: Body) -> None:
    _spelled(run_number, body["run"])
    _require_open(find_experiment(state, body["experiment"]))
    _is_new(state, "runs", body["experiment"], body["run"])
    word(SandboxKind, body["sandbox"], "A run's sandbox")


def _run_started(state: State, body: Body) -> None:
    row = find_run(state, body["experiment"], body["run"])
    require_run_transition(
        f"{row['experiment']}/{row['id']}", RunStatus(row["status"]), RunStatus.RUNNING
    )


def _run_resumed(state: State, body: Body) -> None:
    row = find_run(state, body["experiment"], body["run"])
    _require_open(find_experiment(state, body["experiment"]))
    require_run_transition(
        f"{row['experiment']}/{row['id']}", RunStatus(row["status"]), RunStatus.PENDING
    )


def _run_ended(state: State, body: Body) -> None:
    row = find_run(state, body["experiment"], body["run"])
    after = word(RunStatus, body["status"], "A run's status")
    require_run_transition(f"{row['experiment']}/{row['id']}", RunStatus(row["status"]), after)
    if after not in FINAL_RUNS:
        raise UsageError(
            f"A run does not end as {after}.",
            hint="Use completed, failed, killed, lost or cancelled.",
        )


def _of_a_run(state: State, body: Body) -> None:
    find_run(state, body["experiment"], body["run"])


def _checkpoint_removed(state: State, body: Body) -> None:
    """Whatever a caller decided: not of a run that goes on, and the one to score only of a
    discarded experiment."""
    run = find_run(state, body["experiment"], body["run"])
    name = f"{body['experiment']}/{body['run']}"
    row = state.get("checkpoints", body["experiment"], body["run"], body["checkpoint"])
    if row is None:
        raise NotFoundError(
            f"{name} has no checkpoint {body['checkpoint'][:12]}.",
            hint=f"`harness experiment show {body['experiment']}` lists them.",
        )
    status = find_experiment(state, body["experiment"])["status"]
    needed = row["final"] and status != ExperimentStatus.DISCARDED
    if run["status"] not in FINAL_RUNS or needed:
        raise RefusedError(
            f"The checkpoint {body['checkpoint'][:12]} of {name} is needed: the run is"
            f" {run['status']}, the experiment {status}"
            + (", and this is its final one." if row["final"] else "."),
            hint="Leave it where it is.",
            code="checkpoint_needed",
        )


def _evaluation_recorded(state: State, body: Body) -> None:
    find_run(state, body["experiment"], body["run"])
    word(Split, body["split"], "A split")
    word(SandboxKind, body["sandbox"], "An evaluation's sandbox")


def _held_out_queried(state: State, body: Body) -> None:
    find_experiment(state, body["experiment"])
    word(Split, body["split"], "A split")


def _verdict_recorded(state: State, body: Body) -> None:
    find_experiment(state, body["experiment"])
    word(GateName, body["gate"], "A gate")
    word(Verdict, body["verdict"], "A verdict")
    if body["tier"] is not None:
        word(Tier, body["tier"], "A tier")
    _is_new(state, "verdicts", body["verdict_id"])


def _decision_recorded(state: State, body: Body) -> None:
    word(DecisionKind, body["kind"], "A decision")
    if body["experiment"] is not None:
        find_experiment(state, body["experiment"])
    for table, name in (("verdicts", body["verdict"]), ("decisions", body["supersedes"])):
        if name is not None and state.get(table, name) is None:
            raise NotFoundError(
                f"There is no {table[:-1]} {name!r}.", hint="`harness decisions` lists them."
            )
    _is_new(state, "decisions", body["decision"])


def _session_started(state: State, body: Body) -> None:
    word(SandboxKind, body["sandbox"], "A session's sandbox")
    _is_new(state, "sessions", body["session"])


def _session_ended(state: State, body: Body) -> None:
    row = state.get("sessions", body["session"])
    if row is None:
        raise NotFoundError(
            f"There is no session {body['session']!r}.", hint="Record its start first."
        )
    if row["ended_at"] is not None:
        raise RefusedError(
            f"Session {row['id']} has ended already, at {row['ended_at']}.",
            hint="Nothing to do.",
            code="session_over",
        )


def _text(name: str, value: Any, longest: int) -> None:
    """Raises UsageError unless it is text that says something, in at most so many characters."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        found = (
            f"{len(value)} characters"
            if isinstance(value, str) and value.strip()
            else f"{value!r:.40}"
        )
        raise UsageError(
            f"The {name} is {found}; expected text of 1 to {longest} characters.",
            hint="Say it shorter.",
        )


def _log_imported(state: State, body: Body) -> None:
    if body["experiment"] is not None:
        find_experiment(state, body["experiment"])


def _hand_off_written(state: State, body: Body) -> None:
    _text("hand-off", body["text"], LONGEST_HAND_OFF)
    _text("name of who hands off", body["by"], LONGEST_LESSON)
    if body["experiment"] is not None:
        find_experiment(state, body["experiment"])


def _prior_recorded(state: State, body: Body) -> None:
    _is_new(state, "priors", body["prior"])
    _text("lesson", body["lesson"], LONGEST_LESSON)
    if len(body["lesson"].splitlines()) > 1:
        raise UsageError(
            "The lesson has several lines; expected one.", hint="Put the rest into the evidence."
        )
    _text("evidence", body["evidence"], LONGEST_HAND_OFF)
    _text("rule", body["rule"], LONGEST_HAND_OFF)
    check = body["check"]
    if check is not None and not (
        isinstance(check, list) and check and all(isinstance(word, str) for word in check)
    ):
        raise UsageError(
            f"The check is {check!r:.60}; expected the words of a command.",
            hint="Leave it out or name one.",
        )
    if body["supersedes"] is None:
        return
    before = state.get("priors", body["supersedes"])
    if before is None:
        raise NotFoundError(
            f"There is no prior {body['supersedes']!r}.", hint="`harness priors list` shows them."
        )
    if before["superseded_by"] is not None:
        raise RefusedError(
            f"{before['id']} is superseded by {before['superseded_by']} already.",
            hint=f"Supersede {before['superseded_by']} instead.",
            code="superseded",
        )


_RULES: dict[str, Callable[[State, Body], None]] = {
    "plan_approved": _plan_approved,
    "experiment_opened": _experiment_opened,
    "experiment_moved": _experiment_moved,
    "run_registered": _run_registered,
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "run_ended": _run_ended,
    "alarm_raised": _of_a_run,
    "checkpoint_recorded": _of_a_run,
    "checkpoint_removed": _checkpoint_removed,
    "held_out_queried": _held_out_queried,
    "evaluation_recorded": _evaluation_recorded,
    "verdict_recorded": _verdict_recorded,
    "decision_recorded": _decision_recorded,
    "session_started": _session_started,
    "session_ended": _session_ended,
    "log_imported": _log_imported,
    "hand_off_written": _hand_off_written,
    "prior_recorded": _prior_recorded,
    **PROGRAM_RULES,
}
