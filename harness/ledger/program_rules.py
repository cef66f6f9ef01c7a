"""What must hold before a fact of a training program may be appended."""

from collections.abc import Callable
from typing import Any

from harness.domain.models import ModelState, require_model_transition
from harness.domain.statuses import RunStatus
from harness.errors import NotFoundError, RefusedError
from harness.ledger.state import Row, State

Body = dict[str, Any]


def find_model(state: State, identifier: str) -> Row:
    row = state.get("models", identifier)
    if row is None:
        raise NotFoundError(
            f"There is no model {identifier[:12]!r}.",
            hint="`harness posttrain status` lists the models.",
        )
    return row


def _training_specified(state: State, body: Body) -> None:
    if state.get("experiments", body["experiment"]) is None:
        raise NotFoundError(
            f"There is no experiment {body['experiment']!r}.", hint="Open it first."
        )
    if state.get("programs", body["experiment"]) is not None:
        raise RefusedError(
            f"{body['experiment']} has a specification already.",
            hint="Open a new experiment.",
            code="id_taken",
        )


def _training_judged(state: State, body: Body) -> None:
    _running(state, body)


def _model_registered(state: State, body: Body) -> None:
    _running(state, body)
    if state.get("checkpoints", body["experiment"], body["run"], body["model"]) is None:
        raise RefusedError(
            f"{body['experiment']}/{body['run']} has no checkpoint {body['model'][:12]}.",
            hint="Record the checkpoint before the model.",
        )


def _running(state: State, body: Body) -> None:
    """A result is judged, and its model registered, while the run is still open: nothing is added
    to an ended one."""
    run = state.get("runs", body["experiment"], body["run"])
    if run is None:
        raise NotFoundError(
            f"There is no run {body['experiment']}/{body['run']}.", hint="Register it first."
        )
    if run["status"] != RunStatus.RUNNING:
        raise RefusedError(
            f"{body['experiment']}/{body['run']} is {run['status']}; only a running one's result is"
            " judged.",
            hint=f"Look at it with `harness experiment show {body['experiment']}`.",
            code="run_ended",
        )


def _of_a_model(state: State, body: Body) -> None:
    find_model(state, body["model"])


def _model_moved(state: State, body: Body) -> None:
    row = find_model(state, body["model"])
    if body["before"] != row["state"]:
        raise RefusedError(
            f"Model {body['model'][:12]} is {row['state']} meanwhile, not {body['before']}.",
            hint="Look at `harness posttrain status`, then decide again.",
            code="model_moved",
        )
    require_model_transition(body["model"], ModelState(row["state"]), ModelState(body["after"]))


def _model_served(state: State, body: Body) -> None:
    if body["model"] is None:
        return
    row = find_model(state, body["model"])
    if row["state"] != ModelState.DEPLOYED or row["profile"] != body["profile"]:
        raise RefusedError(
            f"Model {body['model'][:12]} is {row['state']} for {row['profile']}; only a deployed"
            " one is served.",
            hint="Promote it first: `harness posttrain promote`.",
            code="not_deployed",
        )


PROGRAM_RULES: dict[str, Callable[[State, Body], None]] = {
    "training_specified": _training_specified,
    "training_judged": _training_judged,
    "model_registered": _model_registered,
    "model_evaluated": _of_a_model,
    "shadow_observed": _of_a_model,
    "model_moved": _model_moved,
    "model_served": _model_served,
}
