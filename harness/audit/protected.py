"""The audit of protected paths: what changed since a person accepted it, in which session, and the
calls that went past the guards. No part of it needs a hook that fired."""

from collections.abc import (
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.artifacts.trees import linked_roots
from harness.audit.activity import (
    Activity,
    Call,
    Unread,
    read_activities,
    transcripts_of,
)
from harness.audit.attribution import (
    Names,
    Suspect,
    spells,
    suspects,
)
from harness.audit.changes import (
    Change,
    control_changes,
    list_changes,
    page_changes,
    policy_changes,
    receipt_changes,
    recorded_changes,
)
from harness.audit.unguarded import (
    Unguarded,
    judged_again,
    unguarded,
)
from harness.clock import parse_iso
from harness.contract.installation import AGENTS
from harness.domain.late import Late, dataclass
from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS
from harness.guard.accepted import (
    Accepted,
    accepted_list,
    note_receipts,
)
from harness.guard.agent_files import AgentFile, read_agents
from harness.guard.policy.snapshot import in_tree
from harness.ledger.project import Project
from harness.settings import CONFIG, main_root


@dataclass(frozen=True, kw_only=True)
class AuditReport(Late):
    accepted: Accepted | None
    changes: tuple[tuple[Change, tuple[Suspect, ...]], ...]
    unguarded: tuple[Unguarded, ...]
    sessions: int
    """Number of those with receipts or a transcript."""
    unseen: int
    """Calls without a receipt of the guard, harmless ones too."""
    agents: tuple[AgentFile, ...]
    """Agent files that Claude Code may misread."""
    unread: tuple[Unread, ...] = ()
    """Transcripts that nobody can read, or not all of."""

    @property
    def clean(self) -> bool:
        """Never when nothing was accepted, or a transcript was not read: nobody knows then."""
        grave = any(change.grave for change, _ in self.changes)
        found = grave or bool(self.unguarded) or bool(self.unread)
        return self.accepted is not None and not found


def audit_protected(
    project: Project,
    snapshot: Mapping[str, Any],
    transcripts: Sequence[Path],
    edited_pages: Iterable[tuple[str, str, str | None]],
) -> AuditReport:
    """Look at everything; `snapshot` is the policy by the ledger, `transcripts` are folders.

    Writes only how far receipts were seen, so that a later cut is noticed. Raises ConfigError when
    the accepted list is damaged, MissingExtraError when tree-sitter is not installed.
    """
    layout = project.layout
    accepted = accepted_list(project)
    since = parse_iso(accepted.at) if accepted is not None else None
    activities, unread = activities_of(project, transcripts, since)
    snapshots = _snapshots(snapshot, layout.root)
    cut = receipt_changes(project, accepted) if accepted is not None else []
    changes = [
        *list_changes(project, accepted),
        *(control_changes(layout.root, accepted) if accepted is not None else []),
        *recorded_changes(project),
        *cut,
        *policy_changes(project, snapshot),
        *page_changes(project, edited_pages),
    ]
    names = _names(snapshots, str(layout.root))
    forbidden: list[Unguarded] = []
    unseen = 0
    approvals = {plan.path: parse_iso(plan.at) for plan in reversed(project.ledger.plans())}
    for activity in activities:
        calls, missed = unguarded(activity, snapshots, since, approvals)
        forbidden += calls
        unseen += missed
    # Last: a kill before this line leaves a cut to be found by the next audit.
    if accepted is not None:
        note_receipts(layout, cut=[Path(change.path).name for change in cut])
    return AuditReport(
        accepted=accepted,
        changes=tuple((change, tuple(suspects(change, activities, names))) for change in changes),
        unguarded=tuple(sorted(forbidden, key=lambda call: call.time)),
        sessions=len(activities),
        unseen=unseen,
        agents=tuple(agent for agent in read_agents(layout.root / AGENTS) if agent.problems),
        unread=tuple(unread),
    )


def changed_while_open(
    project: Project, experiment: Experiment, noticed: Set[str], transcripts: Sequence[Path]
) -> tuple[tuple[Change, tuple[Suspect, ...]], ...]:
    """The control files that changed since a person accepted them and while `experiment` was open,
    but for the entries in `noticed`, each with its sessions. Raises ConfigError
    (accepted_damaged)."""
    # A decided experiment is not blamed for what changed after it.
    if experiment.status in CLOSED_EXPERIMENTS:
        return ()
    accepted = accepted_list(project)
    root, opened = project.layout.root, parse_iso(experiment.opened_at)
    since_accepted = control_changes(root, accepted) if accepted else ()
    changes = [
        change
        for change in (*list_changes(project, accepted), *since_accepted)
        if change.grave
        and not {*change.entries} <= noticed
        and (change.at is None or change.at >= opened)
    ]
    activities = activities_of(project, transcripts, opened)[0] if changes else []
    return tuple(
        (
            change,
            tuple(suspects(change, activities, lambda call, path: spells(call, path, str(root)))),
        )
        for change in changes
    )


def activities_of(
    project: Project, transcripts: Iterable[Path], since: datetime | None
) -> tuple[list[Activity], list[Unread]]:
    """The sessions of the project, its worktrees included; and what of them was not read."""
    root = project.layout.root
    main = main_root(root)
    places = dict.fromkeys((root, main, *linked_roots(main)))
    files = dict.fromkeys(
        path
        for folder in transcripts
        for place in places
        for path in transcripts_of(place, folder, since)
    )
    return read_activities(project.layout.shared("receipts"), files)


def _snapshots(snapshot: Mapping[str, Any], root: Path) -> list[dict[str, Any]]:
    """The rules for the project and for each of its worktrees."""
    main = main_root(root)
    places = [place for place in linked_roots(main) if place != main]
    in_work = {
        str(place): in_tree(snapshot, str(place)) if (place / CONFIG).is_file() else {}
        for place in places
    }
    return [dict(snapshot), *({**snapshot, "root": root, **own} for root, own in in_work.items())]


def _names(snapshots: Sequence[Mapping[str, Any]], root: str) -> Names:
    """A call names a path when it spells it, or when a rule denies the call because of it."""
    # Parsing a shell command is slow, and each change asks about each call: by the call's identity.
    denied: dict[int, tuple[str, ...]] = {}

    def names(call: Call, path: str) -> bool:
        if spells(call, path, root):
            return True
        if id(call) not in denied:
            denial = judged_again(call, snapshots) if call.input else None
            denied[id(call)] = tuple(denial["paths"]) if denial else ()
        return any(
            path == part or path.startswith(part.rstrip("/") + "/") for part in denied[id(call)]
        )

    return names
