"""How the model service does: what became of each session's newest request, and what a fault of the
service means for the loop."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.domain.plain_text import one_line
from harness.model_gateway.wire import Block, blocks, text_of

LONGEST_WORDS = 300
"""Characters kept of what a service says: it may be a whole page."""
OVERLOADED = 529
MALFORMED_IN_A_ROW = 5
"""Rounds of tool calls of which none could be read, before a session is refused more requests."""
MALFORMED = "malformed_calls"
"""The code of a Refusal for them."""
UNREADABLE = (
    "InputValidationError",
    "Input validation error",
    "No such tool available",
    "could not be parsed",
    "__unparsedToolInput",
)
"""How the CLI answers a call whose input is no JSON, fits no schema, or is for no tool."""
_CREDIT = ("billing_error", "credit balance", "insufficient credit")
_STATUS = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": OVERLOADED,
}
"""The status that an error inside a stream would have had."""
PASSING_STATUS = (408, 409, 425, 429)


class Fault(StrEnum):
    """What a fault means. Those of `LASTING` end a loop at once, for waiting does not help."""

    PASSING = "service_unavailable"
    KEY = "key_refused"
    CREDIT = "credit_empty"
    MODEL = "model_not_found"
    REQUEST = "rejected"
    """The service, or the gateway, never takes such a request."""
    MALFORMED = "malformed"
    """The session called tools in a form that none has."""


LASTING = (Fault.KEY, Fault.CREDIT, Fault.MODEL)


@dataclass(frozen=True, kw_only=True)
class Trouble:
    fault: Fault
    words: str
    wait_s: float = 0.0
    """How long the service asks to be left alone."""


UNANSWERED = Trouble(fault=Fault.PASSING, words="the model service began no answer, or ended none")


class Weather:
    """What became of the newest request of each session. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._troubles: dict[str, Trouble | None] = {}
        self._stops: dict[str, str] = {}
        self.unserved: Trouble | None = None
        """What ended the newest session, where that was the service."""

    def asked(self, session: str) -> None:
        """Until it is answered, a session that ends has waited for the service."""
        self.failed(session, UNANSWERED)

    def failed(self, session: str, trouble: Trouble) -> None:
        with self._lock:
            self._troubles[session] = trouble

    def answered(self, session: str, message: Mapping[str, Any]) -> None:
        with self._lock:
            self._troubles[session] = None
            self._stops[session] = str(message.get("stop_reason"))

    def trouble(self, session: str) -> Trouble | None:
        """Of its newest request; None when that was answered, or nothing was asked."""
        with self._lock:
            return self._troubles.get(session)

    def stop_reason(self, session: str) -> str:
        """Of its newest whole answer."""
        with self._lock:
            return self._stops.get(session, "")


def trouble_of(status: int, headers: Mapping[str, str], body: bytes) -> Trouble:
    """What an answer with a status other than 200 says."""
    kind, message = _error_in(body)
    said = f": {message}" if message else ""
    return Trouble(
        fault=_fault(status, kind, message),
        words=one_line(f"status {status}{said}", LONGEST_WORDS),
        wait_s=_wait(headers.get("retry-after", "")),
    )


def trouble_in_stream(error: Any) -> Trouble:
    """What an event `error` in the midst of an answer says."""
    error = error if isinstance(error, dict) else {}
    kind = str(error.get("type", "api_error"))
    body = json.dumps({"error": error}).encode()
    return trouble_of(_STATUS.get(kind, 500), {}, body)


def broke_off(words: str) -> Trouble:
    return Trouble(fault=Fault.PASSING, words=one_line(words, LONGEST_WORDS).rstrip("."))


def unreadable_in_a_row(body: Mapping[str, Any]) -> int:
    """How many of the newest rounds of tool calls were answered only by errors of reading them."""
    count = 0
    for message in reversed(list(blocks(body.get("messages")))):
        if message.get("role") != "user":
            continue
        results = [
            block for block in blocks(message.get("content")) if block.get("type") == "tool_result"
        ]
        if not results:
            continue
        if not all(_is_unreadable(block) for block in results):
            return count
        count += 1
    return count


def _is_unreadable(result: Block) -> bool:
    text = text_of(result.get("content"))
    return bool(result.get("is_error")) and any(words in text for words in UNREADABLE)


def _fault(status: int, kind: str, message: str) -> Fault:
    low = f"{kind} {message}".lower()
    if status == 402 or (400 <= status < 500 and any(words in low for words in _CREDIT)):
        return Fault.CREDIT
    if status in (401, 403):
        return Fault.KEY
    if status == 404:
        return Fault.MODEL
    if status in PASSING_STATUS or status >= 500 or status < 400:
        return Fault.PASSING  # below 400: of a portal or a proxy on the way
    return Fault.REQUEST


def _error_in(body: bytes) -> tuple[str, str]:
    """The type and the message of an error, or the text of what is none."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return "", body[:LONGEST_WORDS].decode("utf-8", "replace")
    error = told.get("error", told) if isinstance(told, dict) else {}
    if not isinstance(error, dict):
        return "", str(error)
    return str(error.get("type", "")), str(error.get("message", ""))


def _wait(seconds: str) -> float:
    """Of a header retry-after; 0 for a date, or what is no number."""
    try:
        value = float(seconds)
    except ValueError:
        return 0.0
    return value if 0 < value < float("inf") else 0.0
