"""The enumerations that the ledger stores, and the transitions between statuses."""

from enum import StrEnum

from harness.errors import RefusedError, TransitionError


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
    LOST = "lost"  # its supervisor or its node went; the outcome is unknown
    CANCELLED = "cancelled"  # by a person


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    STALE = "STALE"


class DecisionKind(StrEnum):
    KEEP = "KEEP"
    DISCARD = "DISCARD"
    ITERATE = "ITERATE"
    APPROVE = "APPROVE"
    REJECT = "REJECT"
    OVERRIDE = "OVERRIDE"
    PROMOTE = "PROMOTE"
    ROLLBACK = "ROLLBACK"
    CANCEL = "CANCEL"
    BRANCH = "BRANCH"  # what the next experiment builds on
    RENAME = "RENAME"  # two clones gave one id twice; who merged them renamed its own
    DEAD_END = "DEAD_END"  # the same training or idea again: told, then left or done all the same
    PHASE = "PHASE"  # a phase was passed or opened again
    STOP = "STOP"  # a run that trails its parent was ended
    WATCHDOG = "WATCHDOG"  # a session that found out nothing was nudged or ended
    MODE = "MODE"  # a person said what the loop may decide by itself
    LOWER = "LOWER"  # a person ran agents' code with less isolation than works here


class Evidence(StrEnum):
    """How well a number is known. Only `recomputed` decides a score; `domain.grade` says what of it
    was not isolated. `claimed` decides nothing."""

    CLAIMED = "claimed"
    LOGGED = "logged"
    RECOMPUTED = "recomputed"


class SandboxKind(StrEnum):
    BWRAP = "bwrap"
    LANDLOCK = "landlock"
    NONE = "none"

    @property
    def strength(self) -> int:
        """The order of all that asks which of two isolates less."""
        return _STRENGTH.index(self)


_STRENGTH = (SandboxKind.NONE, SandboxKind.LANDLOCK, SandboxKind.BWRAP)


class HooksMode(StrEnum):
    """Where an interactive session gets the hooks of a project."""

    PROJECT = "project"
    """Vendored into the project and named in its settings; our own repository uses its hooks/."""
    PLUGIN = "plugin"
    """From the installed plugin; the harness writes only inside .harness/."""
    NONE = "none"
    """No hooks: the driver guards the loop's agents; interactive sessions are unguarded."""


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
    """The name of a split or a gate for display: held-out."""
    return name.replace("_", "-")


class GateMode(StrEnum):
    """How much the loop decides without a person."""

    SUPERVISED = "supervised"
    """A person keeps; the loop only discards."""
    AUTO = "auto"
    """The loop keeps and discards; when the numbers do not decide, it waits for a person."""
    FULL_AUTO = "full-auto"
    """The loop never waits: when the numbers do not decide, it discards."""


RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset(
        {RunStatus.RUNNING, RunStatus.FAILED, RunStatus.LOST, RunStatus.CANCELLED}
    ),
    RunStatus.RUNNING: frozenset(RunStatus) - {RunStatus.PENDING, RunStatus.RUNNING},
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
    ExperimentStatus.JUDGED: frozenset(ExperimentStatus) - {ExperimentStatus.JUDGED},
    # A person's OVERRIDE or ROLLBACK.
    ExperimentStatus.KEPT: frozenset({ExperimentStatus.DISCARDED}),
    # A person's OVERRIDE.
    ExperimentStatus.DISCARDED: frozenset({ExperimentStatus.KEPT}),
}

FINAL_RUNS = frozenset(RunStatus) - {RunStatus.PENDING, RunStatus.RUNNING}
"""Statuses of runs that have ended."""
CLOSED_EXPERIMENTS = frozenset({ExperimentStatus.KEPT, ExperimentStatus.DISCARDED})


def require_open_experiment(
    identifier: str, status: str, why: str = "it gets no further runs"
) -> None:
    """Raises RefusedError for an experiment that was decided."""
    if status in CLOSED_EXPERIMENTS:
        raise RefusedError(
            f"{identifier} is {status}: {why}.",
            hint="Open a new experiment with it as the parent.",
            code="experiment_closed",
        )


def require_run_transition(run: str, before: RunStatus, after: RunStatus) -> None:
    """Raises TransitionError when `after` may not follow `before`."""
    _require(run, before, after, RUN_TRANSITIONS[before])


def require_experiment_transition(
    experiment: str, before: ExperimentStatus, after: ExperimentStatus
) -> None:
    """Raises TransitionError when `after` may not follow `before`."""
    _require(experiment, before, after, EXPERIMENT_TRANSITIONS[before])


def _require(name: str, before: StrEnum, after: StrEnum, allowed: frozenset[StrEnum]) -> None:
    if after not in allowed:
        following = ", ".join(sorted(allowed)) or "nothing: it is final"
        raise TransitionError(
            f"{name} is {before} and cannot become {after}; allowed: {following}.",
            hint=f"Inspect it with `harness experiment show {name.split('/')[0]}`.",
        )
