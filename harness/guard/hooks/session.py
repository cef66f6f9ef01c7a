"""SessionStart and SessionEnd: a session is told where things
stand, and leaves a trace.

Before a compaction there is no hook: Claude Code would show its
program's path, and SessionStart comes after it, when the whole
transcript is still there. Then, and at the end, what the session
did is recorded as its hand-off.
"""

from __future__ import annotations

import os
import time

from harness.guard.policy.decide import role_of
from harness.guard.policy.receipt import FAILED

from .control_digests import control_digests
from .hook_scene import HookAnswer
from .judge_socket import BESIDE, CLIENT, SANDBOX, is_inside
from .other_plugins import changing_plugins
from .other_plugins import said as said_of_plugins
from .self_check import dead_guards
from .session_receipts import lines_back, note, said, session_of
from .standing import cut, opening_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject
    from .self_check import DeadGuard

START, END, STOP = "SessionStart", "SessionEnd", "Stop"
_LOOKED_AT = 200
"""Receipts back to the start of a session that was resumed."""
LONGEST = 8000
"""Characters that the model gets in all."""
BRIEFING = os.path.join(".harness", "memory", "BRIEFING.md")
_PATIENCE, _STEP = 300, 0.02
"""Of the ten seconds that this hook has; the record is made also
when it takes longer."""
_ALONE = 10 * _PATIENCE
"""Where nobody waits."""
CUT = "\n[shortened; the whole briefing is {path}]\n"


def session_started(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """For the model: what leaves a guard dead, whether the
    session is isolated, then the briefing; after a compaction
    too. For the person one line: what is dead, else where the
    work stands."""
    home = scene.home
    if home is None:
        return HookAnswer()
    dead = dead_guards(scene)
    _note(
        call,
        home,
        scene,
        START,
        control=control_digests(scene),
        source=str(call.get("source"))[:40],
        dead=[guard.line for guard in dead],
    )
    _offer_command(home, scene)
    if call.get("source") != "compact":
        _tell_the_ledger(call, home, scene)
    else:  # the same session, told of already
        _hand_over(call, home, scene, START, "had its context summarised")
    warning = "".join(f"harness: {guard.line}\n" for guard in dead)[: LONGEST // 2]
    others = said_of_plugins(changing_plugins(home.root, scene.claude_folder))
    warning += f"harness: {others}\n" if others else ""
    said = f"{warning}harness: {_mode(scene)}\n"
    context = said + _briefing(home, LONGEST - len(said))
    person, beside = _line(home, dead), scene.environment.get(BESIDE)
    person += f"\nharness: {beside}" if beside else ""
    return HookAnswer(context=context, person=person)


def resumed_line(call: dict[str, Any], home: HookedProject, scene: HookScene) -> str:
    """The line for the person, once after `--resume`: Claude Code
    shows none of SessionStart then, and what stands on the
    screen is of the earlier session. Empty elsewhere."""
    lines = lines_back(home, session_of(call))
    pairs = zip(range(_LOOKED_AT), lines)  # noqa: B905  Python 3.9 has no `strict`
    newest = (line for _, line in pairs)
    told = (line for line in newest if START in (line.get("event"), line.get("rule")))
    if next(told, {}).get("source") != "resume":
        return ""
    note(home, call, said(None, START), event=STOP, role="main", now=scene.now)
    return _line(home, dead_guards(scene))


def _line(home: HookedProject, dead: list[DeadGuard]) -> str:
    return _dead_line(dead) if dead else opening_line(home)


def _dead_line(dead: list[DeadGuard]) -> str:
    more = f" (and {len(dead) - 1} more)" if len(dead) > 1 else ""
    then = f"{more}; run: {dead[0].command}"
    return cut(f"harness: guards do not work: {dead[0].words}", less=len(then)) + then


def begun_beside(call: dict[str, Any], scene: HookScene) -> None:
    """For the plugin where the project's own hooks speak: recorded once, whoever comes first."""
    if scene.home is not None and call.get("source") != "compact":
        _tell_the_ledger(call, scene.home, scene)


def _mode(scene: HookScene) -> str:
    """Whether the judge is out of this session's reach; `harness
    doctor` says it too."""
    sandbox = scene.environment.get(SANDBOX)
    others = scene.environment.get(BESIDE)
    if sandbox:
        return (
            f"this session runs in a sandbox ({sandbox}), the judge outside it. `harness` and the"
            " harness tools are requests to it; options that lower isolation are a person's."
            f"{_asked(scene)}{' As it began: ' + others if others else ''}"
        )
    return (
        "this session is not isolated from the judge, so scores say `recomputed, session not"
        " isolated`. A person gets the better mode by starting Claude with `harness claude`."
    )


def _asked(scene: HookScene) -> str:
    snapshot = scene.home.snapshot if scene.home else {}
    verbs = [f"`harness {' '.join(verb)}`" for verb in snapshot.get("asked_verbs") or ()]
    return f" Asked of the person, on their terminal: {', '.join(verbs)}." if verbs else ""


def _tell_the_ledger(call: dict[str, Any], home: HookedProject, scene: HookScene) -> None:
    """Have a plain session recorded before it does anything:
    receipts and transcripts it could take away, a fact of the
    chain it cannot. Where this fails, those are what is left."""
    _run(["audit", "--began", session_of(call)], call, home, scene)


def _hand_over(
    call: dict[str, Any],
    home: HookedProject,
    scene: HookScene,
    event: str,
    why: str,
    patience: int = _PATIENCE,
) -> None:
    """Have what the session did recorded for the next one; where
    that fails, a receipt says so."""
    if home.silent:  # the project's own hooks do it
        return
    words = ["handoff", "--left", session_of(call), "--why", why]
    fault = _run(words, call, home, scene, patience)
    if fault:
        error = f"`harness handoff --left` {fault}"
        _note(call, home, scene, event, rule=FAILED, error=error)


def _hand_over_alone(call: dict[str, Any], home: HookedProject, scene: HookScene) -> None:
    """At its end nothing waits: Claude Code leaves hooks little
    time then, and a process of its own sees to it."""
    if home.silent or is_inside() or os.fork():  # inside, the receipt of the end asks the judge
        return
    try:
        os.setsid()
        for end in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), end)
        _hand_over(call, home, scene, END, "ended", _ALONE)
    finally:
        os._exit(0)


def _run(
    verb: list[str],
    call: dict[str, Any],
    home: HookedProject,
    scene: HookScene,
    patience: int = _PATIENCE,
) -> str:
    """Why it failed; "" where it did not, or is not to be run."""
    command, state = home.snapshot.get("command"), home.snapshot.get("state")
    if is_inside() or not isinstance(command, str) or not os.access(command, os.X_OK):
        return ""
    base = scene.environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if os.path.dirname(str(state)) != os.path.join(os.path.realpath(base), "harness"):
        return ""  # another state directory than the project's own: a probe of `harness doctor`
    words = [command, *verb, "--project", home.source]
    silent = [(os.POSIX_SPAWN_OPEN, end, os.devnull, os.O_RDWR, 0) for end in range(3)]
    session = session_of(call)
    named = {**scene.environment, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session}
    try:
        child = os.posix_spawn(command, words, named, file_actions=silent, setpgroup=0)
    except OSError as error:  # the interpreter that its first line names may be gone
        return f"could not be started: {error.strerror}"
    for _ in range(patience):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return f"ended with {_code(status)}" if status else ""
        time.sleep(_STEP)
    return f"took longer than {patience * _STEP:g} s"


def _code(status: int) -> int:
    """As `os.waitstatus_to_exitcode`: negative for a signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def session_ended(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    if scene.home is not None:
        _note(
            call,
            scene.home,
            scene,
            END,
            reason=str(call.get("reason"))[:40],
            control=control_digests(scene),
        )
        _hand_over_alone(call, scene.home, scene)
    return HookAnswer()


def _note(
    call: dict[str, Any], home: HookedProject, scene: HookScene, event: str, **more: Any
) -> None:
    role = role_of(call, home.snapshot) if home.snapshot else "main"
    note(home, call, said(None, "no_rule"), event=event, role=role, now=scene.now, **more)


def _briefing(home: HookedProject, longest: int) -> str:
    path = home.page("briefing", BRIEFING)
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    if len(text) <= longest:
        return text
    note_of_it = CUT.format(path=path)
    return text[: longest - len(note_of_it)] + note_of_it


def _offer_command(home: HookedProject, scene: HookScene) -> None:
    """Let the session's Bash calls find `harness` by its name,
    also where its environment is not active."""
    file = scene.environment.get("CLAUDE_ENV_FILE")
    command = scene.environment.get(CLIENT) or home.snapshot.get("command")
    if not file or not isinstance(command, str) or not os.path.isfile(command):
        return
    folder = os.path.dirname(command).replace("'", "'\\''")
    line = f"export PATH='{folder}':\"$PATH\"\n"
    with open(file, "a+", encoding="utf-8") as target:
        target.seek(0)
        if line not in target.read():
            target.write(line)
