"""Starts each hook by the exact command line of the settings,
with calls whose answer is known.

A guard must deny one call and allow one; reminders and
observers must fail open. Hooks start in another folder than
the project's, as after `cd`. The doctor's receipts are
removed.
"""

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.contract.installation import PLUGIN_VARIABLE, PROJECT_VARIABLE
from harness.doctor.hook_entries import Hook
from harness.doctor.probe_process import Ended, clean_environment, run, temporary_folder
from harness.doctor.report import INSTALL, DoctorCheck, amiss, broken, doctor_check, good, note
from harness.doctor.subject import DoctorSubject
from harness.errors import RefusedError
from harness.guard.hooks.projects import Projects
from harness.guard.hooks.table import BY_NAME, EVENTS, GUARD
from harness.guard.policy.receipt import file_name
from harness.install.hook_interpreter import choose

SESSION = "harness-doctor"
_LONGEST_S = 30.0
_NOT_FOUND, _CLOSED = "can't open file", "Permission denied"
_BROKEN = ("hook cannot run", "hook has a fault")
"""Messages of a hook's program and its handler that nothing was
decided."""
DENIED, PASSED = 2, 0
Wanted = tuple[int, dict[str, Any]]
"""The exit status that a hook must give, and its input."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    hook: Hook
    message: str
    hint: str = INSTALL


@doctor_check
def guards_answer(subject: DoctorSubject) -> DoctorCheck:
    """Whether each guard denies what it must deny, and allows an
    ordinary call."""
    return _fed(subject, guards=True)


@doctor_check
def others_answer(subject: DoctorSubject) -> DoctorCheck:
    """Whether reminders and observers succeed: they never block,
    so their faults are not seen."""
    return _fed(subject, guards=False)


def _fed(subject: DoctorSubject, *, guards: bool) -> DoctorCheck:
    hooks = [
        hook
        for event in EVENTS
        if (event.kind == GUARD) is guards
        for hook in subject.own()
        if hook.runs(event)
    ]
    if not hooks:
        return note("No hook of this kind is installed.")
    # One folder for all: the next hook finds the compiled modules.
    with temporary_folder() as folder:
        faults = [
            fault for hook in hooks if (fault := first_fault(hook, subject, folder)) is not None
        ]
    if faults:
        message = "; ".join(f"{fault.hook.event}: {fault.message}" for fault in faults)
        hint = " ".join(dict.fromkeys(fault.hint for fault in faults))
        return (broken if guards else amiss)(message, hint)
    events = ", ".join(dict.fromkeys(hook.event for hook in hooks))
    how = "denied and allowed" if guards else "succeeded"
    return good(f"{events}: started as in the settings, from another folder, {how}")


def first_fault(hook: Hook, subject: DoctorSubject, folder: Path) -> Fault | None:
    """The first wrong answer of `hook`, started in `folder`;
    None if there is none."""
    command = command_line(hook, subject)
    if command is None:
        return Fault(hook=hook, message="it has no command line")
    session = f"{SESSION}-{secrets.token_hex(8)}"
    environment = {**clean_environment(folder, subject.environment), **_variables(subject)}
    try:
        for wanted, call in _calls(hook, subject, session, folder):
            given = json.dumps(call).encode()
            ended = run(
                command, cwd=folder, environment=environment, given=given, timeout_s=_limit(hook)
            )
            if fault := _judge(hook, wanted, ended):
                return fault
    except (OSError, ValueError) as error:  # ValueError: a word that no command line can hold
        return Fault(hook=hook, message=f"{command[0]} cannot be started ({error})")
    finally:
        remove_receipts(subject, session)
    return None


def command_line(hook: Hook, subject: DoctorSubject) -> list[str] | None:
    """The command line as the CLI makes it: without a shell if
    there are args."""
    command, args = hook.body.get("command"), hook.body.get("args")
    if not isinstance(command, str):
        return None
    if not isinstance(args, list):
        return ["/bin/sh", "-c", command]
    words = [word for word in (command, *args) if isinstance(word, str)]
    plugin = PLUGIN_VARIABLE if subject.plugin is None else str(subject.plugin)
    return [
        word.replace(PROJECT_VARIABLE, str(subject.folder)).replace(PLUGIN_VARIABLE, plugin)
        for word in words
    ]


def _variables(subject: DoctorSubject) -> dict[str, str]:
    plugin = {} if subject.plugin is None else {"CLAUDE_PLUGIN_ROOT": str(subject.plugin)}
    return {"CLAUDE_PROJECT_DIR": str(subject.folder), **plugin}


def _limit(hook: Hook) -> float:
    value = hook.body.get("timeout")
    return (
        min(float(value), _LONGEST_S)
        if isinstance(value, int | float) and value > 0
        else _LONGEST_S
    )


def _calls(hook: Hook, subject: DoctorSubject, session: str, folder: Path) -> Iterator[Wanted]:
    base = {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(subject.folder),
        "hook_event_name": hook.event,
        "permission_mode": "default",
    }
    for wanted, more in _PAYLOADS[hook.event](subject, folder):
        yield wanted, {**base, **more}


def _judge(hook: Hook, wanted: int, ended: Ended) -> Fault | None:
    output = (ended.stderr.strip() or ended.stdout.strip())[:400]
    if ended.code is None:
        return Fault(hook=hook, message=f"it did not answer in {_limit(hook):g} s")
    if _NOT_FOUND in ended.stderr:
        what = "hook not readable" if _CLOSED in output else "hook not found"
        alike = "Python's own exit status 2 looks like a denial; no rule denied anything"
        return Fault(hook=hook, message=f"{what}: {output}. {alike}")
    if any(words in ended.stderr for words in _BROKEN):
        return Fault(
            hook=hook,
            message=f"its own files are missing or damaged, so no rule was checked: {output}",
        )
    if wanted == DENIED:
        if ended.code == DENIED and ended.stderr.strip():
            return None
        how = "allowed" if ended.code == PASSED else f"ended with status {ended.code} on"
        return Fault(
            hook=hook,
            message=f"it {how} a call that it must deny{': ' + output if output else ''}",
        )
    if ended.code == DENIED:
        return Fault(
            hook=hook,
            message=f"it denies an ordinary call: {output}",
            hint="Correct what the message names.",
        )
    if ended.code != PASSED:
        return Fault(hook=hook, message=f"it ended with status {ended.code}: {output}")
    if BY_NAME[hook.event].kind == GUARD and ended.stdout.strip():
        return Fault(
            hook=hook,
            message=f"it printed {output!r}; a guard that does not deny must print nothing",
        )
    if BY_NAME[hook.event].kind != GUARD and ended.stderr.strip():
        return Fault(hook=hook, message=output)  # it fails open: stderr is the only sign
    return None


def remove_receipts(subject: DoctorSubject, session: str) -> None:
    """Remove a probe's receipts, and their folder if it is ours
    and empty."""
    project = Projects().at(str(subject.folder))
    if project is None:
        return
    receipts = Path(project.receipts)
    (receipts / file_name(session)).unlink(missing_ok=True)
    if not subject.had_receipts:
        with contextlib.suppress(OSError):  # it has others' receipts by now
            receipts.rmdir()


def _tool_calls(subject: DoctorSubject, _folder: Path) -> Iterator[Wanted]:
    for wanted, path in ((DENIED, ".harness/policy.json"), (PASSED, f"{SESSION}.txt")):
        given = {"file_path": str(subject.folder / path), "content": ""}
        yield wanted, {"tool_name": "Write", "tool_input": given, "tool_use_id": "toolu_doctor"}


def _skill_lines(_subject: DoctorSubject, _folder: Path) -> Iterator[Wanted]:
    for wanted, command in ((DENIED, "echo x > .harness/policy.json"), (PASSED, "echo x")):
        more = {
            "command_name": "doctor",
            "command_source": "projectSettings",
            "invoked_by": "claude",
        }
        given = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": "toolu_doctor:preamble-0",
        }
        yield wanted, {**given, **more}


def _settings_changes(_subject: DoctorSubject, folder: Path) -> Iterator[Wanted]:
    """Two files in the probe's folder: one switches hooks off,
    one is empty."""
    path = folder / "settings.json"
    for wanted, text in ((DENIED, '{"disableAllHooks": true}'), (PASSED, "{}")):
        path.write_text(text, "utf-8")
        yield wanted, {"source": "user_settings", "file_path": str(path)}


def _once(**more: object) -> Callable[[DoctorSubject, Path], Iterator[Wanted]]:
    """One call with `more` in its payload, which must end well."""

    def calls(_subject: DoctorSubject, _folder: Path) -> Iterator[Wanted]:
        yield PASSED, dict(more)

    return calls


_READ: dict[str, Any] = {
    "tool_name": "Read",
    "tool_use_id": "toolu_doctor",
    "tool_input": {"file_path": "README.md"},
}
_PAYLOADS: dict[str, Callable[[DoctorSubject, Path], Iterator[Wanted]]] = {
    "PreToolUse": _tool_calls,
    "PreSkillShellCommand": _skill_lines,
    "ConfigChange": _settings_changes,
    "PostToolUse": _once(**_READ, tool_response={}, duration_ms=1),
    "PostToolBatch": _once(tool_calls=[{**_READ, "tool_response": {}}]),
    "Stop": _once(
        stop_hook_active=True, last_assistant_message="", background_tasks=[], session_crons=[]
    ),
    "SubagentStart": _once(agent_id="doctor", agent_type="general-purpose"),
    "SubagentStop": _once(agent_id="doctor", agent_type="general-purpose", stop_hook_active=True),
    "SessionStart": _once(source="startup"),
    "SessionEnd": _once(reason="other"),
}


@doctor_check
def interpreter(subject: DoctorSubject) -> DoctorCheck:
    """Whether every Python of our entries passes the test of
    `harness init`."""
    programs = sorted(
        {hook.words[0] for hook in subject.own() if isinstance(hook.body.get("args"), list)}
    )
    if not programs:
        return note("No harness hook names an interpreter.")
    faults = []
    for program in programs:
        try:
            choose([program])
        except RefusedError as error:
            faults.append(error.message)
    if faults:
        return broken(" ".join(faults), f"{INSTALL} It chooses a Python that works.")
    return good(f"{', '.join(programs)} runs the hooks")
