"""Which tools or sources a hook's `matcher` lets through, as CLI 2.1.332 was measured to read it.

Absent, "" and "*" match all. Letters, digits, `_`, `-`, `|`, `,` and spaces are a list of exact,
case-sensitive names; `Task` also stands for the tool Agent. Anything else is a regular expression
that is searched for; one that is not valid matches nothing.
"""

import re

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
        "mcp__plugin_experiment-harness_harness__start_run",
        "mcp__files__write_file",
    ),
)
"""Names that a guard of all tools must see; more exist, and MCP servers bring any."""
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
    "PreCompact": ("manual", "auto"),
    "SubagentStop": ("general-purpose", "model-builder"),
}
"""What the matcher of each event is compared with; an event that is not here has no matcher."""
_LIST = re.compile(r"[A-Za-z0-9_|, -]+\Z")


def matches(matcher: object, value: str) -> bool:
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
    """The values of `event` that `matcher` does not let through."""
    return tuple(value for value in VALUES.get(event, ()) if not matches(matcher, value))
