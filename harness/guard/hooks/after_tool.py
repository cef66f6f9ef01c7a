"""PostToolUse and PostToolBatch: what happened, for the audit; nothing is ever blocked here."""

from __future__ import annotations

from harness.guard.policy.decide import READERS, WRITERS, role_of

from .alarms import ARTIFACT as ALARMS
from .alarms import new_alarms
from .control_digests import MISSING, control_digests
from .hook_scene import HookAnswer
from .session_receipts import lines_back, note, said, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject

GUARD_EVENT, AFTER_TOOL, AFTER_BATCH = "PreToolUse", "PostToolUse", "PostToolBatch"
UNHOOKED = "unhooked"
"""The rule of a receipt about a call that no guard saw."""
CHANGED = "control_changed"


def after_tool(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """A receipt with the digests of the control files; the model is told when one of them has
    changed, and what the detectors said about the open experiment's runs."""
    home = scene.home
    if home is None:
        return HookAnswer()
    now = control_digests(scene)
    before = last_control(home, session_of(call))
    changed = [name for name in _changed(before, now) if not _approved(home, name, now[name])]
    what = said(None, CHANGED if changed else "no_rule", paths=changed)
    news, counts = new_alarms(home, session_of(call))
    counted = {ALARMS: counts} if news else {}
    note(
        home,
        call,
        what,
        event=AFTER_TOOL,
        role=_role(call, home),
        now=scene.now,
        control=now,
        **counted,
    )
    if changed:
        news = [_change_message(changed), *news]
    return HookAnswer(context="\n".join(news))


def _change_message(changed: list[str]) -> str:
    return (
        f"harness: {', '.join(changed)} changed during this session. These files decide what is"
        " enforced; no agent changes them. `harness audit` reports the change and this session. Say"
        " in your answer that it happened and whether you caused it; a person decides what to"
        " do."
    )


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Names whose digests differ. What was not looked at before has not changed, nor has a folder
    from which a name was taken apart, or to which one was added again, meanwhile."""
    regrouped = {*before} ^ {*now}
    differing = (name for name in now if now[name] != before.get(name, now[name]))
    return sorted(
        name for name in differing if not any(other.startswith(f"{name}/") for other in regrouped)
    )


def _approved(home: HookedProject, name: str, digest: str) -> bool:
    """Whether it is a plan that stands as a person approved it, with this digest."""
    plans = (home.snapshot or {}).get("plans") or {}
    return digest != MISSING and plans.get(name, "").startswith(digest)


def last_control(home: HookedProject, session: str) -> dict[str, str]:
    """The digests that the session's newest receipt with some holds; empty for a session
    without."""
    for line in lines_back(home, session):
        control = line.get("control")
        if isinstance(control, dict):
            return control
    return {}


def after_batch(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """A receipt for each call of the batch that left none when it was made: no guard saw it."""
    home, calls = scene.home, call.get("tool_calls")
    if home is None or not isinstance(calls, list):
        return HookAnswer()
    made = [
        tool_call
        for tool_call in calls
        if isinstance(tool_call, dict) and isinstance(tool_call.get("tool_use_id"), str)
    ]
    missing = {tool_call["tool_use_id"] for tool_call in made}
    for line in lines_back(home, session_of(call)) if missing else ():
        if line.get("event") == GUARD_EVENT:
            missing.discard(line.get("tool_use_id"))
            if not missing:
                break
    for tool_call in made:
        if tool_call["tool_use_id"] in missing:
            unseen = {
                **tool_call,
                "session_id": session_of(call),
                "agent_type": call.get("agent_type"),
            }
            what = said(None, UNHOOKED, paths=_paths(tool_call))
            note(home, unseen, what, event=AFTER_BATCH, role=_role(call, home), now=scene.now)
    return HookAnswer()


def _paths(tool_call: dict[str, Any]) -> list[str]:
    tool_input = tool_call.get("tool_input")
    key = {**WRITERS, **READERS}.get(str(tool_call.get("tool_name")))
    path = tool_input.get(key) if isinstance(tool_input, dict) and key else None
    return [path] if isinstance(path, str) else []


def _role(call: dict[str, Any], home: HookedProject) -> str:
    return role_of(call, home.snapshot) if home.snapshot else "main"
