"""A service on loopback that answers as it is told, and keeps what it was asked."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW = {"x-speed": "slow"}


@dataclass
class Service:
    """`answers`: (status, headers, body) in turn; the last one stays. A status of 0 answers
    nothing; bytes are sent as they are, a byte each 50 ms with SLOW."""

    answers: list[tuple[int, dict[str, str], Any]]
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def of_openai(text: str, *, stop: str = "stop") -> tuple[int, dict[str, str], Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": stop}
    usage = {"prompt_tokens": 40, "completion_tokens": 10}
    return 200, {}, {"choices": [choice], "usage": usage}


def of_anthropic(text: str, *, stop: str = "end_turn") -> tuple[int, dict[str, str], Any]:
    content = [{"type": "text", "text": text}]
    usage = {"input_tokens": 1000, "output_tokens": 100}
    return 200, {}, {"content": content, "stop_reason": stop, "usage": usage}


@contextmanager
def serving(*answers: tuple[int, dict[str, str], Any]) -> Iterator[Service]:
    service = Service(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            service.asked.append({"path": self.path, **json.loads(body)})
            service.headers.append({name.lower(): text for name, text in self.headers.items()})
            rest = service.answers
            status, headers, answer = rest.pop(0) if len(rest) > 1 else rest[0]
            if not status:
                time.sleep(1)
                return
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            slow = headers == SLOW
            for name, value in {"content-length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for at in range(0, len(data), 1 if slow else len(data) or 1):
                    self.wfile.write(data[at:] if not slow else data[at : at + 1])
                    time.sleep(0.05 * slow)
            except OSError:
                return  # the client hung up

        def log_message(self, *_words: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
