"""Checks of the hook entries in settings: each way in which an existing entry does not guard."""

import re
from collections.abc import Iterator, Sequence

from harness.doctor.hook_entries import PLACEHOLDERS, Hook
from harness.doctor.report import INSTALL, DoctorCheck, amiss, broken, doctor_check, good, note
from harness.doctor.settings_files import LOCAL, PROJECT, USER
from harness.doctor.subject import DoctorSubject
from harness.guard.hooks.other_plugins import changing_plugins, said
from harness.guard.hooks.table import EVENTS, GUARD, ISOLATED

TOOLS = (
    *(
        "Write",
        "Edit",
        "MultiEdit",
        "NotebookEdit",
        "Bash",
        "Read",
        "Glob",
        "Grep",
        "Agent",
        "WebFetch",
        "Skill",
    ),
    *(
        "mcp__harness__open_experiment",
        "mcp__plugin_harness_harness__start_run",
        "mcp__files__write_file",
    ),
)
"""Samples of the names that a guard of all tools must see."""
VALUES: dict[str, tuple[str, ...]] = {
    "PreToolUse": TOOLS,
    "PostToolUse": TOOLS,
    "ConfigChange": (
        "user_settings",
        "project_settings",
        "local_settings",
        "policy_settings",
        "skills",
    ),
    "SessionStart": ("startup", "resume", "clear", "compact", "fork"),
    "SessionEnd": ("clear", "logout", "prompt_input_exit", "other"),
    "SubagentStart": ("general-purpose", "model-builder"),
    "SubagentStop": ("general-purpose", "model-builder"),
}
"""Values that the matcher of each event is compared with; other events have no matcher."""
_LIST = re.compile(r"[A-Za-z0-9_|, -]+\Z")


def matches(matcher: object, value: str) -> bool:
    # Measured with CLI 2.1.332. Absent, "" and "*" match all. Letters, digits, `_`, `-`, `|`, `,`
    # and spaces are a list of exact, case-sensitive names, in which `Task` also means the tool
    # Agent. Anything else is a regular expression that is searched for; an invalid one matches
    # nothing.
    if matcher is None or matcher in ("", "*"):
        return True
    if not isinstance(matcher, str):
        return False
    if _LIST.match(matcher):
        names = {name.strip() for name in re.split(r"[|,]", matcher)}
        return value in names or (value == "Agent" and "Task" in names)
    try:
        return re.search(matcher, value) is not None
    except re.error:
        return False


def missed(event: str, matcher: object) -> tuple[str, ...]:
    """The values of `event` that `matcher` does not match."""
    return tuple(value for value in VALUES.get(event, ()) if not matches(matcher, value))


SHORTEST_S, LONGEST_S = 5, 600
"""Python needs seconds to start on a busy machine; the CLI's default `timeout` is 600."""
_MODULE = "-m"


@doctor_check
def entries_present(subject: DoctorSubject) -> DoctorCheck:
    """Whether each event has its hook in the right settings file."""
    place = subject.shown(subject.source)
    lacking = [
        event for event in EVENTS if not any(hook.runs(event) for hook in subject.installed())
    ]
    if not lacking:
        return good(f"all {len(EVENTS)} hook entries are in {place}")
    elsewhere = [
        subject.shown(source)
        for source in (LOCAL, USER)
        if any(hook.runs(event) for event in lacking for hook in subject.own(source))
    ]
    message = f"{place} has no harness hook for {', '.join(event.name for event in lacking)}"
    if elsewhere:
        message += (
            f"; they are in {' and '.join(elsewhere)}, which is not read by sessions that load"
            " only the project's settings"
        )
    say = broken if any(event.kind == GUARD for event in lacking) else amiss
    return say(message + ".", f"{INSTALL} For worktrees, commit .claude/ to git.")


@doctor_check
def entries_fail_closed(subject: DoctorSubject) -> DoctorCheck:
    """Whether a guard that crashes, is missing or is late blocks the call."""
    faults = [
        f"{hook.where} has onFailure {hook.body.get('onFailure')!r}"
        for hook in subject.guards()
        if hook.body.get("onFailure") != "block"
    ]
    if faults:
        return broken(
            f"A guard that cannot run would let the call through: {_few(faults)}; expected"
            ' "block".',
            f'Write "onFailure": "block" there, or: {INSTALL}',
        )
    return good("a guard that cannot run blocks the call")


@doctor_check
def entries_synchronous(subject: DoctorSubject) -> DoctorCheck:
    """Whether the CLI waits for each guard's answer, on every call."""
    faults = [
        f"{hook.where} has {key}: {hook.body[key]!r}"
        for hook in subject.guards()
        for key in ("async", "asyncRewake", "once", "if")
        if hook.body.get(key)
    ]
    if faults:
        return broken(
            f"The CLI would skip a guard or not wait for it: {_few(faults)}.",
            f"Remove these keys, or: {INSTALL}",
        )
    return good("the CLI waits for every guard")


@doctor_check
def entries_timeout(subject: DoctorSubject) -> DoctorCheck:
    """Whether each entry has a usable time limit, in seconds."""
    faults = [
        (hook, fault)
        for hook in subject.installed()
        if (fault := _timeout_fault(hook.body.get("timeout")))
    ]
    if faults:
        guards = any(hook.guard for hook, _ in faults)
        return (broken if guards else amiss)(
            _few([f"{hook.where}: {fault}" for hook, fault in faults]) + ".",
            f"`timeout` is in seconds: write 20 or 30, or: {INSTALL}",
        )
    return good("every entry has a usable time limit")


def _timeout_fault(value: object) -> str:
    if value is None:
        return f"no timeout is set, so a hanging hook blocks for {LONGEST_S} s"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"timeout {value!r} is not a number; the CLI then ignores every hook of the file"
    if value > LONGEST_S:
        return f"timeout {value:g} is too long: the unit is seconds, not milliseconds"
    if value < SHORTEST_S:
        return f"timeout {value:g} s is too short for a hook to answer"
    return ""


@doctor_check
def entries_matcher(subject: DoctorSubject) -> DoctorCheck:
    """Whether each guard sees every tool and every change of settings."""
    faults, hints = [], set()
    for hook in subject.guards():
        left_out = missed(hook.event, hook.matcher)
        if not left_out:
            continue
        every = len(left_out) == len(VALUES[hook.event])
        seen = "nothing" if every else f"not {_few(left_out, ', ', most=4)}"
        faults.append(f"{hook.where} has matcher {hook.matcher!r}, which matches {seen}")
        hints.add(_matcher_hint(hook))
    if faults:
        return broken(_few(faults) + ".", " ".join(sorted(hints)))
    return good("every matcher covers all that its guard checks")


def _matcher_hint(hook: Hook) -> str:
    wanted = '"*"' if hook.event == "PreToolUse" else "no matcher"
    return f"A guard of {hook.event} needs {wanted}; names are exact and case-sensitive. {INSTALL}"


@doctor_check
def entries_absolute(subject: DoctorSubject) -> DoctorCheck:
    """Whether each entry is independent of the session's current folder."""
    faults = [(hook, fault) for hook in subject.installed() for fault in _place_faults(hook)]
    if faults:
        guards = any(hook.guard for hook, _ in faults)
        return (broken if guards else amiss)(
            _few([f"{hook.where}: {fault}" for hook, fault in faults]) + ".",
            "Use separate `command` and `args`, with ${CLAUDE_PROJECT_DIR}/ before the path, or:"
            f" {INSTALL}",
        )
    return good("no entry depends on the current folder")


def _place_faults(hook: Hook) -> Iterator[str]:
    words = hook.words
    if _MODULE in words:
        yield (
            f"`{' '.join(words)}` looks for a module in the current folder, so it fails after `cd`"
        )
        return
    if not isinstance(hook.body.get("args"), list):
        yield f"`{hook.body.get('command')}` runs through a shell; expected `command` and `args`"
        return
    if not words[0].startswith(("/", *PLACEHOLDERS)):
        yield f"the command {words[0]!r} is not an absolute path"
    program = hook.program or ""
    if not program.startswith(("/", *(f"{name}/" for name in PLACEHOLDERS))):
        yield (f"the path {program!r} is relative to the current folder, so it fails after `cd`")
    elif tuple(words[1:3]) != ISOLATED:
        yield (
            f"Python is started without {' '.join(ISOLATED)}, so files other than"
            " the hook's own decide what it runs"
        )


@doctor_check
def entries_type(subject: DoctorSubject) -> DoctorCheck:
    """Whether each of our entries is a command."""
    faults = [
        f"{hook.where} has type {hook.body.get('type')!r}"
        for hook in subject.installed()
        if hook.body.get("type") != "command"
    ]
    if faults:
        return broken(
            f'{_few(faults)}; expected "command". The CLI then ignores every hook of the file.',
            f'Write "type": "command" there, or: {INSTALL}',
        )
    return good("every entry is a command")


@doctor_check
def entries_once(subject: DoctorSubject) -> DoctorCheck:
    """Whether no event has two entries of ours: they would leave two receipts per call."""
    faults = []
    for event in EVENTS:
        hooks = [hook for hook in subject.own() if hook.runs(event)]
        if len(hooks) > 1:
            faults.append(
                f"{event.name} has {len(hooks)}: {', '.join(hook.where for hook in hooks)}"
            )
    if faults:
        return amiss(
            f"An event has more than one harness hook: {_few(faults)}.",
            "Remove all but one.",
        )
    return good("every event has one harness hook")


@doctor_check
def other_hooks(subject: DoctorSubject) -> DoctorCheck:
    """Whether a hook of others has a relative path."""
    faults = [
        f"{hook.where}: `{' '.join(hook.words)}`"
        for hook in subject.hooks
        if hook.program is None and hook.file.source in (PROJECT, LOCAL) and _is_relative(hook)
    ]
    if faults:
        return amiss(
            f"Hooks with a relative path fail after `cd`, or lock every tool: {_few(faults)}.",
            "Write ${CLAUDE_PROJECT_DIR}/ before the path, and use separate `command` and `args`.",
        )
    return good("no other hook depends on the current folder")


@doctor_check
def other_plugins(subject: DoctorSubject) -> DoctorCheck:
    """Whether a plugin of others may change a call after the guards judged it."""
    folder = subject.file(USER).path.parent
    named = said(changing_plugins(str(subject.folder), str(folder)))
    if named:
        return note(named, "Keep them if you trust them; /plugin in `claude` switches one off.")
    return good("no plugin of others has a hook that may change a judged call")


def _is_relative(hook: Hook) -> bool:
    words = hook.words
    if any("CLAUDE_P" in word for word in words):
        return False
    if _MODULE in words:
        return True
    paths = [word for word in words if "/" in word and "://" not in word and " " not in word]
    return any(not word.startswith(("/", "~", "$", "-")) for word in paths)


def _few(items: Sequence[str], separator: str = "; ", *, most: int = 3) -> str:
    return separator.join(items[:most]) + (
        f" and {len(items) - most} more" if len(items) > most else ""
    )
