"""`harness audit`: what changed at protected paths, and in which session."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from harness.audit.activity import transcript_home
from harness.audit.attribution import NOBODY, Suspect
from harness.audit.changes import Change, ChangeKind, control_changes
from harness.audit.open_sessions import note_beginning
from harness.audit.protected import AuditReport, audit_protected
from harness.audit.unguarded import Unguarded
from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import ASK, require_person, require_yes
from harness.cli.reading import reading
from harness.clock import iso
from harness.errors import ConfigError
from harness.guard.accepted import Accepted, accept_on_record, accepted_list, control_listing
from harness.ledger.project import Project
from harness.projections.refresh import edited_pages
from harness.rendering.policy_snapshot import policy_snapshot

_MOST_SESSIONS = 3
_REMEDIES = {
    ChangeKind.PAGE: "the ledger says otherwise; `harness ledger rebuild` rewrites the page",
    ChangeKind.LIST: (
        "the ledger has a different list of accepted files; compare the files with git before you"
        " accept them"
    ),
}
_NEXT = (
    "Review each change and restore what should not have changed. A person then accepts the rest"
    " with `harness audit --accept`."
)


@click.command("audit")
@click.option(
    "--accept",
    "accepting",
    is_flag=True,
    help="Accept the control files as they are now. Must be run by a person.",
)
@click.option(
    "--began",
    metavar="SESSION",
    help="Record that a plain Claude Code session began here; its SessionStart hook does this.",
)
@click.option(
    "--transcripts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="A folder of Claude Code transcripts; default: where the CLI keeps them.",
)
@ASK
@project_option
@json_option
def command(
    accepting: bool,
    began: str | None,
    transcripts: tuple[Path, ...],
    ask: bool,
    project: Path,
    as_json: bool,
) -> None:
    """List changed protected files, the sessions that may have changed them, and unguarded calls.

    Records how far it read the sessions' receipts; without --accept and --began nothing else. Exit
    1 when anything was found. --accept --ask names what changed and asks before it counts.
    """
    if accepting and began is not None:
        raise click.UsageError("--accept and --began do not go together.")
    if ask and not accepting:
        raise click.UsageError("--ask belongs to --accept.")
    if accepting:
        by = require_person("audit --accept", environment())
        with changing(project, new_config=True, deriving=True) as opened:
            _accept(opened, by, ask=ask, as_json=as_json)
        return
    if began is not None:
        with changing(project) as opened:
            note_beginning(opened, began)
        emit({"began": began}, f"recorded the session {began}", as_json=as_json)
        return
    folders = transcripts or (transcript_home(environment()),)
    with reading(project) as opened:
        report = audit_protected(
            opened,
            policy_snapshot(opened),
            folders,
            edited_pages(opened),
        )
    emit(_document(report, folders), *_lines(report), as_json=as_json)
    sys.exit(0 if report.clean else 1)


def _accept(project: Project, by: str, *, ask: bool, as_json: bool) -> None:
    layout = project.layout
    try:
        before = accepted_list(project)
    except ConfigError:  # the damaged list is the one that is replaced now
        before = None
    changes = (
        [change.path for change in control_changes(layout.root, before)]
        if before is not None
        else []
    )
    named = [f"  changed: {path}" for path in changes]
    seen = control_listing(layout.root) if ask else None
    if seen is not None:
        shown = [f"This would accept {len(seen)} control files as they are now.", *named]
        require_yes("\n".join(shown), "Accept them?")
    accepted = accept_on_record(project, by=by, seen=seen)
    document = {"accepted": _plain(accepted), "files": len(accepted.paths), "changed": changes}
    head = f"{by} accepted {len(accepted.paths)} control files"
    emit(document, head, *named, as_json=as_json)


def _plain(accepted: Accepted | None) -> dict[str, str] | None:
    return None if accepted is None else {"at": accepted.at, "by": accepted.by}


def _document(report: AuditReport, folders: Sequence[Path]) -> dict[str, Any]:
    return {
        "clean": report.clean,
        "accepted": _plain(report.accepted),
        "changes": [
            {
                "kind": change.kind.value,
                "path": change.path,
                "keys": [part for part, _, _ in change.parts if part],
                "grave": change.grave,
                "expected": change.expected,
                "actual": change.actual,
                "changed_at": None if change.at is None else iso(change.at),
                "sessions": [
                    {
                        "session": suspect.session,
                        "confidence": suspect.words(),
                        "calls": list(suspect.calls),
                    }
                    for suspect in suspects
                ],
                "covered": bool(suspects),
            }
            for change, suspects in report.changes
        ],
        "unguarded": [
            {
                "session": call.session,
                "agent": call.agent,
                "tool": call.tool,
                "tool_use_id": call.call,
                "time": iso(call.time),
                "guard": call.guard,
                "rule": call.rule,
                "reason": call.reason,
                "paths": list(call.paths),
            }
            for call in report.unguarded
        ],
        "sessions": report.sessions,
        "calls_without_receipt": report.unseen,
        "transcripts": [str(folder) for folder in folders],
        "unread": [{"path": str(one.path), "why": one.why} for one in report.unread],
        "agents": [
            {
                "path": str(agent.path),
                "name": agent.name,
                "tools": None if agent.tools is None else list(agent.tools),
                "problems": list(agent.problems),
            }
            for agent in report.agents
        ],
    }


def _lines(report: AuditReport) -> Iterator[str]:
    if report.accepted is None:
        yield (
            "no files were accepted yet, so changes are unknown: a person runs"
            " `harness audit --accept`"
        )
    else:
        yield f"compared with the files that {report.accepted.by} accepted at {report.accepted.at}"
    for change, suspects in report.changes:
        yield from _change_lines(change, suspects)
    for call in report.unguarded:
        yield from _call_lines(call)
    for agent in report.agents:
        yield from (f"  agent {agent.path.name}: {problem}" for problem in agent.problems)
    for one in report.unread:
        yield f"  transcript {one.path}: {one.why}; what stood there is not known"
    yield f"{report.sessions} sessions read; {report.unseen} calls without a guard receipt"
    yield "nothing found" if report.clean else _NEXT


def _change_lines(change: Change, suspects: Sequence[Suspect]) -> Iterator[str]:
    when = f"; last changed {iso(change.at)}" if change.at is not None else ""
    yield (
        f"{change.words()} ({change.kind.value}){when}"
        if change.parts
        else f"{change.path} ({change.kind.value}): expected {change.expected[:12]}, is"
        f" {change.actual[:12]}{when}"
    )
    if not change.grave:
        yield "  it decides no verdict; `harness audit --accept` ends this line"
        return
    if change.kind in _REMEDIES:
        yield f"  {_REMEDIES[change.kind]}"
    for suspect in suspects[:_MOST_SESSIONS]:
        calls = ", ".join(
            f"{call['tool']} {call['tool_use_id']} at {call['time']}" for call in suspect.calls
        )
        yield f"  session {suspect.session}, {suspect.words()}" + (f": {calls}" if calls else "")
    if len(suspects) > _MOST_SESSIONS:
        yield f"  and {len(suspects) - _MOST_SESSIONS} more sessions"
    if not suspects:
        yield f"  {NOBODY}"


def _call_lines(call: Unguarded) -> Iterator[str]:
    who = f" (agent {call.agent})" if call.agent else ""
    yield (
        f"session {call.session}{who}: {call.tool} {call.call} at {iso(call.time)}; the guard"
        f" {call.guard}"
    )
    yield f"  {call.rule}: {call.reason}"
