"""The frame around every handler: read the payload in time,
answer with 0 or 2 and nothing else, whatever happens.

A guard that cannot decide denies, says why and how to fix it.
A reminder or observer that fails lets go and leaves a receipt
of its own failure.
"""

from __future__ import annotations

import os
import sys
import time

from harness.guard.policy.json_text import dumps, loads
from harness.guard.policy.receipt import FAILED

from .hook_scene import REFUSED, HookAnswer, HookScene, refused
from .session_receipts import note, said
from .table import BY_NAME, GUARD, STATUS_LINE

try:  # `signal` itself imports `enum`, which takes longer than all of this
    import _signal as signal  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .table import HookEvent

LARGEST = 256 * 1024 * 1024
"""Bytes of one payload; Claude Code's own limits on a tool's
input are far below."""
_BLOCK = 1 << 20
START = "SessionStart"
BESIDE = "harness: the plugin steps back here: this project's own hooks guard the session."
_REPEAT = "Repeat the call; if it fails again, a person runs `harness doctor`."


class UnreadablePayload(Exception):
    """The payload is no JSON object; the message says what came
    instead."""


class TooLate(Exception):
    """The hook's own deadline passed before Claude Code's did."""


def main(name: str, program: str) -> NoReturn:
    """Answer one hook call of the event `name`, whose program is
    the file `program`; ends the process."""
    event = BY_NAME[name]
    # A third each for reading and deciding; the last third is left for the denial itself, since
    # Claude Code would go on without an answer that comes too late.
    seconds = event.timeout // 3
    call: dict[str, Any] = {}
    try:
        call = _in_time(seconds, "its payload was not read to the end", lambda: payload(0))
        outcome = _in_time(seconds, "no answer was found", lambda: answer(event, call, program))
    except BaseException as error:  # noqa: BLE001  a fault in a guard denies
        outcome = _failed(event, program, call, error)
    _end(event, outcome)


def payload(descriptor: int) -> dict[str, Any]:
    """The JSON object that stands on `descriptor`, up to its
    end. Raises UnreadablePayload."""
    blocks: list[bytes] = []
    size = 0
    try:
        while block := os.read(descriptor, _BLOCK):
            blocks.append(block)
            size += len(block)
            if size > LARGEST:
                raise UnreadablePayload(f"it is larger than {LARGEST} bytes")
        value = loads(b"".join(blocks).decode("utf-8"))
    except OSError as error:
        raise UnreadablePayload(f"stdin cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        start = b"".join(blocks)[:40]
        raise UnreadablePayload(
            f"it is not JSON ({error}): it starts with {start!r}" if start else "it is empty"
        ) from None
    if not isinstance(value, dict):
        raise UnreadablePayload(f"it is a JSON {type(value).__name__}; expected an object")
    return value


def answer(event: HookEvent, call: dict[str, Any], program: str) -> HookAnswer:
    """What the event's handler says about `call`; the project
    that installed the hook must still be there."""
    scene = HookScene(call, program, os.environ, time.time())
    if event is not STATUS_LINE:  # a person's own status line is shown without a project too
        if scene.gone:
            return _gone(event, scene.gone)
        if scene.home is None and event.kind != GUARD:
            return HookAnswer()
        if scene.home is not None and _steps_back(event, call, scene):
            if event.name == START:
                _begun_beside(call, scene)
                return HookAnswer(person=BESIDE)
            if event.kind != GUARD:
                return HookAnswer()
            scene.home.silent = True
    module, _, function = event.handler.partition(":")
    place = f"{__package__}.{module}"
    __import__(place)
    handler: Callable[[dict[str, Any], HookScene], HookAnswer] = getattr(
        sys.modules[place], function
    )
    return handler(call, scene)


def _begun_beside(call: dict[str, Any], scene: HookScene) -> None:
    from .session import begun_beside

    begun_beside(call, scene)


def _steps_back(event: HookEvent, call: dict[str, Any], scene: HookScene) -> bool:
    if scene.installed.root is not None:
        return False
    from .plugin_beside import steps_back  # a project's own hook never asks

    return steps_back(call, scene, beginning=event.name == START)


def _gone(event: HookEvent, root: str) -> HookAnswer:
    reason = (
        f"These hooks were installed for the project at {root}, and its .harness/ folder (with"
        " config.toml) is gone: no rule can be checked, so every tool call is denied."
    )
    hint = (
        "No tool can fix this. A person runs, in their own terminal and in that folder: `harness"
        " init`, which sets the project up again (or `git checkout -- .harness` where git has it);"
        " or `harness init --remove`, which takes the hooks out."
    )
    if event.kind == GUARD:
        return refused(reason, hint)
    if event.name != START:
        return HookAnswer()
    person = (
        f"harness: every tool call is denied, for {root}/.harness is gone. Run here: harness init"
        " (or harness init --remove, to take the hooks out)"
    )
    return HookAnswer(context=f"harness: {reason} {hint}\n", person=person)


def _failed(
    event: HookEvent, program: str, call: dict[str, Any], error: BaseException
) -> HookAnswer:
    """The answer when nothing could be decided: payload
    unreadable, too late, a fault. With a receipt if possible."""
    if event is STATUS_LINE:  # drawn many times a minute: no receipt each time
        return HookAnswer()
    if isinstance(error, UnreadablePayload):
        rule, reason, hint = (
            "payload_unreadable",
            f"The payload of {event.name} cannot be read: {error}.",
            _REPEAT,
        )
    elif isinstance(error, TooLate):
        rule, reason, hint = (
            "too_late",
            f"The {event.name} hook did not finish: {error}.",
            _REPEAT,
        )
    else:
        rule, reason = (
            FAILED,
            f"The {event.name} hook has a fault ({type(error).__name__}: {error}).",
        )
        hint = (
            "A person runs `harness doctor` in the project; `harness init` installs the hooks"
            " again."
        )
    is_guard = event.kind == GUARD
    try:
        scene = HookScene(call, program, os.environ, time.time())
        if scene.home is not None:
            what = said("deny", rule, reason) if is_guard else said(None, FAILED)
            more = {} if is_guard else {"error": reason[:1000]}
            note(scene.home, call, what, event=event.name, role="main", now=scene.now, **more)
        elif scene.installed.root is None:
            return HookAnswer()  # a plugin's hook, in no project: there is nothing to guard
    except Exception:  # noqa: BLE001  the refusal stands without a receipt
        hint += " No receipt of this could be written."
    return refused(reason, hint) if is_guard else HookAnswer(errors=f"harness: {reason} {hint}\n")


def _in_time(seconds: int, failing: str, work: Callable[[], Any]) -> Any:
    """Do one of the two halves of the work, in a third of what
    Claude Code waits. Raises TooLate."""

    def late(_number: int, _frame: Any) -> None:
        raise TooLate(f"{failing} in {seconds} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return work()
    finally:
        signal.alarm(0)


def _shown(text: str) -> str:
    """A model and a terminal read it: names of files and what
    commands say are plain text."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from harness.domain.plain_text import plain  # it takes time, and few answers need it

    return plain(text)


def written(event: HookEvent, outcome: HookAnswer) -> str:
    """What goes to stdout: one JSON object, or the status line.

    A denial is the exit status, with the reason on stderr:
    that blocks whatever stands here. The same reason here is
    what the person reads, without the hook's command line.
    """
    if outcome.line:
        return _shown(outcome.line) + "\n"
    answer: dict[str, Any] = {}
    if outcome.person:
        answer["systemMessage"] = _shown(outcome.person)
    if outcome.block:
        answer |= {"decision": "block", "reason": _shown(outcome.block)}
    if outcome.context:
        named = {"hookEventName": event.name, "additionalContext": _shown(outcome.context)}
        answer["hookSpecificOutput"] = named
    return dumps(answer) + "\n" if answer else ""


def _end(event: HookEvent, outcome: HookAnswer) -> NoReturn:
    """Write and go, without the interpreter's own end: it takes
    time, and could change the status."""
    code = outcome.code
    errors = f"{outcome.block}\n" if code == REFUSED else outcome.errors
    for descriptor, text in ((1, written(event, outcome)), (2, _shown(errors))):
        data = text.encode("utf-8")
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            break  # nobody reads it; the status still says it
    os._exit(code)
