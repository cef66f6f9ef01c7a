"""One tool call, one answer: allow, deny, or no opinion; with the rule, the reason and the next
step.

`decide` is pure but for looking at the file system where a path leads. It never raises for any
payload: what it cannot judge it denies, and says how to fix it.
"""

from __future__ import annotations

from .denials import experiment_open
from .path_rules import PathRules
from .paths import places
from .snapshot import HINT, problem
from .tool_arguments import command_lines, paths, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .bash_rules import BashRules
    from .path_rules import Denial
    from .shell_script import ShellScript

ALLOW, DENY = "allow", "deny"
WRITERS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
READERS = {"Read": "file_path", "Glob": "path", "Grep": "path", "LS": "path"}
_OPTIONAL = frozenset({"Glob", "Grep"})
_OWN_TOOL = "mcp__harness__"
_PLUGIN_TOOL = "mcp__plugin_harness_harness__"
_MOST_TEXTS = 5_000
"""Of an MCP tool's arguments, so that the answer comes in time."""


def decide(
    call: Any, snapshot: Any, read: Callable[[str], ShellScript] | None = None
) -> dict[str, Any]:
    """The permission for `call` under `snapshot` (form: policy.snapshot).

    `call` is the payload of a PreToolUse hook: tool_name, tool_input, cwd, and perhaps agent_type;
    other keys are ignored. Returns permission ("allow", "deny" or None for no opinion), rule,
    reason, hint and paths.

    A call whose agent_type names no role of the snapshot is judged as the snapshot's `role`, and
    where that is null as the role "main": any tool, the model-builder's files. `read` reads the
    command line of a Bash call (shell_reader.read_script when it is None).
    """
    unusable = problem(snapshot)
    if unusable:
        return answer(DENY, unusable[0], unusable[1], HINT)
    if (
        not isinstance(call, dict)
        or not isinstance(call.get("tool_name"), str)
        or not call["tool_name"]
    ):
        return answer(
            DENY,
            "payload_unreadable",
            "The tool call has no tool name, so it cannot be checked.",
            "Repeat the call.",
        )
    role = role_of(call, snapshot)
    if role not in snapshot["roles"]:
        reason = (
            f"The policy snapshot has no role {role}; a call of an unknown role is denied by"
            " default."
        )
        return answer(DENY, "role_unknown", reason, HINT)
    tool, tool_input = plain_name(call["tool_name"]), call.get("tool_input")
    tools = snapshot["roles"][role].get("tools")
    if tools is not None and tool not in tools:
        reason = (
            f"The role {role} does not have the tool {tool}; a tool that is not listed is denied by"
            " default."
        )
        return answer(DENY, "tool_not_offered", reason, f"Use one of: {', '.join(tools)}.")
    if not isinstance(tool_input, dict):
        reason = (
            f"tool_input of {tool} is {type(tool_input).__name__}; expected an object, so the call"
            " cannot be judged."
        )
        return answer(DENY, "payload_unreadable", reason, "Repeat the call with its arguments.")
    try:
        return _CallJudge(
            snapshot, role, tool, tool_input, call.get("cwd"), tools is not None, read
        ).decide()
    except (ValueError, RecursionError, OSError) as error:
        reason = f"{tool} names an impossible path ({type(error).__name__}: {error})."
        return answer(DENY, "path_unreadable", reason, "Give a plain path inside the project.")


def plain_name(tool: str) -> str:
    """A tool's name as the rules know it: the harness's own tools have another where their server
    comes with its plugin. Another plugin's server of that name is not the harness's."""
    return _OWN_TOOL + tool[len(_PLUGIN_TOOL) :] if tool.startswith(_PLUGIN_TOOL) else tool


def role_of(call: dict[str, Any], snapshot: dict[str, Any]) -> str:
    """Whose call it is: the payload's agent_type where it is a known role, else the snapshot's,
    else "main"."""
    named = call.get("agent_type")
    if isinstance(named, str):
        short = named.rsplit(":", 1)[-1]  # a plugin's agents are called plugin:name
        if short in snapshot["roles"]:
            return short
    return snapshot["role"] or "main"


def answer(
    permission: str | None, rule: str, reason: str, hint: str = "", paths: list[str] | None = None
) -> dict[str, Any]:
    return {
        "permission": permission,
        "rule": rule,
        "reason": reason,
        "hint": hint,
        "paths": paths or [],
    }


class _CallJudge:
    def __init__(
        self,
        snapshot: dict[str, Any],
        role: str,
        tool: str,
        tool_input: dict[str, Any],
        cwd: Any,
        listed: bool,
        read: Callable[[str], ShellScript] | None,
    ) -> None:
        self.snapshot = snapshot
        self.judge = PathRules(snapshot, role)
        self.tool = tool
        self.tool_input = tool_input
        self.cwd = cwd
        self.listed = listed
        self.read = read

    def decide(self) -> dict[str, Any]:
        if self.tool in WRITERS:
            return self.file(WRITERS[self.tool], writes=True)
        if self.tool in READERS:
            return self.file(READERS[self.tool], writes=False)
        if self.tool == "Bash":
            return self.bash()
        if self.tool.startswith("mcp__"):
            return self.mcp()
        denied = self.commands()
        if denied:
            return denied
        if self.listed:
            return answer(
                ALLOW, "tool_offered", f"{self.tool} is a tool of the role {self.judge.role}."
            )
        return answer(None, "no_rule", f"No rule is about {self.tool}.")

    def file(self, key: str, *, writes: bool) -> dict[str, Any]:
        path = self.tool_input.get(key)
        if path is None and self.tool in _OPTIONAL:
            path = "."
        if not isinstance(path, str) or not path:
            reason = (
                f"{key} of {self.tool} is {path!r:.80}; expected a path as text, so the call cannot"
                " be judged."
            )
            return answer(DENY, "payload_unreadable", reason, f"Give {key} as text.")
        cwd = self.folder(path)
        if cwd is None:
            return self.nowhere(path)
        denial = self.judge.write(path, cwd) if writes else self.searched(path, cwd)
        paths = [self.judge.shown(places(path, cwd)[-1])]
        if denial:
            return self.denied(denial, paths)
        if self.judge.outside(path, cwd):
            return answer(
                None,
                "outside_project",
                f"{path} is outside the project; no rule is about it.",
                paths=paths,
            )
        return answer(
            ALLOW,
            "ordinary_file",
            f"{paths[0]} may be {'changed' if writes else 'read'}.",
            paths=paths,
        )

    def searched(self, path: str, cwd: str) -> Denial | None:
        """Reading one file, or searching a folder with all that lies below it."""
        denial = self.judge.read(path, cwd, below=self.tool == "Grep")
        pattern = self.tool_input.get("pattern" if self.tool == "Glob" else "glob")
        if denial or self.tool not in _OPTIONAL or not isinstance(pattern, str):
            return denial
        return self.judge.read_pattern(pattern, places(path, cwd)[0])

    def folder(self, path: str) -> str | None:
        """The directory that `path` is relative to; None when it is needed and the payload has
        none."""
        if isinstance(self.cwd, str) and self.cwd.startswith("/"):
            return self.cwd
        return self.snapshot["root"] if path.startswith(("/", "~")) else None

    def nowhere(self, path: str) -> dict[str, Any]:
        reason = f"The call has no working directory, so the place of {path:.200} is unknown."
        return answer(DENY, "payload_unreadable", reason, "Give an absolute path.")

    def denied(self, denial: Denial, paths: list[str]) -> dict[str, Any]:
        return answer(DENY, denial.rule, denial.reason, denial.hint, paths)

    def bash(self) -> dict[str, Any]:
        command = self.tool_input.get("command")
        if not isinstance(command, str):
            reason = (
                f"command of Bash is {type(command).__name__}; expected text, so the call cannot be"
                " judged."
            )
            return answer(DENY, "payload_unreadable", reason, "Give the command as text.")
        cwd = self.folder(".")
        if cwd is None:
            return self.nowhere("the command")
        rules = self.ran(command, cwd)
        if rules.denials:
            return self.denied(
                rules.denials[0],
                [self.judge.shown(item.path) for item in rules.denials if item.path],
            )
        if rules.unsure:
            reason = (
                f"The command was not fully parsed ({rules.unsure[0]});"
                " it names nothing protected."
            )
            return answer(None, "not_all_read", reason, paths=rules.paths)
        return answer(
            ALLOW,
            "ordinary_command",
            "Its text touches nothing protected.",
            paths=rules.paths,
        )

    def ran(self, command: str, cwd: str) -> BashRules:
        """The rules over one command line."""
        from .bash_rules import BashRules  # its many modules only for the calls that need them

        rules = BashRules(self.snapshot, self.judge, cwd, self.read)
        rules.run(command)
        return rules

    def mcp(self) -> dict[str, Any]:
        if self.tool.startswith(_OWN_TOOL):
            return self.harness_tool()
        named = paths(self.tool_input)
        if len(named) > _MOST_TEXTS:
            reason = (
                f"{self.tool} was given {len(named)} texts; each may be a path, and {_MOST_TEXTS}"
                " are looked at."
            )
            return answer(
                DENY, "arguments_unread", reason, "Write it with Write or Bash, or in parts."
            )
        folders = dict.fromkeys((self.folder(".") or self.snapshot["root"], self.snapshot["root"]))
        for text in named:
            for folder in folders:  # where the server stands, the payload does not say
                denial = self.judge.write(text, folder)
                if denial and denial.rule != "read_only_role":
                    return self.denied(denial, [self.judge.shown(denial.path)])
        return self.commands() or answer(
            None, "no_rule", f"{self.tool} names nothing protected; no rule is about it."
        )

    def commands(self) -> dict[str, Any] | None:
        """The denial of a command line or of a program among the arguments of a tool that is not
        Bash (Monitor runs one too)."""
        lines, texts = command_lines(self.tool_input), programs(self.tool_input)
        cwd = self.folder(".")
        if cwd is None:
            return self.nowhere("the command") if lines or texts else None
        for line in lines:
            denials = self.ran(line, cwd).denials
            if denials:
                return self.denied(
                    denials[0], [self.judge.shown(denials[0].path)] if denials[0].path else []
                )
        for text in texts:
            denial = self.program(text, cwd)
            if denial:
                return self.denied(denial, [])
        return None

    def program(self, text: str, cwd: str) -> Denial | None:
        from .program_text import code_denial
        from .training import TrainingEntry

        return code_denial(text, self.judge, TrainingEntry(self.snapshot), (cwd,))

    def harness_tool(self) -> dict[str, Any]:
        """The harness's own tools check their arguments themselves; here only the order of steps is
        held."""
        current = self.snapshot["open_experiment"]
        if self.tool == _OWN_TOOL + "open_experiment" and current:
            hypothesis = self.tool_input.get("hypothesis")
            again = (
                isinstance(hypothesis, str)
                and " ".join(hypothesis.split()) == current["hypothesis"]
            )
            if (
                not again
            ):  # asking again for the same one, e.g. after a cut session, is left to the tool
                return self.denied(experiment_open(self.snapshot), [])
        if self.listed:
            return answer(
                ALLOW, "tool_offered", f"{self.tool} is a tool of the role {self.judge.role}."
            )
        return answer(None, "no_rule", f"No rule is about {self.tool}.")
