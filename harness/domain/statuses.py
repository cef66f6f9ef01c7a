"""The closed sets of words that the ledger stores, and which status may follow which."""

from enum import StrEnum

from harness.errors import TransitionError


class ExperimentStatus(StrEnum):
    OPEN = "open"
    RUNNING = "running"
    JUDGED = "judged"
    KEPT = "kept"
    DISCARDED = "discarded"


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"  # the harness ended it: a limit, a stop, a fatal alarm
    LOST = "lost"  # its supervisor died and what became of it cannot be known
    CANCELLED = "cancelled"  # a person said so


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    STALE = "STALE"


class DecisionKind(StrEnum):
    KEEP = "KEEP"
    DISCARD = "DISCARD"
    ITERATE = "ITERATE"
    ESCALATE = "ESCALATE"
    APPROVE = "APPROVE"
    REJECT = "REJECT"
    OVERRIDE = "OVERRIDE"
    PROMOTE = "PROMOTE"
    ROLLBACK = "ROLLBACK"
    CANCEL = "CANCEL"


class Evidence(StrEnum):
    """How well a number is known. Only `recomputed` can decide a score; `claimed` decides
    nothing."""

    CLAIMED = "claimed"
    LOGGED = "logged"
    RECOMPUTED = "recomputed"
    RECOMPUTED_NOT_ISOLATED = "recomputed, not isolated"


class SandboxKind(StrEnum):
    BWRAP = "bwrap"
    LANDLOCK = "landlock"
    NONE = "none"


class HooksMode(StrEnum):
    """How the hooks of a project come to an interactive session."""

    PROJECT = "project"
    """Vendored into the project and named in its settings; in the harness's own repository its
    hooks/ as they stand."""
    PLUGIN = "plugin"
    """The plugin's, which the person has installed; nothing of the harness is outside .harness/."""
    NONE = "none"
    """None: agents of the loop are guarded by the driver, an interactive session by nobody."""


class Direction(StrEnum):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Tier(StrEnum):
    """In rising order of ambition; `must` is the least that counts as success."""

    MUST = "must"
    SHOULD = "should"
    COULD = "could"


class Split(StrEnum):
    VALIDATION = "validation"
    HELD_OUT = "held_out"


class GateName(StrEnum):
    VALIDATION = "validation"
    HELD_OUT = "held_out"


def spoken(name: str) -> str:
    """A split's or a gate's name as people write it: held-out."""
    return name.replace("_", "-")


class GateMode(StrEnum):
    """How much the loop decides without a person."""

    SUPERVISED = "supervised"  # a person keeps; the loop only discards
    AUTO = (  # the loop keeps and discards; where the numbers leave it open, it waits for a person
        "auto"
    )
    FULL_AUTO = "full-auto"  # it waits for nobody: what the numbers leave open is discarded


RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset(
        {RunStatus.RUNNING, RunStatus.FAILED, RunStatus.LOST, RunStatus.CANCELLED}
    ),
    RunStatus.RUNNING: frozenset(
        {
            RunStatus.COMPLETED,
            RunStatus.FAILED,
            RunStatus.KILLED,
            RunStatus.LOST,
            RunStatus.CANCELLED,
        }
    ),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.FAILED: frozenset({RunStatus.PENDING}),  # `train --resume` launches the run again
    RunStatus.KILLED: frozenset({RunStatus.PENDING}),
    RunStatus.LOST: frozenset({RunStatus.PENDING}),
    RunStatus.CANCELLED: frozenset({RunStatus.PENDING}),
}

EXPERIMENT_TRANSITIONS: dict[ExperimentStatus, frozenset[ExperimentStatus]] = {
    ExperimentStatus.OPEN: frozenset(
        {ExperimentStatus.RUNNING, ExperimentStatus.JUDGED, ExperimentStatus.DISCARDED}
    ),
    ExperimentStatus.RUNNING: frozenset(
        {ExperimentStatus.OPEN, ExperimentStatus.JUDGED, ExperimentStatus.DISCARDED}
    ),
    ExperimentStatus.JUDGED: frozenset(
        {
            ExperimentStatus.OPEN,
            ExperimentStatus.RUNNING,
            ExperimentStatus.KEPT,
            ExperimentStatus.DISCARDED,
        }
    ),
    ExperimentStatus.KEPT: frozenset(
        {ExperimentStatus.DISCARDED}
    ),  # an OVERRIDE or a ROLLBACK by a person
    ExperimentStatus.DISCARDED: frozenset({ExperimentStatus.KEPT}),  # an OVERRIDE by a person
}

FINAL_RUNS = frozenset(RunStatus) - {RunStatus.PENDING, RunStatus.RUNNING}
"""Nothing of such a run is going on."""
CLOSED_EXPERIMENTS = frozenset({ExperimentStatus.KEPT, ExperimentStatus.DISCARDED})


def require_run_transition(run: str, before: RunStatus, after: RunStatus) -> None:
    """Raises TransitionError naming the run and both statuses when `after` may not follow
    `before`."""
    _require(run, before, after, RUN_TRANSITIONS[before])


def require_experiment_transition(
    experiment: str, before: ExperimentStatus, after: ExperimentStatus
) -> None:
    """Raises TransitionError naming the experiment and both statuses when `after` may not follow
    `before`."""
    _require(experiment, before, after, EXPERIMENT_TRANSITIONS[before])


def _require(name: str, before: StrEnum, after: StrEnum, allowed: frozenset[StrEnum]) -> None:
    if after not in allowed:
        following = ", ".join(sorted(allowed)) or "nothing: it is final"
        raise TransitionError(
            f"{name} is {before}; it cannot become {after} (what may follow {before}:"
            f" {following}).",
            hint=f"Look at it with `harness experiment show {name.split('/')[0]}`.",
        )
