"""What the loop knows when it chooses its next step: frozen data, counted and ranked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from harness.artifacts.next_ideas import CONFIDENCE, Idea
from harness.domain.findings import Finding
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    FINAL_RUNS,
    DecisionKind,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Split,
    Tier,
    Verdict,
)

FAILED_IN_A_ROW = 3
"""Sessions that ended without doing their work, before the loop stops."""
CUT_IN_A_ROW = 10
"""Cut sessions before the loop stops. More than the above: a kill says nothing about the work."""
MOST_IDEAS = 5

_CUT = "cut"
_VOID = "void"
UNSERVED = "unserved"
"""Of a session that the model service did not serve: its step is due again."""
BROKEN = ("refused", "malformed", "max_tokens", "rejected")
"""Outcomes of sessions that never came to do their work: they say nothing about it."""
_SEVERITY = ("fatal", "warning")


@dataclass(frozen=True, kw_only=True)
class RunState:
    """One of the runs that count (one a seed, of the newest code)."""

    id: str
    seed: int
    status: RunStatus
    supervised: bool = False
    """Whether the supervisor of an open run is alive."""
    bypassed: bool = False
    reason: str = ""
    stopped_by: str = ""
    """The code of the alarm that ended it."""

    @property
    def open(self) -> bool:
        return self.status not in FINAL_RUNS


@dataclass(frozen=True, kw_only=True)
class VerdictState:
    id: str
    verdict: Verdict
    current: bool
    """False when something that the verdict read has changed since."""
    findings: tuple[Finding, ...] = ()
    tier: Tier | None = None
    better: bool | None = None
    """Than the parent, or the trivial predictor, beyond the noise floor; None: not decidable."""
    why: str = ""
    """The comparison in words."""
    score: float | None = None
    """The mean over seeds; None without one, and where labels are hidden."""
    spread: float | None = None
    """Sample standard deviation over seeds."""
    recorded: int = 1
    """How many verdicts of this gate the experiment has."""


@dataclass(frozen=True, kw_only=True)
class SessionState:
    step: str
    """The key of the step that it served, e.g. "build-1-1"."""
    outcome: str | None
    """As `SessionEnding` says; None when its end was never recorded: its driver died."""
    counted: bool = True
    """False for sessions before the newest LoopEnded: a person who continues gives a new chance."""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    id: str
    status: ExperimentStatus
    runs: tuple[RunState, ...] = ()
    argv: tuple[str, ...] = ()
    """The command of the newest run; empty before the first."""
    held: bool = False
    """Whether a living process supervises it, also between two runs; asked in a loop that has
    several open."""
    lost: int = 0
    """Runs of the newest code that were lost with their supervisor."""
    awaiting: frozenset[str] = frozenset()
    """Scorable runs whose final checkpoint has no evaluation on validation yet."""
    awaiting_held_out: frozenset[str] = frozenset()
    result_written: bool = False
    hypothesis: str = ""
    model: str = "model"
    """What config.yaml calls it."""
    alarms: Mapping[str, str] = field(default_factory=dict)
    """Code -> severity of the open alarms of its runs."""
    undiagnosed: tuple[str, ...] = ()
    """Runs with an open alarm that no diagnosis explains."""
    methods_written: bool = False
    ideas: tuple[Idea, ...] = ()
    """The ideas in its next.md, in its order; only of the newest experiment here."""
    validation: VerdictState | None = None
    held_out: VerdictState | None = None
    decided: DecisionKind | None = None
    """The newest decision about it, whoever made it: KEEP, DISCARD, APPROVE, REJECT, ITERATE ..."""
    here: bool = True
    """Whether it was opened in this working tree."""
    parent: str | None = None
    """What it was opened to build on."""
    repeats: bool = False
    """Whether it only trained a kept one again."""
    unsound: bool = False
    """Whether its contract was broken, or a person rejected it: nothing builds on it."""
    improved: bool = False
    """Whether it beat all before it by more than the noise, in the plan's direction."""

    @property
    def closed(self) -> bool:
        return self.status in CLOSED_EXPERIMENTS

    def verdict(self, gate: GateName) -> VerdictState | None:
        return self.validation if gate is GateName.VALIDATION else self.held_out


@dataclass(frozen=True, kw_only=True)
class LoopLimits:
    """The plan's numbers that stop a loop."""

    seeds: int
    experiments: int
    total_minutes: float
    usd: float | None
    tokens: int | None = None
    stop_tier: Tier
    patience: int
    mode: GateMode = GateMode.AUTO
    search: str = "line"
    """What the next experiment builds on: see loop.branches."""
    maximize: bool = True
    references: bool = False
    """Whether the plan names papers and baselines that a scout can read."""


@dataclass(frozen=True, kw_only=True)
class LoopSpending:
    minutes: float = 0.0
    """Of training, by all runs under this plan, those included that run now."""
    usd: float = 0.0
    tokens: int = 0
    """By all sessions."""
    held_out_left: int = 1
    """Held-out evaluations that the plan still allows."""
    elsewhere: int = 0
    """Experiments under the plan that other working trees have in work."""
    untellable: frozenset[Split] = frozenset()
    """Splits with secret labels of which the plan's bits allow no further answer."""


@dataclass(frozen=True, kw_only=True)
class PhaseState:
    """The phase that is due."""

    name: str
    role: str | None
    """Whose session works on it; None: experiments do."""
    missing: tuple[str, ...] = ()
    """Names in contract.phases.EVIDENCE."""


@dataclass(frozen=True, kw_only=True)
class LoopState:
    limits: LoopLimits
    spent: LoopSpending = field(default_factory=LoopSpending)
    experiments: tuple[ExperimentState, ...] = ()
    """Under the plan, oldest first; of other working trees those that are closed. The k-th of this
    tree has index k: what another tree does meanwhile changes no number."""
    sessions: tuple[SessionState, ...] = ()
    """Of this working tree, oldest first."""
    parallel: int = 1
    """How many experiments of this tree may be open at once."""
    phase: PhaseState | None = None
    """None where phases are no gates, or all are passed."""
    earlier: int = 0
    """So many experiments are of before the phase of experiments was opened again: neither target
    nor patience counts them."""
    unchanged: int = 0
    """How many steps in a row left this state as it was; the loop's runner counts them."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the sessions of one kind for one experiment add up to."""

    attempt: int
    """The attempt to make now. A cut session repeats its number; an ended one uses it up."""
    ended: int
    """Sessions that ended by themselves, since `after`."""
    failed_too_often: bool
    """Meaningful only while none of them did its work."""
    cut_too_often: bool
    broken: str = ""
    """The outcome of the newest that ended, if it is one of BROKEN."""
    why: str = ""
    """Its words."""


def tally(sessions: Sequence[SessionState], prefix: str, *, after: int = 0) -> Tally:
    """Count the sessions whose step starts with `prefix`, e.g. "build-2-"; `ended` only from
    position `after` on.

    Sessions of a loop that has ended do not count against its continuation (`counted`).
    """
    mine = [
        (place, session)
        for place, session in enumerate(sessions)
        if session.step.startswith(prefix) and session.outcome != _VOID
    ]
    undone = (None, _CUT, UNSERVED)
    ended = [(place, session) for place, session in mine if session.outcome not in undone]
    last = ended[-1][0] if ended else -1
    newest = ended[-1][1] if ended else SessionState(step="", outcome="")
    failed = sum(session.counted for _, session in ended)
    # Only cuts since the last session that ended: one that came through shows that sessions can.
    cut = sum(
        session.counted and session.outcome == _CUT for place, session in mine if place > last
    )
    return Tally(
        attempt=len(ended) + 1,
        # One that broke before a person continued is no try of the work.
        ended=sum(
            place >= after and (session.counted or session.outcome not in BROKEN)
            for place, session in ended
        ),
        failed_too_often=failed >= FAILED_IN_A_ROW,
        cut_too_often=cut >= CUT_IN_A_ROW,
        broken=newest.outcome if newest.outcome in BROKEN else "",
        why=newest.detail,
    )


def last_place(sessions: Sequence[SessionState], prefix: str) -> int:
    """One past the position of the newest session of `prefix`; 0 when there is none."""
    return max(
        (
            place + 1
            for place, session in enumerate(sessions)
            if session.step.startswith(prefix) and session.outcome != _VOID
        ),
        default=0,
    )


def rank(
    ideas: Sequence[Idea], alarms: Mapping[str, str], tried: Collection[str]
) -> tuple[Idea, ...]:
    """The best five ideas, without hypotheses that were tried before.

    First what answers a fatal alarm, then what answers a warning, then the rest; among equals the
    more confident, then the order in which they were written.

    Args:
        alarms: code -> severity of the open alarms.
        tried: hypotheses of earlier experiments.
    """
    known = {_folded(text) for text in tried}
    fresh: dict[str, Idea] = {}
    for idea in ideas:
        if _folded(idea.text) not in known:
            fresh.setdefault(_folded(idea.text), idea)
    ordered = sorted(fresh.values(), key=lambda idea: (_severity(idea, alarms), _confidence(idea)))
    return tuple(ordered[:MOST_IDEAS])


def _severity(idea: Idea, alarms: Mapping[str, str]) -> int:
    severity = alarms.get(idea.answers or "")
    return _SEVERITY.index(severity) if severity in _SEVERITY else len(_SEVERITY)


def _confidence(idea: Idea) -> int:
    return CONFIDENCE.index(idea.confidence) if idea.confidence in CONFIDENCE else len(CONFIDENCE)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
