"""The phases of a project, as data: which a workflow has, in which order, what facts show that one
is done, and whose session works on it. No code knows a phase by its name but `TRAIN`, in which the
loop of experiments runs."""

from collections.abc import Mapping
from dataclasses import dataclass

TRAIN = "train"
"""Experiments; the loop's own limits end it."""

NOTE, SOURCES, PLAN, KEPT, REPRODUCED = "note", "sources", "plan", "kept", "reproduced"
EVIDENCE: Mapping[str, str] = {
    NOTE: "what was found in this phase, recorded (`record_phase`, or a person's reason)",
    SOURCES: "at least one source that its note names",
    PLAN: "a plan that a person approved, with its data reviewed and held-out rows put away",
    KEPT: "an experiment that is kept",
    REPRODUCED: "a kept experiment that `harness reproduce` came to again",
}
"""Name -> what it is. Facts of before a phase was opened again do not count for it."""
BY_SESSION = frozenset((NOTE, SOURCES))
"""What a session of the phase's role can bring about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    role: str | None
    """Whose session works on it; None: the loop of experiments."""
    purpose: str
    needs: Mapping[str, tuple[str, ...]]
    """Workflow -> names in EVIDENCE; a workflow that is not here does not have the phase."""


_ALL = ("classical-ml", "deep-learning", "post-training", "research")
_DESIGNED = _ALL[1:]

PHASES: tuple[Phase, ...] = (
    Phase(
        name="survey",
        role="research-scout",
        purpose="Say what is known of the question: methods, baselines, their numbers and sources.",
        needs={"research": (NOTE, SOURCES)},
    ),
    Phase(
        name="data",
        role="data-engineer",
        purpose="Say what the data is: rows, labels, missing values, duplicates, what could leak.",
        needs=dict.fromkeys(_ALL, (PLAN, NOTE)),
    ),
    Phase(
        name="design",
        role="code-reviewer",
        purpose="Read the code before minutes are spent on it: leaks, splits, seeds.",
        needs=dict.fromkeys(_DESIGNED, (NOTE,)),
    ),
    Phase(
        name=TRAIN,
        role=None,
        purpose="Experiments, until a tier, a budget or patience ends them.",
        needs=dict.fromkeys(_ALL, (KEPT,)),
    ),
    Phase(
        name="analyse",
        role="analyst",
        purpose="Say why the kept experiment is better, where it fails, and what is not known.",
        needs=dict.fromkeys(_ALL, (NOTE,)),
    ),
    Phase(
        name="package",
        role="software-engineer",
        purpose="Make the kept model usable: its predict command, what it needs, how to call it.",
        needs=dict.fromkeys(_ALL, (NOTE,)) | {"research": (NOTE, REPRODUCED)},
    ),
)
PHASE_BY_NAME: Mapping[str, Phase] = {phase.name: phase for phase in PHASES}


def phases_of(workflow: str) -> tuple[Phase, ...]:
    """Those of a workflow, in their order."""
    return tuple(phase for phase in PHASES if workflow in phase.needs)
