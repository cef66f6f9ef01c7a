"""Where a command came from, and the grade of a score: its weakest link.

A score is recomputed, always. How far the recomputing can be trusted hangs on three links: the
session that could change what runs, the training that made the checkpoint, and the predict that
answered. One that was not confined lowers the grade by its name; nothing raises it again.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any

from harness.domain.late import Late, dataclass
from harness.domain.statuses import Evidence, SandboxKind


class CallerKind(StrEnum):
    PERSON = "person"
    """A person, or a person's script, and no sign of an unsandboxed session."""
    DRIVER = "driver"
    """The loop, and the supervisors that it starts: its agents have no shell that reaches us."""
    ISOLATED = "isolated"
    """A sandboxed session, through the judge's server."""
    OPEN = "open"
    """Below a plain Claude Code session, or one worked on the experiment: what runs, and our own
    process, was in an agent's hands."""
    UNKNOWN = "unknown"
    """Nobody decided it: an older version's fact, or a program that used the package itself."""


_OF_A_SESSION = frozenset({CallerKind.DRIVER, CallerKind.ISOLATED})


@dataclass(frozen=True)
class Caller(Late):
    """Facts hold it as text: "person", "open", "driver:bwrap", "isolated:landlock"."""

    kind: CallerKind
    sandbox: SandboxKind = SandboxKind.NONE
    """What confines the agents of a driver or of an isolated session."""

    @classmethod
    def read(cls, text: str | None) -> "Caller":
        """`UNKNOWN` for None, and for text that is no caller."""
        kind, _, sandbox = (text or "").partition(":")
        if kind not in set(CallerKind) or (sandbox and sandbox not in set(SandboxKind)):
            return UNKNOWN
        caller = cls(CallerKind(kind), SandboxKind(sandbox or "none"))
        return caller if str(caller) == text else UNKNOWN

    def __str__(self) -> str:
        return f"{self.kind}:{self.sandbox}" if self.kind in _OF_A_SESSION else self.kind.value

    @property
    def agent(self) -> bool:
        """Whether it is an agent, or acts for one: no human verbs."""
        return self.kind is not CallerKind.PERSON

    @property
    def isolated(self) -> bool:
        """Whether no agent could change what the command did."""
        if self.kind in _OF_A_SESSION:
            return self.sandbox is not SandboxKind.NONE
        return self.kind is CallerKind.PERSON

    @property
    def strength(self) -> int:
        """As of a sandbox; a person has none and needs none."""
        if self.kind in _OF_A_SESSION:
            return self.sandbox.strength
        return (SandboxKind.BWRAP if self.isolated else SandboxKind.NONE).strength


PERSON, OPEN, UNKNOWN = (
    Caller(kind) for kind in (CallerKind.PERSON, CallerKind.OPEN, CallerKind.UNKNOWN)
)


class Link(StrEnum):
    """What a score hangs on; a grade names those that were not isolated, in this order."""

    SESSION = "session"
    TRAINING = "training"
    PREDICT = "predict"
    LOCAL_SOCKETS = "local sockets"
    """Landlock restricts no connection to a Unix socket by its path: a server of this machine that
    the user may reach, such as a container daemon, could have read for what was confined."""
    ELSEWHERE = "training on another machine"
    """Its supervisor ran beside it there, with its sandbox; who else may write on that machine, and
    in the folder that both share, nobody here knows."""

    @property
    def words(self) -> str:
        return self.value if self is Link.ELSEWHERE else f"{self.value} not isolated"


@dataclass(frozen=True)
class Grade(Late):
    """How well a recomputed score is known."""

    not_isolated: tuple[Link, ...] = ()

    @classmethod
    def read(cls, links: Iterable[str] | None) -> "Grade":
        """Of the words that a fact holds; of None, which an older one does, the session is not
        known."""
        return cls.lowered((Link.SESSION,) if links is None else (Link(name) for name in links))

    @classmethod
    def lowered(cls, links: Iterable[Link]) -> "Grade":
        known = set(links)
        return cls(tuple(link for link in Link if link in known))

    @property
    def and_session(self) -> "Grade":
        """Lowered by a session that was not isolated."""
        return Grade.lowered((*self.not_isolated, Link.SESSION))

    @property
    def words(self) -> str:
        """E.g. "recomputed", "recomputed, session not isolated, predict not isolated"."""
        return ", ".join(filter(None, (Evidence.RECOMPUTED.value, self.lacks)))

    @property
    def lacks(self) -> str:
        """What follows `recomputed`; empty where nothing does."""
        return ", ".join(link.words for link in self.not_isolated)

    @property
    def codes(self) -> list[str]:
        return [link.value for link in self.not_isolated]


def grade_of(
    session: Collection[Caller],
    training: Collection[str],
    predict: Collection[str],
    *,
    elsewhere: bool = False,
) -> Grade:
    """The weakest link of a score: of all callers that had a part in it, of the sandboxes of all
    its trainings and predicts, and of a training `elsewhere`, on another machine."""
    lowered = []
    if not all(caller.isolated for caller in session):
        lowered.append(Link.SESSION)
    if any(sandbox == SandboxKind.NONE for sandbox in training):
        lowered.append(Link.TRAINING)
    if any(sandbox == SandboxKind.NONE for sandbox in predict):
        lowered.append(Link.PREDICT)
    sessions = [caller.sandbox for caller in session if caller.kind in _OF_A_SESSION]
    if SandboxKind.LANDLOCK in {*training, *predict, *sessions}:
        lowered.append(Link.LOCAL_SOCKETS)
    if elsewhere:
        lowered.append(Link.ELSEWHERE)
    return Grade(tuple(lowered))


def was_elsewhere(job: Mapping[str, Any] | None) -> bool:
    """Whether an engine placed the run of this job on another machine than the one that asked."""
    handle = {} if job is None else job.get("handle") or {}
    return bool(handle.get("placed", {}).get("elsewhere"))


def next_job(before: Mapping[str, Any] | None, job: Mapping[str, Any]) -> Mapping[str, Any]:
    """The job of a run's further attempt: one elsewhere lowers the grade for all of them."""
    if not was_elsewhere(before):
        return job
    placed = {**job["handle"].get("placed", {}), "elsewhere": True}
    return {**job, "handle": {**job["handle"], "placed": placed}}


def weakest(first: Caller, second: Caller) -> Caller:
    """Of two callers that had a part in one thing, the one that isolates less; else the first."""
    return second if second.strength < first.strength else first
