"""Stop: one more step is asked for, where the model can do it;
then it may go. SubagentStop asks by the same rule.

At most one block a turn and two a session for one reason,
counted from the session's receipts. No contract rests on
this: a session that is cut fires no Stop, and the gate finds
what is missing.
"""

from __future__ import annotations

from harness.guard.policy.decide import DENY, role_of

from .alarms import due as due_for
from .hook_scene import HookAnswer
from .session import resumed_line
from .session_receipts import lines_back, note, said, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject

STOP = "Stop"
MOST = 2
"""Blocks a session for one reason."""
UNJUDGED, UNEXPLAINED = "runs_not_judged", "alarms_not_explained"


def before_stop(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Asked once: runs of the open experiment have ended and an
    alarm of theirs is not explained, or no verdict says what
    they are worth. To the person of a resumed session the line
    that others see at their start."""
    asked = _asked(call, scene)
    if scene.home is not None:
        asked.person = resumed_line(call, scene.home, scene)
    return asked


def _asked(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    home = scene.home
    current = home.snapshot.get("open_experiment") if home else None
    open_runs = current.get("undiagnosed") if current else None
    if current and isinstance(open_runs, list) and open_runs and not _running(current):
        name = f"{current['id']}/{open_runs[0]}"
        asked = once(
            call,
            scene,
            STOP,
            UNEXPLAINED,
            f"{name} has an open alarm and no diagnosis. {due_for(name)}",
        )
        if asked.block:
            return asked
    due = ""
    if (
        current
        and current["status"] != "judged"
        and _count(current, "ended")
        and not _running(current)
    ):
        due = (
            f"{current['id']} has runs that ended and no verdict. Judge it now:"
            f" {_way(home, current['id'])}; or say in your answer why that is left to a person."
        )
    return once(call, scene, STOP, UNJUDGED, due)


def once(call: dict[str, Any], scene: HookScene, event: str, rule: str, due: str) -> HookAnswer:
    """Ask for what is `due`, unless the turn goes on by such a
    question or `rule` asked enough."""
    home = scene.home
    if home is None or not due or call.get("stop_hook_active"):
        return HookAnswer()
    earlier = sum(
        line.get("event") == event and line.get("rule") == rule
        for line in lines_back(home, session_of(call))
    )
    if earlier >= MOST:
        return HookAnswer()
    role = role_of(call, home.snapshot)
    note(home, call, said(DENY, rule, due), event=event, role=role, now=scene.now)
    return HookAnswer(block=f"harness: {due}")


def _way(home: HookedProject | None, experiment: str) -> str:
    """The next step, and the last one."""
    standing = home.snapshot.get("standing") if home else None
    step = standing.get("command") if isinstance(standing, dict) else None
    gate = f"harness gate check {experiment}"
    lines = dict.fromkeys(line for line in (step, gate) if isinstance(line, str))
    return ", then ".join(f"`{line}`" for line in lines)


def _count(current: dict[str, Any], key: str) -> int:
    value = current.get(key)
    return value if isinstance(value, int) else 0


def _running(current: dict[str, Any]) -> bool:
    return _count(current, "runs") > _count(current, "ended")
