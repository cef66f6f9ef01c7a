"""The rules of a session: SDK callbacks around every tool call, with a receipt for each decision.

A call on which the policy has no opinion is allowed: the sandbox limits what it can reach. Without
one the receipt says `unsandboxed`.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from claude_agent_sdk import HookCallback, HookMatcher

from harness.clock import iso
from harness.contract.roles import MOST_REMINDERS
from harness.domain.plain_text import one_line
from harness.domain.statuses import SandboxKind
from harness.driver import handing_over, watchdog
from harness.driver.circles import Circles, Due
from harness.driver.run_news import AlarmNews
from harness.driver.session import Hooks
from harness.driver.tool_context import ToolContext
from harness.driver.tools.table import owed_tools, tool_of
from harness.errors import HarnessError, MissingExtraError
from harness.guard.policy.decide import DENY, answer
from harness.guard.policy.receipt import FAILED, append_receipt, receipt
from harness.guard.shell.decide_with_tree import judge_call

HOOK_SECONDS = 60.0
UNSANDBOXED = "unsandboxed"
EVENT = "PreToolUse"

OnCall = Callable[[str, dict[str, Any], str, str], None]
"""tool, input, "allow" or "deny", reason."""


class Guard:
    """The callbacks of one session."""

    def __init__(
        self,
        context: ToolContext,
        *,
        snapshot: Callable[[], dict[str, Any]],
        on_call: OnCall = lambda _tool, _input, _permission, _reason: None,
        on_alarm: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._context, self._snapshot, self._on_call = context, snapshot, on_call
        self._on_alarm = on_alarm
        self._reminders = 0
        self._alarms = AlarmNews(context.project)
        self._circles = Circles()
        self._left = ""
        self.ended = ""
        """Why the session was ended from here; empty while it was not."""

    def hooks(self) -> Hooks:
        """The guard fails closed; observers and the reminder fail open."""
        return {
            EVENT: [_matcher(self.before_tool, on_failure="block")],
            "PostToolUse": [_matcher(self.after_tool)],
            "PostToolUseFailure": [_matcher(self.after_tool)],
            "PreCompact": [_matcher(self.before_compaction)],
            "Stop": [_matcher(self.before_stop)],
        }

    async def before_tool(
        self, payload: Any, _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """Allow or deny, always explicitly."""
        # In the permission mode `dontAsk` no opinion would be a denial without a reason.
        call = {**payload, "agent_type": self._context.role.name}
        with self._context.pulse.working(f"the hook {EVENT}"):
            permission = _judged(call, self._snapshot())
            if permission["permission"] is None:
                permission |= {"permission": "allow"} | (
                    {"rule": UNSANDBOXED} if self._context.sandbox is SandboxKind.NONE else {}
                )
            self._record(call, permission)
        decision = permission["permission"]
        reason = f"{permission['reason']} {permission['hint']}".strip() if decision == DENY else ""
        self._on_call(payload["tool_name"], payload["tool_input"], decision, reason)
        output = {"hookEventName": EVENT, "permissionDecision": decision}
        if reason:
            output["permissionDecisionReason"] = reason
        return {"hookSpecificOutput": output}

    def _record(
        self, call: dict[str, Any], permission: dict[str, Any], event: str = EVENT, **more: str
    ) -> None:
        """Raises OSError when it cannot be written: an unrecorded call is blocked."""
        project = self._context.project
        line = receipt(
            call,
            permission,
            time=iso(project.clock.now()),
            session=self._context.session,
            role=self._context.role.name,
            event=event,
        )
        append_receipt(str(project.layout.shared("receipts")), {**line, **more})

    def _record_fault(self, event: str, error: Exception) -> None:
        """An observer that fails lets go, with a receipt where one can be written."""
        what: dict[str, Any] = {"permission": None, "rule": FAILED, "reason": "", "paths": []}
        with contextlib.suppress(OSError):
            self._record({}, what, event=event, error=one_line(str(error), 1000))

    async def after_tool(
        self, payload: Any, _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """Record a sign of life, pass on each new alarm of the detectors once, and tell or end a
        session that finds out nothing."""
        self._context.pulse.beat()
        news = self._alarms.new(self._context.current)
        for text in news:
            self._on_alarm(text)
        if self._left:
            news, self._left = [self._left, *news], ""
        due = self._due(payload)
        if due is Due.END:
            self.ended = watchdog.end(self._context, self._circles)
            return {"continue_": False, "stopReason": self.ended}
        if due is Due.NUDGE:
            news = [*news, watchdog.nudge(self._context, self._circles)]
        if not news:
            return {}
        event = payload["hook_event_name"]
        return {
            "hookSpecificOutput": {"hookEventName": event, "additionalContext": "\n".join(news)}
        }

    def _due(self, payload: Mapping[str, Any]) -> Due:
        context = self._context
        self._circles.take(payload)
        waits = context.current is not None and context.is_running(context.current)
        return self._circles.due(context.project.ledger.position(), waits=waits)

    async def before_compaction(
        self, _payload: Any, _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """Hand over what was done: for this session, which is told with its next call, and for
        another one."""
        written = None
        try:
            with self._context.pulse.working("the hook PreCompact"):
                written = handing_over.summarised(self._context.project, self._context.session)
        except (HarnessError, OSError) as error:
            self._record_fault("PreCompact", error)
        self._left = (
            "" if written is None else f"Before your context was summarised: {written.text}"
        )
        return {}

    async def before_stop(
        self, payload: Any, _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """Remind once of the tools that are still due; what is missing then, the gate finds."""
        context = self._context
        names = owed_tools(context.role, of_phase=context.of_phase)
        owed = [tool_of(name).due for name in names if name not in context.done]
        if not owed or payload.get("stop_hook_active") or self._reminders >= MOST_REMINDERS:
            return {}
        self._reminders += 1
        return {"decision": "block", "reason": " ".join(owed)}


def _judged(call: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]:
    """The policy's answer; a denial if the reader of command lines is not installed."""
    try:
        return judge_call(call, snapshot)
    except MissingExtraError as error:
        return answer(DENY, "reader_missing", error.message, error.hint)


def _matcher(
    callback: Callable[..., Any], *, on_failure: Literal["block"] | None = None
) -> HookMatcher:
    hook = cast(HookCallback, callback)
    return HookMatcher(hooks=[hook], timeout=HOOK_SECONDS, on_failure=on_failure)
