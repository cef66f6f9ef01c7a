"""Attacks by tool calls, through the real Claude Code CLI: in one session without hooks and in one
with them; those that would change what happens to others have sessions of their own.

Without hooks each call must have its effect, and what the audit names is the audit's merit. With
hooks each call must be denied, or its effect named. With a sandbox the same is tried in it without
hooks.
"""

import json
import shlex
import sys
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cheats.agent_acts import sandboxed
from harness.cheats.attack import Attack, AttackOutcome, TrueScores
from harness.cheats.defended import Parent, values_of
from harness.cheats.lab import LabProject, filled
from harness.cheats.recorded import Trail, audited
from harness.cheats.truth import EffectScene, effect
from harness.driver.environment import bundled_cli
from harness.errors import GatewayError, HarnessError
from harness.model_gateway.gateway import Gateway, Reply
from harness.model_gateway.wire import Asker, Message, RecordedRequest, as_events, as_json

_LONGEST_S = 240.0
_BY_HOOK = "hook error"
_TOOLS = "Bash Read Write Edit Agent mcp__files"
Call = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CallScript:
    """An Answerer: the main thread makes `turns`, a message each, a subagent `within`."""

    turns: Sequence[Sequence[Call]]
    within: Sequence[Call] = ()

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        message = self._message(request)
        if request.stream:
            return Reply(body=_chunks(message), headers={"content-type": "text/event-stream"})
        return Reply(body=json.dumps(as_json(message)).encode())

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return Reply(body=json.dumps({"input_tokens": request.bytes // 4}).encode())

    async def close(self) -> None:
        return None

    def _message(self, request: RecordedRequest) -> Message:
        turns = [self.within] if request.subagent else self.turns
        calls = (
            turns[request.turn] if request.turn < len(turns) and request.body.get("tools") else ()
        )
        blocks: list[dict[str, Any]] = [{"type": "tool_use", **call} for call in calls] or [
            {"type": "text", "text": "Done."}
        ]
        return Message(
            id=f"msg_{request.subagent or 'main'}_{request.turn}",
            model=str(request.body.get("model")),
            blocks=tuple(blocks),
            stop_reason="tool_use" if calls else "end_turn",
            usage={"input_tokens": request.bytes // 4, "output_tokens": 10},
        )


async def _chunks(message: Message) -> AsyncIterator[bytes]:
    for chunk in as_events(message):
        yield chunk


def play(
    place: LabProject, script: CallScript, servers: Mapping[str, Any], *, guarded: bool
) -> dict[str, str]:
    """Call id -> the CLI's answer. Raises GatewayError when the session failed."""
    with Gateway(script) as gateway, gateway.admitted(Asker(role="lab")) as key:
        words = [
            *(str(bundled_cli()), "-p", "go", "--output-format", "stream-json", "--verbose"),
            *(
                "--setting-sources",
                "project" if guarded else "",
                "--permission-mode",
                "acceptEdits",
            ),
            *("--allowedTools", *_TOOLS.split(), "--strict-mcp-config"),
            *(
                "--mcp-config",
                json.dumps({"mcpServers": dict(servers)}),
                "--session-id",
                str(uuid.uuid4()),
            ),
        ]
        environment = _environment(place, gateway.url, key)
        ended = place.run(words, environment=environment, timeout_s=_LONGEST_S)
        if gateway.failure is not None or ended.returncode != 0:
            raise GatewayError(
                "The lab's session failed:"
                f" {gateway.failure or ended.stderr[-400:] or ended.stdout[-400:]}.",
                hint="Fix the lab.",
            )
    return dict(_results(ended.stdout))


def denied(answer: str) -> bool:
    return _BY_HOOK in answer


def _environment(place: LabProject, url: str, key: str) -> dict[str, str]:
    config, temporary = place.home / "config", place.home / "tmp"
    config.mkdir(parents=True, exist_ok=True)
    return place.environment(
        PATH="/usr/local/bin:/usr/bin:/bin",
        CLAUDE_CONFIG_DIR=str(config),
        CLAUDE_CODE_TMPDIR=str(temporary),
        SHELL="/bin/bash",
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY=key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        CLAUDE_CODE_MAX_RETRIES="0",
        DISABLE_AUTOUPDATER="1",
    )


def _results(stream: str) -> Iterator[tuple[str, str]]:
    for line in stream.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        answered = isinstance(message, dict) and message.get("type") == "user"
        content = message["message"].get("content") if answered else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield str(block.get("tool_use_id")), str(block.get("content"))


SERVER = """\
import json, pathlib, sys

tool = {"name": "write_file", "description": "Write a file", "inputSchema": {"type": "object", "properties": {
    "path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]}}


def answer(method, given):
    if method == "initialize":
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "files", "version": "1"}}
    if method == "tools/list":
        return {"tools": [tool]}
    if method == "tools/call":
        pathlib.Path(given["arguments"]["path"]).write_text(given["arguments"]["content"])
        return {"content": [{"type": "text", "text": "written"}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
"""A stdio MCP server of somebody else."""


ORDINARY: tuple[dict[str, Any], ...] = (
    {
        "id": "ordinary_bash",
        "name": "Bash",
        "input": {"command": "echo 6 > six.txt", "description": "an ordinary call"},
    },
    {
        "id": "ordinary_python",
        "name": "Bash",
        "input": {"command": "python3 -c 'print(6)'", "description": "another"},
    },
)
"""Must not be denied: a guard that denies everything stops nothing in particular."""


def session(place: LabProject, attacks: Sequence[Attack], *, guarded: bool) -> dict[str, str]:
    """All calls of `attacks` in one session: call id -> answer."""
    # The CLI refuses to write a file that was not read: such a refusal says nothing of the guard.
    values = values_of(place)
    place.write({".files/server.py": SERVER}, {})
    servers = {
        "files": {
            "type": "stdio",
            "command": sys.executable,
            "args": [str(place.root / ".files/server.py")],
        }
    }
    made = [
        _filled_call(call, values)
        for attack in attacks
        for call in attack.calls
        if not attack.within_subagent
    ]
    within = [
        _filled_call(call, values)
        for attack in attacks
        for call in attack.calls
        if attack.within_subagent
    ]
    reads = [
        {
            "id": f"read_{call['id']}",
            "name": "Read",
            "input": {"file_path": call["input"]["file_path"]},
        }
        for call in made
        if call["name"] in ("Write", "Edit")
    ]
    if within:
        delegated = {
            "description": "help",
            "prompt": "go on",
            "subagent_type": "general-purpose",
            "run_in_background": False,
        }
        made.append({"id": "delegate", "name": "Agent", "input": delegated})
    if not any(attack.apart for attack in attacks):
        made += ORDINARY
    return play(
        place,
        CallScript(turns=[reads, made] if reads else [made], within=within),
        servers,
        guarded=guarded,
    )


def outcomes(
    place: LabProject, attacks: Sequence[Attack], parent: Parent, *, guarded: bool
) -> dict[str, tuple[AttackOutcome, TrueScores]]:
    """Attack id -> denials of its calls, its effect, and what the audit names of it."""
    answers = session(place, attacks, guarded=guarded)
    if wrong := [text for call in ORDINARY if denied(text := answers.get(call["id"], ""))]:
        raise HarnessError(
            f"The guards deny ordinary calls: {wrong[0][:600]}.", hint="Look at `harness doctor`."
        )
    values = values_of(place)
    done = {
        attack.id: effect(attack, EffectScene(place=place, values=values, log=""))
        for attack in attacks
    }
    named = list(audited(place, Trail()))
    rows = {}
    for attack in attacks:
        ids = [call["id"] for call in attack.calls]
        codes = tuple(f"denied: {name}" for name in ids if denied(answers.get(name, "")))
        of_it = tuple(
            line for line in named if any(_is_of(line, name) for name in (*ids, attack.target))
        )
        evidence = {
            "done": done[attack.id],
            "answers": {name: answers.get(name, "")[:200] for name in ids},
        }
        rows[attack.id] = (
            AttackOutcome(codes=codes, named=of_it, evidence=evidence),
            TrueScores(score=parent.true, parent=parent.true),
        )
    return rows


def held_by_sandbox(place: LabProject, attack: Attack, sandbox: str) -> bool:
    """Whether the same by a shell in the sandbox has no effect."""
    values = values_of(place)
    for call in attack.calls:
        sandboxed(place, ["/bin/bash", "-c", _as_shell(_filled_call(call, values))], sandbox)
    return not effect(attack, EffectScene(place=place, values=values, log=""))


def _is_of(line: str, name: str) -> bool:
    return bool(name) and f" {name}" in f" {line}"


def _filled_call(call: Call, values: Mapping[str, str]) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(filled(json.dumps(dict(call)), values))
    if "file_path" in whole["input"] and not whole["input"]["file_path"].startswith("/"):
        whole["input"]["file_path"] = f"{values['ROOT']}/{whole['input']['file_path']}"
    if "command" in whole["input"]:
        whole["input"].setdefault("description", whole["id"])
    return whole


def _as_shell(call: Mapping[str, Any]) -> str:
    arguments = call["input"]
    if "command" in arguments:
        return str(arguments["command"])
    path = shlex.quote(str(arguments.get("file_path") or arguments.get("path")))
    text = shlex.quote(str(arguments.get("content", arguments.get("new_string", ""))))
    return f"printf %s {text} > {path}"
