"""What a session leaves for the next one when it ends or its context is summarised: told by its
transcript and the ledger, not by itself."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.contract.roles import TOOL_PREFIX
from harness.decisions.experiments import undecided_experiment, write_hand_off
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.errors import HarnessError
from harness.ledger.facts import BY_HARNESS, LONGEST_HAND_OFF, HandOff
from harness.ledger.phases import phase_line
from harness.ledger.project import Project
from harness.traces.events import Answer, ToolCall, ToolResult, TraceEvent
from harness.traces.redaction import Redactor
from harness.traces.secrets import scanner_is_here
from harness.traces.transcripts import read_session

MOST_BYTES = 64 << 20
"""Of a transcript; a longer one is not read."""
_WRITING = ("Write", "Edit", "NotebookEdit")
_LOOKING = ("run_status", "training_status", "evaluation_report", "training_lineage", "hand_off")
"""Tools of ours that do nothing."""
_NOWHERE = re.compile(r"\d?>\s*(?:&\d|/dev/null)")
_PARTS = re.compile(r"\|\||&&|[;|&\n]")
_LOOKS = re.compile(
    r"\s*(?:(?:cat|cd|cut|date|df|diff|du|echo|file|grep|head|jq|ls|nvidia-smi|ps|pwd|rg|sort"
    r"|stat|tail|tr|true|uniq|wc|which)(?!\S)"
    r"|git (?:status|log|diff|show|blame)\b"
    r"|harness (?:status|recall|watch|doctor|audit)\b)|\s*\Z"
)
_SHOWN, _RUNS = 16, 6
_WORDS, _NAME = 700, 120
_READ = 20_000
"""Characters of a command or of the last words that are looked through for secrets."""
_LENGTH = 1700
"""Of a hand-off: a first message shows it whole."""
_WAITED, _LEAST = 300, 200


@dataclass(frozen=True, kw_only=True)
class Doings(Late):
    """What a transcript shows of a session's work; a claim: the session could write to it. Secrets,
    e-mail addresses and home folders are taken out: a hand-off is kept with the project."""

    done: tuple[str, ...] = ()
    """The newest, e.g. "open_experiment", "wrote train.py", in order, each once."""
    earlier: int = 0
    """How many came before those."""
    tools: frozenset[str] = frozenset()
    """Tools of ours that answered without an error."""
    unanswered: tuple[str, ...] = ()
    """Calls that it waited for when it was stopped."""
    words: str = ""
    """The last that it said."""
    called: bool = False
    """Whether it called any tool."""
    changed: bool = False
    """Whether a call did more than look."""


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
    waits = [call for name, call in calls.items() if name not in answered]
    done = _each(_named(call, root) for call in well)
    left = _each(_named(call, root) or call.tool for call in waits)
    ours = (call.tool for call in well if call.tool.startswith(TOOL_PREFIX))
    done, earlier, left = done[-_SHOWN:], len(done[:-_SHOWN]), left[-_SHOWN:]
    # Before anything is shortened: a part of a key is not known as one.
    redactor = Redactor(scan=scanner_is_here())
    raw = [*done, *left, words[-_READ:]]
    for text in raw:
        redactor.learn(text)
    *told, words = (redactor.text(text) for text in raw)
    short = [_short(text) for text in told]
    return Doings(
        done=tuple(short[: len(done)]),
        earlier=earlier,
        tools=frozenset(tool.removeprefix(TOOL_PREFIX) for tool in ours),
        unanswered=tuple(short[len(done) :]),
        words=one_line(words, _WORDS),
        called=bool(calls),
        changed=any(_changes(call) for call in [*well, *waits]),
    )


def _each(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, names)))


def _named(call: ToolCall, root: Path) -> str:
    """What the call did; "" where it only looked."""
    if call.tool.startswith(TOOL_PREFIX):
        name = call.tool.removeprefix(TOOL_PREFIX)
        return "" if name in _LOOKING else name
    if call.tool in _WRITING:
        path = str(call.input.get("file_path") or call.input.get("notebook_path") or "")
        return f"wrote {path.removeprefix(f'{root}/')}"
    return f"ran {_command(call)}" if call.tool == "Bash" else ""


def _command(call: ToolCall) -> str:
    return str(call.input.get("command"))[:_READ]


def _short(name: str) -> str:
    if name.startswith("ran "):
        return f"ran `{one_line(name[4:], _NAME - 6)}`"
    return one_line(name, _NAME)


def _changes(call: ToolCall) -> bool:
    """Of a command: all that is not known to look alone."""
    if call.tool.startswith(TOOL_PREFIX):
        return call.tool.removeprefix(TOOL_PREFIX) not in _LOOKING
    if call.tool != "Bash":
        return call.tool in _WRITING
    command = _NOWHERE.sub(" ", _command(call))
    known = all(map(_LOOKS.match, _PARTS.split(command)))
    return not known or any(mark in command for mark in (">", "`", "$("))


def hand_over(
    project: Project,
    session: str,
    transcripts: Iterable[Path],
    *,
    why: str,
    due: Callable[[Doings], str],
    worth: Callable[[Doings], bool] = lambda _found: True,
    experiment: str | None = None,
) -> HandOff | None:
    """Record what `session` did, what is open and what is next (`due`). None where its newest
    hand-off says the same, or what it did is not `worth` one."""
    found = doings(transcripts, project.layout.root)
    if not worth(found):
        return None
    current = experiment or getattr(undecided_experiment(project), "id", None)
    waited = _listed(found.unanswered, 0, _WAITED)
    first = [
        f"Session {session} {why}.",
        f"Open: {_open(project, current)}.",
        f"Next: {due(found)}",
        f"Stopped while it waited for: {waited}." if waited else "",
    ]
    last = f"Its last words: {found.words}" if found.words else ""
    room = _LENGTH - sum(len(part) + 1 for part in [*first, last])
    done = _listed(found.done, found.earlier, max(_LEAST, room)) or "nothing"
    parts = [*first, f"Done: {done}.", last]
    text = "\n".join(filter(None, parts))[:LONGEST_HAND_OFF]
    before = [one for one in project.ledger.hand_offs(newest=20) if one.session == session]
    if before and before[-1].text == text:
        return None
    return write_hand_off(project, text=text, by=BY_HARNESS, session=session, experiment=current)


def _listed(names: Sequence[str], earlier: int, room: int) -> str:
    """The newest that fit in `room` characters, at least one."""
    kept: list[str] = []
    for name in reversed(names):
        if kept and sum(len(one) + 2 for one in kept) + len(name) > room:
            break
        kept.append(name)
    more = earlier + len(names) - len(kept)
    return ", ".join([*([f"{more} earlier"] if more else []), *reversed(kept)])


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
