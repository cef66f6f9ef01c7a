"""Stop and SubagentStop: one more step is asked for, where the model can do it; then it may go.

At most one block a turn and two a session for one reason, counted from the session's receipts. No
contract rests on this: a session that is cut fires no Stop, and the gate finds what is missing.
"""

from __future__ import annotations

import os

from harness.guard.policy.decide import DENY, role_of

from .alarms import due as due_for
from .hook_scene import HookAnswer, refused
from .session_receipts import lines_back, note, said, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject

STOP, SUBAGENT_STOP = "Stop", "SubagentStop"
MOST = 2
"""Blocks a session for one reason."""
UNJUDGED, UNEXPLAINED, ARTIFACTS = "runs_not_judged", "alarms_not_explained", "artifacts_missing"


def before_stop(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Asked once: runs of the open experiment have ended and an alarm of theirs is not explained,
    or no verdict says what they are worth."""
    home = scene.home
    current = home.snapshot.get("open_experiment") if home else None
    open_runs = current.get("undiagnosed") if current else None
    if current and isinstance(open_runs, list) and open_runs and not _running(current):
        name = f"{current['id']}/{open_runs[0]}"
        asked = _once(
            call,
            scene,
            STOP,
            UNEXPLAINED,
            f"{name} has an open alarm and no diagnosis. {due_for(name)}",
        )
        if asked.code:
            return asked
    due = ""
    if (
        current
        and current["status"] != "judged"
        and _count(current, "ended")
        and not _running(current)
    ):
        experiment = current["id"]
        due = (
            f"{experiment} has runs that ended and no verdict. Judge it now: `harness evaluate"
            f" {experiment}`, then `harness gate check {experiment}`; or say in your answer why"
            " that is left to a person."
        )
    return _once(call, scene, STOP, UNJUDGED, due)


def before_subagent_stop(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Asked once of a role's own subagent: its artifacts of the open experiment that are
    missing."""
    home = scene.home
    named = call.get("agent_type")
    if home is None or not isinstance(named, str) or not home.snapshot.get("open_experiment"):
        return HookAnswer()  # the files are an open experiment's
    role = role_of(call, home.snapshot)
    if role != named.rsplit(":", 1)[-1]:
        return HookAnswer()  # it is no agent of ours
    missing = [
        path
        for path in home.snapshot["roles"][role]["writes"]
        if not os.path.exists(_whole(home, path))
    ]
    due = (
        f"{role} writes {', '.join(missing)}, and nothing is there yet. Write it, or say why it"
        " cannot be."
        if missing
        else ""
    )
    return _once(call, scene, SUBAGENT_STOP, f"{ARTIFACTS}:{role}", due)


def _once(call: dict[str, Any], scene: HookScene, event: str, rule: str, due: str) -> HookAnswer:
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
    return refused(due, "")


def _count(current: dict[str, Any], key: str) -> int:
    value = current.get(key)
    return value if isinstance(value, int) else 0


def _running(current: dict[str, Any]) -> bool:
    return _count(current, "runs") > _count(current, "ended")


def _whole(home: HookedProject, path: str) -> str:
    return os.path.join(home.root, path)
