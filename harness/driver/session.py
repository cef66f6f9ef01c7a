"""One session of one role: the Agent SDK drives the sandboxed CLI, and no process is left."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import anyio
import psutil
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKError,
    HookMatcher,
    McpSdkServerConfig,
    ProcessError,
    ResultMessage,
    TextBlock,
    query,
)

from harness.contract.roles import MCP_SERVER, Role
from harness.driver.environment import SESSION, SessionFolders
from harness.driver.pulse import Pulse
from harness.driver.tool_server import OfferedTool, tool_server
from harness.files import atomic_write
from harness.process import Mark

DISALLOWED = ("SendMessage", "ListAgents")
"""They could reach other sessions on the same machine."""
NO_ATTRIBUTION = '{"attribution": {"commit": "", "pr": ""}, "includeCoAuthoredBy": false}'
WATCH_SECONDS = 1.0
TERM_SECONDS = 5.0
POLL_SECONDS = 0.05
TERMINATED = (-9, -15, 137, 143)

Hooks = dict[str, list[HookMatcher]]


class SessionEnding(StrEnum):
    """How a session ended. All but the last are normal in a loop."""

    FINISHED = "finished"
    CUT = "cut"  # ended from outside, or silent for too long: the step is repeated
    UNSERVED = "unserved"  # the model service did not answer: as cut, after a wait
    REFUSED = "refused"  # the model declined
    MALFORMED = "malformed"  # tool calls that could not be read, again and again
    MAX_TOKENS = "max_tokens"  # answers that were longer than they may be
    REJECTED = "rejected"  # the service takes no such request
    FAILED = "failed"  # an error of the CLI, or the turn limit
    VOID = "void"  # the scenario could not go on: it counts as if it had never begun


@dataclass(frozen=True, kw_only=True)
class SessionSpec:
    session: str
    role: Role
    system_prompt: str
    prompt: str
    cwd: Path
    folders: SessionFolders
    launcher: Path
    max_turns: int = 60
    silence_seconds: float = 900.0
    """Time without a message and without a harness tool or hook running, before it is cut."""
    model: str | None = None
    effort: str | None = None


@dataclass(frozen=True, kw_only=True)
class SessionOutcome:
    outcome: SessionEnding
    detail: str
    turns: int = 0
    usage: dict[str, int] = field(default_factory=dict)
    silent: bool = False
    """Whether it was cut for its silence."""
    at_work: tuple[str, ...] = ()
    """Of one that was cut: the tools and hooks of ours that had not answered."""


def run_session(
    spec: SessionSpec,
    *,
    tools: list[OfferedTool],
    hooks: Hooks,
    pulse: Pulse | None = None,
    progress: Callable[[], object] = lambda: None,
    on_text: Callable[[str], None] = lambda _text: None,
) -> SessionOutcome:
    """Run one session to its end. An error of the CLI or the API is an outcome, not an exception.

    `on_text` gets the agent's text; `progress` is other from call to call where the session's work
    went on, however silent it is. No process of the session is left, also after an interrupt.
    """
    stderr: list[str] = []
    options = _options(spec, tools, hooks, stderr.append)
    try:
        watch = _SilenceWatchdog(spec, pulse or Pulse(), progress)
        return anyio.run(_drive, spec, options, watch, stderr, on_text)
    finally:
        end_session_processes(spec.folders, spec.session, grace=0.0)
        if stderr:
            text = "\n".join(stderr) + "\n"
            atomic_write(spec.folders.stderr, text, durable=False, mode=0o600)


def _options(
    spec: SessionSpec, tools: list[OfferedTool], hooks: Hooks, on_stderr: Callable[[str], None]
) -> ClaudeAgentOptions:
    server = McpSdkServerConfig(type="sdk", name=MCP_SERVER, instance=tool_server(tools))
    return ClaudeAgentOptions(
        cli_path=spec.launcher,
        cwd=spec.cwd,
        system_prompt=spec.system_prompt,
        tools=list(spec.role.tools),
        disallowed_tools=list(DISALLOWED),
        mcp_servers={MCP_SERVER: server},
        # The session gets our tools and rules only: no MCP server, hook or permission of the
        # project's own settings, and no question to a person who is not there.
        strict_mcp_config=True,
        permission_mode="dontAsk",
        setting_sources=[],
        # Nothing is committed in a session, so how commits are signed need not be told each time.
        settings=NO_ATTRIBUTION,
        max_turns=spec.max_turns,
        hooks=hooks,  # type: ignore[arg-type]  # the SDK spells the event names as literals
        stderr=on_stderr,
        model=spec.model,
        effort=spec.effort,  # type: ignore[arg-type]  # the table's words are the SDK's
    )


async def _drive(
    spec: SessionSpec,
    options: ClaudeAgentOptions,
    watch: "_SilenceWatchdog",
    stderr: list[str],
    on_text: Callable[[str], None],
) -> SessionOutcome:
    results: list[ResultMessage] = []
    error: ClaudeSDKError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(watch.run)
        try:
            async for message in query(prompt=spec.prompt, options=options):
                watch.pulse.beat()
                if isinstance(message, ResultMessage):
                    results.append(message)
                elif isinstance(message, AssistantMessage):
                    for block in message.content:
                        if isinstance(block, TextBlock):
                            on_text(block.text)
        except ClaudeSDKError as raised:
            # The SDK raises after the last message when the CLI exits with an error, so a result
            # may have arrived nevertheless: `judge` looks at both.
            error = raised
        group.cancel_scope.cancel()
    if watch.cut:
        said = f"no sign of life for {spec.silence_seconds:g} s"
        if watch.at_work:
            said = f"{' and '.join(watch.at_work)} did not answer"
        outcome = _outcome(SessionEnding.CUT, said, results)
        return replace(outcome, silent=True, at_work=watch.at_work)
    return judge(results, error, stderr)


class _SilenceWatchdog:
    """Cuts a session that has gone silent, and whose work has not gone on meanwhile either: two
    readings of it, half the time apart."""

    def __init__(self, spec: SessionSpec, pulse: Pulse, progress: Callable[[], object]) -> None:
        self._spec, self.pulse, self._progress, self.cut = spec, pulse, progress, False
        self.at_work: tuple[str, ...] = ()

    async def run(self) -> None:
        most = self._spec.silence_seconds
        before: list[object] = []
        while not self.cut:
            await anyio.sleep(min(WATCH_SECONDS, most / 4))
            silent = self.pulse.silent_for()
            if silent <= most / 2:
                before = []
            elif not before:
                before = [self._progress()]
            elif silent > most:
                if self._progress() != before[0]:
                    self.pulse.beat()
                    continue
                self.cut, self.at_work = True, tuple(self.pulse.at_work())
                # In a thread: waiting for processes must not block the loop that reads their end.
                await anyio.to_thread.run_sync(
                    end_session_processes, self._spec.folders, self._spec.session
                )


def judge(
    results: list[ResultMessage], error: ClaudeSDKError | None, stderr: list[str]
) -> SessionOutcome:
    """The outcome; the last result counts, the error only without one."""
    last = results[-1] if results else None
    if last is not None and (last.stop_reason == "refusal" or last.terminal_reason == "refusal"):
        return _outcome(SessionEnding.REFUSED, last.result or "the model declined", results)
    if last is not None and not last.is_error and last.subtype == "success":
        return _outcome(SessionEnding.FINISHED, "", results)
    if last is not None:
        cut = (last.terminal_reason or "").startswith("aborted")
        reason = "; ".join(last.errors or []) or last.result or ""
        status = f" (status {last.api_error_status})" if last.api_error_status else ""
        return _outcome(
            SessionEnding.CUT if cut else SessionEnding.FAILED,
            f"{last.subtype}{status}: {reason}"[:500],
            results,
        )
    if isinstance(error, ProcessError) and error.exit_code in TERMINATED:
        return _outcome(
            SessionEnding.CUT,
            f"the Claude Code CLI was ended from outside ({error.exit_code})",
            results,
        )
    last_line = stderr[-1] if stderr else "nothing on stderr"
    why = f"{type(error).__name__}: {error}" if error else "the CLI ended without a result"
    return _outcome(SessionEnding.FAILED, f"{why}; {last_line}"[:500], results)


def _outcome(outcome: SessionEnding, detail: str, results: list[ResultMessage]) -> SessionOutcome:
    last = results[-1] if results else None
    usage = (last.usage or {}) if last else {}
    return SessionOutcome(
        outcome=outcome,
        detail=detail,
        turns=sum(result.num_turns for result in results),
        usage={name: value for name, value in usage.items() if isinstance(value, int)},
    )


def end_session_processes(
    folders: SessionFolders, session: str, *, grace: float = TERM_SECONDS
) -> int:
    """End all processes of a session: TERM, then KILL. Returns how many were alive."""
    # Found by the session's name in their environment: the recorded process id may be reused.
    alive = session_processes(session)
    front = _front(folders)
    if grace > 0 and front in {process.pid for process in alive}:
        with contextlib.suppress(psutil.Error):
            psutil.Process(front).terminate()  # it forwards TERM to the CLI
        _until_gone(session, grace)
    _mark(session).kill_all(TERM_SECONDS)
    return len(alive)


def session_processes(session: str) -> list[psutil.Process]:
    """Living processes with the session's name in their environment."""
    return _mark(session).processes()


def _mark(session: str) -> Mark:
    return Mark(variable=SESSION, value=session)


def _front(folders: SessionFolders) -> int | None:
    try:
        return int(folders.pid.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _until_gone(session: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while session_processes(session) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
