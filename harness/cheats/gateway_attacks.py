"""Attacks on the endpoint of a session's model: by any process of the machine."""

import asyncio
import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.cheats.attack import Attack, AttackOutcome, Moment
from harness.cheats.lab import LabProject, filled
from harness.cheats.truth import EffectScene, effect
from harness.errors import GatewayError
from harness.model_gateway.gateway import Gateway, Reply
from harness.model_gateway.wire import Asker, Message, RecordedRequest, as_json

_MESSAGE = Message(
    id="msg_1",
    model="claude",
    blocks=({"type": "text", "text": "Done."},),
    stop_reason="end_turn",
    usage={"input_tokens": 10, "output_tokens": 5},
)
_ASKED = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


class OneTurn:
    """An Answerer with a script of one turn, which is the session's."""

    def __init__(self) -> None:
        self.left = 1

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        if not self.left:
            raise GatewayError("The script has no further turn.", hint="Write one.")
        self.left -= 1
        return Reply(
            body=json.dumps(as_json(_MESSAGE)).encode(),
            headers={"content-type": "application/json"},
        )

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return Reply(body=b'{"input_tokens": 1}')

    async def close(self) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class _Endpoint:
    url: str
    key: str
    """The session's own."""


def open_to_all(place: LabProject, attack: Attack) -> AttackOutcome:
    """An endpoint that asks nobody who it is."""
    with _bare() as endpoint:
        return _outcome(place, attack, endpoint)


def of_one_session(place: LabProject, attack: Attack) -> AttackOutcome:
    """The gateway as a session has it."""
    with Gateway(OneTurn()) as gateway, gateway.admitted(Asker(role="lab")) as key:
        return _outcome(place, attack, _Endpoint(url=gateway.url, key=key))


def _outcome(place: LabProject, attack: Attack, endpoint: _Endpoint) -> AttackOutcome:
    values = {"URL": endpoint.url}
    ended = place.run([sys.executable, "-c", filled(attack.acts[Moment.DURING], values)])
    scene = EffectScene(
        place=place, values=values, log=ended.stdout + ended.stderr, broken=not _answers(endpoint)
    )
    return AttackOutcome(evidence={"done": effect(attack, scene), "log": scene.log})


def _answers(endpoint: _Endpoint) -> bool:
    """Whether the session still gets its own turn."""
    request = urllib.request.Request(
        f"{endpoint.url}/v1/messages",
        json.dumps(_ASKED).encode(),
        {"content-type": "application/json", "x-api-key": endpoint.key},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


@contextmanager
def _bare() -> Iterator[_Endpoint]:
    script = OneTurn()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            status, body = 200, b""
            try:
                told = asyncio.run(script.answer(None, b"")).body  # type: ignore[arg-type]
                body = told if isinstance(told, bytes) else b""
            except GatewayError:
                status = 400
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield _Endpoint(url=f"http://127.0.0.1:{server.server_address[1]}", key="")
        finally:
            server.shutdown()
