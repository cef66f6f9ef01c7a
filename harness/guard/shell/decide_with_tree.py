"""One tool call, judged with both readers of shell commands; the stricter answer counts."""

from typing import Any

from harness.guard.policy.decide import ALLOW, DENY, decide
from harness.guard.policy.shell_reader import read_script
from harness.guard.policy.shell_script import ShellScript
from harness.guard.shell.tree_reader import read_tree

_UNREADABLE = "unreadable_command"
_STRICTNESS = {ALLOW: 0, None: 1, DENY: 2}


def judge_call(call: dict[str, Any], snapshot: Any) -> dict[str, Any]:
    """What `policy.decide` says, once with its own reader and once with tree-sitter's: deny before
    no opinion before allow, and of two denials the one that could read the command.

    Raises MissingExtraError, for a command line, when tree-sitter is not installed.
    """
    first = decide(call, snapshot)
    if call.get("tool_name") != "Bash" or (
        first["permission"] == DENY and first["rule"] != _UNREADABLE
    ):
        return first
    second = decide(call, snapshot, _tree)
    stricter = _STRICTNESS[second["permission"]] - _STRICTNESS[first["permission"]]
    return second if stricter > 0 or (stricter == 0 and first["rule"] == _UNREADABLE) else first


def _tree(text: str) -> ShellScript:
    """The tree's reading. Where it gave up and the other reader did not, what it found counts and
    that it gave up does not: the grammar refuses some good bash, and the other reader's answer
    stands beside this one."""
    found = read_tree(text)
    return (
        ShellScript(found.commands, found.loops, "")
        if found.problem and not read_script(text).problem
        else found
    )
