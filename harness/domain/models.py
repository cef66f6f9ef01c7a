"""A trained model's way to be served."""

from enum import StrEnum

from harness.errors import TransitionError

BASE = "base"
"""What an evaluation is against when its baseline is the base model."""


class ModelState(StrEnum):
    REGISTERED = "registered"  # a validated result brought it
    CANDIDATE = "candidate"  # an evaluation speaks for it
    SHADOW = "shadow"  # it runs beside the deployed one, and its answers are not used
    PROMOTABLE = "promotable"  # its shadow time was good
    DEPLOYED = "deployed"  # served
    RETIRED = "retired"  # was deployed, and may be again
    REVOKED = "revoked"  # a later evaluation failed; one that passes makes it a candidate again
    REJECTED = "rejected"  # a person said so; final


_REVOKED = frozenset({ModelState.REVOKED, ModelState.REJECTED})

MODEL_TRANSITIONS: dict[ModelState, frozenset[ModelState]] = {
    ModelState.REGISTERED: _REVOKED | {ModelState.CANDIDATE},
    ModelState.CANDIDATE: _REVOKED | {ModelState.SHADOW},
    ModelState.SHADOW: _REVOKED | {ModelState.PROMOTABLE},
    ModelState.PROMOTABLE: _REVOKED | {ModelState.DEPLOYED},
    ModelState.DEPLOYED: _REVOKED | {ModelState.RETIRED},
    ModelState.RETIRED: _REVOKED | {ModelState.DEPLOYED},
    ModelState.REVOKED: frozenset({ModelState.CANDIDATE, ModelState.REJECTED}),
    ModelState.REJECTED: frozenset(),
}


def require_model_transition(model: str, before: ModelState, after: ModelState) -> None:
    """Raises TransitionError when `after` may not follow `before`."""
    if after not in MODEL_TRANSITIONS[before]:
        following = ", ".join(sorted(MODEL_TRANSITIONS[before])) or "nothing: it is final"
        raise TransitionError(
            f"Model {model[:12]} is {before}; it cannot become {after} (what may follow {before}:"
            f" {following}).",
            hint="`harness posttrain status` lists the models.",
        )
