"""What a session leaves for the next one when it ends or its context is summarised: told by its
transcript and the ledger, not by itself."""

from collections.abc import Callable, Iterable
from pathlib import Path

from harness.contract.roles import TOOL_PREFIX
from harness.decisions.experiments import undecided_experiment, write_hand_off
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.errors import HarnessError
from harness.ledger.facts import LONGEST_HAND_OFF, HandOff
from harness.ledger.phases import phase_line
from harness.ledger.project import Project
from harness.traces.events import Answer, ToolCall, ToolResult, TraceEvent
from harness.traces.transcripts import read_session

BY = "harness"
MOST_BYTES = 64 << 20
"""Of a transcript; a longer one is not read."""
_WRITING = ("Write", "Edit", "NotebookEdit")
_LOOKING = ("run_status", "training_status", "evaluation_report", "training_lineage", "hand_off")
"""Tools of ours that do nothing."""
_SHOWN, _WORDS, _RUNS = 16, 700, 6


@dataclass(frozen=True, kw_only=True)
class Doings(Late):
    """What a transcript shows of a session's work; a claim: the session could write to it."""

    done: tuple[str, ...] = ()
    """E.g. "open_experiment", "wrote train.py", in order, each once."""
    tools: frozenset[str] = frozenset()
    """Tools of ours that answered without an error."""
    unanswered: tuple[str, ...] = ()
    """Calls that it waited for when it was stopped."""
    words: str = ""
    """The last that it said."""


def doings(transcripts: Iterable[Path], root: Path) -> Doings:
    """Of the newest readable transcript; empty where there is none."""
    for path in sorted(transcripts, key=_age):
        try:
            if path.stat().st_size <= MOST_BYTES:
                return _doings(read_session(path).events, root)
        except (HarnessError, OSError):
            continue
    return Doings()


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _doings(events: Iterable[TraceEvent], root: Path) -> Doings:
    calls: dict[str, ToolCall] = {}
    answered: dict[str, bool] = {}
    words = ""
    for event in events:
        match event:
            case ToolCall():
                calls[event.id] = event
            case ToolResult():
                answered[event.call] = not event.error
            case Answer():
                said = [str(block.get("text") or "") for block in event.blocks]
                words = " ".join(filter(None, said)) or words
    well = [call for name, call in calls.items() if answered.get(name)]
    named = (_named(call, root) for call in well)
    left = (_named(call, root) or call.tool for call in calls.values() if call.id not in answered)
    ours = (call.tool for call in well if call.tool.startswith(TOOL_PREFIX))
    return Doings(
        done=tuple(dict.fromkeys(filter(None, named))),
        tools=frozenset(tool.removeprefix(TOOL_PREFIX) for tool in ours),
        unanswered=tuple(dict.fromkeys(left)),
        words=one_line(words, _WORDS),
    )


def _named(call: ToolCall, root: Path) -> str:
    """What the call did; "" where it only looked."""
    if call.tool.startswith(TOOL_PREFIX):
        name = call.tool.removeprefix(TOOL_PREFIX)
        return "" if name in _LOOKING else name
    if call.tool in _WRITING:
        path = str(call.input.get("file_path") or call.input.get("notebook_path") or "")
        return one_line(f"wrote {path.removeprefix(f'{root}/')}", 200)
    if call.tool == "Bash":
        return one_line(f"ran `{call.input.get('command')}`", 120)
    return ""


def hand_over(
    project: Project,
    session: str,
    transcripts: Iterable[Path],
    *,
    why: str,
    due: Callable[[Doings], str],
    experiment: str | None = None,
    quiet: bool = False,
) -> HandOff | None:
    """Record what `session` did, what is open and what is next (`due`). None where its newest
    hand-off says the same; `quiet`: also where it did nothing."""
    found = doings(transcripts, project.layout.root)
    if quiet and not found.done and not found.unanswered:
        return None
    current = experiment or getattr(undecided_experiment(project), "id", None)
    parts = [
        f"Session {session} {why}.",
        f"Done: {_listed(found.done) or 'nothing'}.",
        f"Stopped while it waited for: {_listed(found.unanswered)}." if found.unanswered else "",
        f"Open: {_open(project, current)}.",
        f"Its last words: {found.words}" if found.words else "",
        f"Next: {due(found)}",
    ]
    text = "\n".join(filter(None, parts))[:LONGEST_HAND_OFF]
    before = [one for one in project.ledger.hand_offs(newest=20) if one.session == session]
    if before and before[-1].text == text:
        return None
    return write_hand_off(project, text=text, by=BY, session=session, experiment=current)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    first = [f"{more} earlier"] if more > 0 else []
    return ", ".join([*first, *names[-_SHOWN:]])


def _open(project: Project, experiment: str | None) -> str:
    ledger = project.ledger
    lines = []
    if experiment is not None:
        runs = ", ".join(f"{run.id} {run.status}" for run in ledger.runs(experiment)[-_RUNS:])
        status = ledger.experiment(experiment).status
        lines.append(f"{experiment} is {status}{f' ({runs})' if runs else ''}")
    phase = phase_line(ledger, ledger.plan())
    if phase:
        lines.append(f"phase {one_line(phase, 300)}")
    return "; ".join(lines) or "no experiment"
