"""SubagentStart and SubagentStop: a role's own subagent is told
what it may write, and asked for it."""

from __future__ import annotations

import os

from harness.guard.policy.decide import role_of

from .hook_scene import HookAnswer
from .reminders import once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene

STOP = "SubagentStop"
ARTIFACTS = "artifacts_missing"


def started(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """A briefing for a subagent of ours, in few words: its
    prompt may say nothing of the project."""
    home, role = scene.home, _own_role(call, scene)
    if home is None or role is None:
        return HookAnswer()
    rights, current = home.snapshot["roles"][role], home.snapshot["open_experiment"]
    standing = home.snapshot.get("standing")
    due = standing.get("next") if isinstance(standing, dict) else None
    open_one = f"{current['id']} is {current['status']}" if current else "no experiment is open"
    paths = [*rights["writes"], *(["the project's ordinary files"] if rights["code"] else [])]
    lines = [
        f"harness: you are the {role}; {open_one}.",
        f"You may write {', '.join(paths)}." if paths else "You write no file.",
    ]
    if due:  # no command: it is the main session's, or a person's
        lines.append(f"What is due in the project: {due}.")
    lines.append(f"The briefing: {home.text('briefing', '.harness/memory/BRIEFING.md')}")
    return HookAnswer(context=" ".join(lines))


def before_stop(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Asked once of a role's own subagent: its artifacts of the
    open experiment that are missing."""
    home, role = scene.home, _own_role(call, scene)
    if home is None or role is None or not home.snapshot.get("open_experiment"):
        return HookAnswer()  # the files are an open experiment's
    missing = [
        path
        for path in home.snapshot["roles"][role]["writes"]
        if not os.path.exists(os.path.join(home.root, path))
    ]
    due = (
        f"{role} writes {', '.join(missing)}, and nothing is there yet. Write it, or say why it"
        " cannot be."
        if missing
        else ""
    )
    return once(call, scene, STOP, f"{ARTIFACTS}:{role}", due)


def _own_role(call: dict[str, Any], scene: HookScene) -> str | None:
    """The role of the subagent; None for one that is not ours."""
    home, named = scene.home, call.get("agent_type")
    if home is None or not home.snapshot or not isinstance(named, str):
        return None
    role = role_of(call, home.snapshot)
    return role if role == named.rsplit(":", 1)[-1] else None
