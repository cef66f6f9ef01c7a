"""PreToolUse and PreSkillShellCommand: one call, judged by every project that it touches. Deny, or
no opinion; a receipt for each. What a skill or slash command runs before the model reads it comes
as a call of Bash, arguments of the model filled in; no PreToolUse sees it."""

from __future__ import annotations

import os

from harness.guard.policy.decide import DENY, READERS, WRITERS, decide, role_of
from harness.guard.policy.tool_arguments import command_lines, programs

from .hook_scene import HookAnswer, refused
from .judge_socket import asked_there
from .session_receipts import note, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject

EVENT, SKILL_EVENT = "PreToolUse", "PreSkillShellCommand"


def before_tool(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    """Exit 2 when any project forbids the call; else nothing is said, and Claude Code decides as it
    would anyway."""
    projects = scene.met(_paths(call, scene))
    if not projects:
        return HookAnswer()
    answers = [(project, _answer(call, project, projects, scene)) for project in projects]
    denial = next((answer for _, answer in answers if answer["permission"] == DENY), None)
    folders: set[str] = set()
    for project, answer in answers:
        if project.receipts not in folders:  # a worktree's are the main one's
            unseen = _receipt(call, project, denial or answer, scene)
            if unseen:
                return unseen
        folders.add(project.receipts)
    return HookAnswer() if denial is None else refused(denial["reason"], denial["hint"])


def _paths(call: dict[str, Any], scene: HookScene) -> list[str]:
    """Absolute paths that the call may touch, for finding the projects that they lie in."""
    tool, tool_input, cwd = call.get("tool_name"), call.get("tool_input"), scene.cwd
    if not isinstance(tool, str) or not isinstance(tool_input, dict):
        return [cwd] if cwd else []
    key = WRITERS.get(tool) or READERS.get(tool)
    if key:
        path = tool_input.get(key)
        named = [path] if isinstance(path, str) and path else [cwd]
        return [os.path.join(cwd or "/", os.path.expanduser(path)) for path in named]
    if tool.startswith("mcp__") or command_lines(tool_input) or programs(tool_input):
        from .mentioned_places import mentioned

        home = [] if tool == "Bash" or scene.home is None else [scene.home.root]
        return mentioned(tool, tool_input, cwd or "/", *home)
    return [cwd] if cwd else []


def _answer(
    call: dict[str, Any], project: HookedProject, projects: list[HookedProject], scene: HookScene
) -> dict[str, Any]:
    """The first denial of the project's policy, else its last answer."""
    if project.trouble:
        if project is not scene.home and call.get("tool_name") in READERS:
            return said(None, project.trouble[0])  # nothing of it is changed by reading
        rule, reason, hint = project.trouble
        return {**said(DENY, rule, reason), "hint": hint}
    answer: dict[str, Any] = said(None, "no_rule")
    for snapshot in project.judges():
        roots = {other.root for other in projects} | {project.root}
        trees = {
            other.root
            for other in (*projects, project)
            if project.source == other.source != other.root
        }
        answer = decide(
            call,
            {
                **snapshot,
                "protected": [*snapshot["protected"], *scene.protected()],
                "elsewhere": sorted(roots - {snapshot["root"]}),
                "worktrees": sorted(trees - {snapshot["root"]}),
                **scene.claude(),
                **asked_there(snapshot),
            },
        )
        if answer["permission"] == DENY:
            break
    return answer


def _receipt(
    call: dict[str, Any], project: HookedProject, answer: dict[str, Any], scene: HookScene
) -> HookAnswer | None:
    """Write it; the refusal when that fails: a call that nobody can find again is not let
    through."""
    permission = (
        DENY if answer["permission"] == DENY else None
    )  # a hook never allows: the user's own rules decide
    role = role_of(call, project.snapshot) if project.snapshot else "main"
    event = SKILL_EVENT if call.get("hook_event_name") == SKILL_EVENT else EVENT
    try:
        note(
            project,
            call,
            {**answer, "permission": permission},
            event=event,
            role=role,
            now=scene.now,
        )
    except OSError as error:
        return refused(
            f"The receipt of this call cannot be written to {project.receipts}"
            f" ({error.strerror or error}), and a call without a receipt is denied.",
            "A person makes the folder writable or frees disk space; then repeat the step.",
        )
    return None
