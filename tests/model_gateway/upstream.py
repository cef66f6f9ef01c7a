"""A model service on loopback that plays a scenario, and faults at requests that a test names."""

import contextlib
import http.server
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.contract.roles import ROLES
from harness.errors import GatewayError
from harness.model_gateway.scenario import read_scenario
from harness.model_gateway.scripted import scripted_message
from harness.model_gateway.wire import (
    Asker,
    Message,
    as_events,
    as_json,
    error_body,
    event,
    read_request,
)

STATUSES = {
    "429": (429, "rate_limit_error", "Too many requests"),
    "500": (500, "api_error", "Internal server error"),
    "503": (503, "api_error", "Service unavailable"),
    "529": (529, "overloaded_error", "Overloaded"),
    "key": (401, "authentication_error", "invalid x-api-key"),
    "credit": (400, "invalid_request_error", "Your credit balance is too low to access the API"),
    "model": (404, "not_found_error", "model: claude-none"),
    "rejected": (400, "invalid_request_error", "thinking: no such field"),
}
_TITLES = {f"# {role.name.replace('-', ' ').capitalize()}": role.name for role in ROLES}

Faults = Callable[[str, int], str | None]
"""Role, how many of its requests were asked before -> the fault to play, or None."""


class Upstream:
    def __init__(self, scenario: Path, faults: Faults, *, numbered: bool = False) -> None:
        """`numbered`: a session's experiment is told from its first message; else it is 1."""
        self.numbered = numbered
        self.scenario, self.faults = read_scenario(scenario), faults
        self.asked: list[tuple[str, str | None]] = []
        """Role and fault of each request."""
        self.wrong: list[str] = []
        self.over = threading.Event()
        self._count: Counter[str] = Counter()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                self.close_connection = True
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has left
                    upstream.reply(self, json.loads(raw), len(raw))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def reply(self, handler: Any, body: dict[str, Any], size: int) -> None:
        role = _role(body)
        fault = self.faults(role, self._count[role])
        self._count[role] += 1
        self.asked.append((role, fault))
        if fault in STATUSES:
            status, kind, message = STATUSES[fault]
            return _send(handler, status, json.dumps(error_body(kind, message)).encode())
        if fault == "dropped":
            return handler.wfile.close()
        if fault == "silent":
            self.over.wait(60)
            return None
        if fault == "portal":
            return _send(handler, 200, b"<html>Please log in</html>", "text/html")
        try:
            message = self.said(role, body, size, fault)
        except GatewayError as error:
            self.wrong.append(str(error))
            return _send(handler, 500, json.dumps(error_body("api_error", str(error))).encode())
        if not body.get("stream"):
            if fault in ("cut", "hang", "garbled", "overloaded"):
                return _send(
                    handler, 529, json.dumps(error_body("overloaded_error", "x")).encode()
                )
            return _send(handler, 200, json.dumps(as_json(message)).encode())
        return self.stream(handler, message, fault)

    def stream(self, handler: Any, message: Message, fault: str | None) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        if fault == "cut":
            handler.send_header("content-length", "100000")
        handler.end_headers()
        for number, chunk in enumerate(as_events(message)):
            if number == 2 and fault == "cut":
                return
            if number == 2 and fault == "hang":
                self.over.wait(60)
                return
            if number == 2 and fault == "overloaded":
                handler.wfile.write(event("error", **error_body("overloaded_error", "Overloaded")))
                return
            if number == 2 and fault == "garbled":
                handler.wfile.write(b"event: content_block_delta\ndata: {not json\n\n")
                return
            if fault == "bad json":
                chunk = chunk.replace(b'"partial_json": "{', b'"partial_json": "{,,')
            handler.wfile.write(chunk)
            handler.wfile.flush()

    def said(self, role: str, body: dict[str, Any], size: int, fault: str | None) -> Message:
        if fault in ("refusal", "max_tokens"):
            text = {"type": "text", "text": "I cannot"}
            usage = {"input_tokens": 10, "output_tokens": 3}
            return Message(
                id=f"msg_{len(self.asked):06}",
                model=body["model"],
                blocks=(text,),
                stop_reason=fault,
                usage=usage,
            )
        if fault in ("bad json", "bad tool", "bad input"):
            name = "Nonexistent" if fault == "bad tool" else "Read"
            given = {"path": 3} if fault == "bad input" else {"file_path": "/x"}
            call = {"type": "tool_use", "id": f"toolu_{len(self.asked):06}", "name": name}
            usage = {"input_tokens": 10, "output_tokens": 3}
            return Message(
                id=f"msg_{len(self.asked):06}",
                model=body["model"],
                blocks=({**call, "input": given},),
                stop_reason="tool_use",
                usage=usage,
            )
        number = _experiment(body) if self.numbered else "1"
        request = read_request(Asker(role=role, experiment=number), {}, body, size)
        return replace(scripted_message(self.scenario, request), model=body["model"])


def _role(body: dict[str, Any]) -> str:
    text = json.dumps(body.get("system", ""))
    return next((role for title, role in _TITLES.items() if f"{title}\\n" in text), "?")


def _experiment(body: dict[str, Any]) -> str:
    """By the title of what the session is told first."""
    text = json.dumps(body["messages"][0])
    title = re.search(r"# (?:Experiment |The result of exp-0*|Why exp-0*)(\d+)", text)
    return title[1] if title else "1"


def _send(handler: Any, status: int, body: bytes, kind: str = "application/json") -> None:
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
