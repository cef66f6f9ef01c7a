"""Live and recording against a fake service on loopback: the key, the stream, the meter, the
budget, the replay."""

import asyncio
import http.server
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from harness.domain.prices import FAMILIES, price_of
from harness.errors import GatewayError
from harness.ledger.spending import SpendingLog
from harness.model_gateway.costs import worst_case
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live, _Stream
from harness.model_gateway.meter import Meter
from harness.model_gateway.scenario import Recording, read_scenario
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.service import Service as ModelService
from harness.model_gateway.wire import (
    Asker,
    EventReader,
    Message,
    as_events,
    as_json,
    read_request,
)

MODEL = "claude-haiku-4-5-20251001"  # 1 and 5 dollars a million tokens
USAGE = {
    "input_tokens": 1000,
    "output_tokens": 200,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 10_000,
}
COST = (1000 * 1 + 200 * 5 + 10_000 * 0.1) / 1e6
CLIENT = httpx.Client(trust_env=False, timeout=30)
TRICKY = "line one\n  two: 1e-3\n\ttab ${a.b} 'x' \"y\"\n"


@pytest.fixture(scope="module", autouse=True)
def _closing():
    yield
    CLIENT.close()


class Service:
    """A Messages service that says what it is told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.status = 200
        self.cut = False
        self.gate: threading.Event | None = None
        self.silence: threading.Event | None = None
        """Before the first byte of an answer."""
        self.usage = USAGE
        self.answers: list[list[dict]] = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.asked.append({"path": self.path, "body": body, "headers": headers})
                service.reply(self, body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply(self, handler: http.server.BaseHTTPRequestHandler, body: dict) -> None:
        if self.status != 200:
            return self.send(handler, self.status, b'{"type":"error"}', {"retry-after": "7"})
        if "count_tokens" in handler.path:
            return self.send(handler, 200, b'{"input_tokens": 42}')
        blocks = self.answers.pop(0) if self.answers else [{"type": "text", "text": "hello"}]
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        message = Message(
            id="msg_1",
            model=body["model"],
            blocks=tuple(blocks),
            stop_reason=stop,
            usage=self.usage,
        )
        if not body.get("stream"):
            return self.send(handler, 200, json.dumps(as_json(message)).encode())
        if self.silence is not None:
            self.silence.wait(20)
        handler.send_response(200)
        for name, value in {
            "content-type": "text/event-stream",
            "request-id": "r1",
            "connection": "close",
        }.items():
            handler.send_header(name, value)
        if self.cut:
            handler.send_header("content-length", "100000")
        handler.end_headers()
        for number, chunk in enumerate(as_events(message)):
            if number == 2 and self.gate is not None:
                self.gate.wait(20)
            if number == 2 and self.cut:
                break
            handler.wfile.write(chunk)
            handler.wfile.flush()
        handler.close_connection = True
        return None

    @staticmethod
    def send(handler, status: int, body: bytes, headers: dict | None = None) -> None:
        handler.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": len(body),
            **(headers or {}),
        }.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(body)


@pytest.fixture
def service():
    service = Service()
    yield service
    service.server.shutdown()
    service.server.server_close()


def live(service: Service, budget: float = 10.0, **more) -> Live:
    meter = more.pop("meter", None) or Meter(budget_usd=budget)
    place = ModelService(url=service.url, headers={"x-api-key": "the-real-key"})
    return Live(service=place, meter=meter, trust_environment=False, **more)


def ask(
    gateway: Gateway, *, role: str = "builder", stream: bool = True, turn: int = 0, **more
) -> httpx.Response:
    messages = [{"role": "user", "content": "hi"}]
    messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}] * turn
    body = {"model": MODEL, "max_tokens": 1000, "messages": messages, "stream": stream, **more}
    headers = {
        "authorization": "Bearer of-the-cli",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b1",
    }
    return post(gateway, json=body, headers=headers, role=role, path="/v1/messages?beta=true")


def post(
    gateway: Gateway,
    *,
    headers: dict | None = None,
    role: str = "builder",
    path: str = "/v1/messages",
    **given,
) -> httpx.Response:
    """A request of a session that lives as long as the answer takes."""
    with gateway.admitted(Asker(role=role)) as key:
        headers = {**(headers or {}), "x-api-key": key}
        return CLIENT.post(gateway.url + path, headers=headers, **given)


@pytest.mark.parametrize("stream", [True, False])
def test_requests_pass_through_with_the_key_and_nothing_of_ours(service, stream):
    answerer = live(service)
    with Gateway(answerer) as gateway:
        answer = ask(gateway, stream=stream)
        assert answer.status_code == 200
        assert "hello" in answer.text
        assert answer.headers.get("request-id") == ("r1" if stream else None)
    headers = service.asked[0]["headers"]
    assert headers["x-api-key"] == "the-real-key"
    assert headers["anthropic-beta"] == "b1"
    assert headers["host"] == service.url.removeprefix("http://")
    assert "authorization" not in headers
    assert not [name for name in headers if name.startswith("x-harness")]
    assert service.asked[0]["body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert service.asked[0]["path"] == "/v1/messages?beta=true"
    assert "the-real-key" not in answer.text
    spent = answerer.meter.roles["builder"]
    assert spent.usd == pytest.approx(COST)
    assert (spent.requests, spent.output_tokens, spent.cache_read_input_tokens) == (1, 200, 10_000)
    assert answerer.meter.reserved_usd == pytest.approx(0)


def test_an_answer_streams_while_the_service_still_speaks(service):
    service.gate = threading.Event()
    with Gateway(live(service)) as gateway:
        body = {"model": MODEL, "max_tokens": 10, "messages": [], "stream": True}
        with (
            gateway.admitted(Asker(role="builder")) as key,
            CLIENT.stream(
                "POST", gateway.url + "/v1/messages", json=body, headers={"x-api-key": key}
            ) as answer,
        ):
            chunks = answer.iter_bytes()
            assert b"message_start" in next(chunks)
            service.gate.set()
            assert b"message_stop" in b"".join(chunks)


def test_spending_is_kept_by_role(service):
    answerer = live(service)
    with Gateway(answerer) as gateway:
        for role in ("builder", "oracle", "oracle"):
            ask(gateway, role=role)
    assert {role: spent.requests for role, spent in answerer.meter.roles.items()} == {
        "builder": 1,
        "oracle": 2,
    }
    assert answerer.meter.spent_usd == pytest.approx(3 * COST)


@pytest.mark.parametrize(
    ("status", "told"), [(429, 429), (500, 500), (529, 503), (413, 413), (401, 410), (404, 410)]
)
def test_refusals_of_the_service_cost_nothing_and_what_lasts_is_not_retried(service, status, told):
    service.status = status
    answerer = live(service)
    with Gateway(answerer) as gateway:
        answer = ask(gateway)
        assert answer.status_code == told
        assert answer.headers.get("retry-after") == (None if told == 410 else "7")
        assert "overloaded_error" not in answer.text
        assert gateway.failure is None
    assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0


def test_the_worst_case_is_refused_before_it_is_sent(service):
    answerer = live(service, budget=0.004)
    with Gateway(answerer) as gateway:
        answer = ask(gateway)
        assert answer.status_code == 402
        assert (
            "The budget would be exceeded: $0.0000 of $0.0040" in answer.json()["error"]["message"]
        )
        assert "Raise budget.usd in the plan, approve it" in gateway.refused
        assert gateway.over_budget == gateway.refused
        assert gateway.failure is None
    assert service.asked == []


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("value", [b"caf\xe9", "\u2713".encode()])
def test_a_header_that_cannot_be_sent_ends_no_other_session(service, path, value):
    answerer = live(service)
    body = {"model": MODEL, "max_tokens": 10, "messages": []}
    with Gateway(answerer) as gateway:
        answer = post(gateway, path=path, json=body, headers={"x-app": value})
        assert answer.status_code == 410
        assert "cannot be sent" in answer.json()["error"]["message"]
        assert (service.asked, gateway.failure) == ([], None)
        assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0
        assert ask(gateway).status_code == 200


def test_a_key_that_cannot_be_sent_is_told_without_it(service):
    place = ModelService(url=service.url, headers={"x-api-key": "the-r\u00e9al-key"})
    answerer = Live(service=place, meter=Meter(budget_usd=1.0), trust_environment=False)
    with Gateway(answerer) as gateway:
        answer = ask(gateway)
        assert (answer.status_code, gateway.failure) == (410, None)
        assert "al-key" not in f"{answer.text} {gateway.refused}"
    assert answerer.meter.reserved_usd == 0


def test_what_earlier_sessions_spent_counts(service):
    answerer = live(service, meter=Meter(budget_usd=10, spent_before_usd=9.999))
    with Gateway(answerer) as gateway:
        assert ask(gateway).status_code == 402


def test_many_requests_at_once_never_pass_the_budget(service):
    service.gate = threading.Event()
    answerer = live(service, budget=0.06)  # the worst case of one is about a cent
    with Gateway(answerer) as gateway, ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(ask, gateway) for _ in range(20)]
        for _ in range(2000):
            done = sum(future.done() for future in waiting)
            if done + len(service.asked) == 20:
                break
            threading.Event().wait(0.01)
        worst = answerer.meter.reserved_usd
        service.gate.set()
        statuses = [future.result().status_code for future in waiting]
    assert worst <= 0.06
    assert statuses.count(200) == len(service.asked) == answerer.meter.roles["builder"].requests
    assert 1 < statuses.count(200) < 20
    assert set(statuses) == {200, 402}


class Seconds:
    """Moves by `step` whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize(("seconds", "tokens"), [(0.0, 1), (2.0, 600), (3600.0, 1000)])
def test_a_stream_that_breaks_off_costs_what_it_can_have_and_says_so(service, seconds, tokens):
    """Its first event told what was read; written are no more than bytes came, and than a model
    writes in that time."""
    service.cut = True
    answerer = live(service, now=Seconds(seconds))
    with Gateway(answerer) as gateway:
        answer = ask(gateway)
        assert "event: error" in answer.text
        assert "broke off" in answer.text
        assert gateway.failure is None
    read = COST - 200 * 5 / 1e6
    came = 1000  # more than the two events have bytes
    assert read + tokens * 5 / 1e6 <= answerer.meter.spent_usd
    assert answerer.meter.spent_usd <= read + min(1000, tokens + came) * 5 / 1e6
    assert answerer.meter.reserved_usd == pytest.approx(0)


def test_a_service_that_is_not_there_costs_nothing(service):
    answerer = Live(
        service=ModelService(url="http://127.0.0.1:9"),
        meter=Meter(budget_usd=1),
        trust_environment=False,
    )
    with Gateway(answerer) as gateway:
        answer = ask(gateway)
        assert answer.status_code == 502
        assert "cannot be reached" in answer.text
    assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0


def test_a_silent_service_is_given_up(service):
    service.gate = threading.Event()
    answerer = live(service, timeout_s=0.3)
    with Gateway(answerer) as gateway:
        assert "ReadTimeout" in ask(gateway).text
    service.gate.set()
    assert answerer.meter.spent_usd > 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "other-model"}, "price of the model 'other-model' is unknown"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "bill it apart"),
        ({"speed": "fast"}, "speed 'fast' has a price of its own"),
        ({"max_tokens": None}, "no max_tokens"),
    ],
)
def test_what_has_no_known_price_is_refused(service, more, words):
    with Gateway(live(service)) as gateway:
        answer = ask(gateway, **more)
        assert answer.status_code == 410
        assert words in answer.text
        assert gateway.over_budget is None
    assert service.asked == []


def blocks_of(kind: str, source: dict) -> list[dict]:
    return [{"role": "user", "content": [{"type": kind, "source": source}]}]


URL = {"type": "url", "url": "https://example.org/large"}
INSIDE = {"type": "content", "content": [{"type": "image", "source": URL}]}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"messages": blocks_of("image", URL)}, "source type 'url'"),
        ({"messages": blocks_of("document", URL)}, "source type 'url'"),
        ({"messages": blocks_of("document", INSIDE)}, "source type 'url'"),
        ({"messages": blocks_of("image", {"type": "file", "file_id": "f"})}, "source type 'file'"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}
                ]
            },
            "refers to a file",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "content": INSIDE["content"]}],
                    }
                ]
            },
            "source type 'url'",
        ),
        (
            {"mcp_servers": [{"type": "url", "url": "https://example.org", "name": "n"}]},
            "'mcp_servers'",
        ),
        ({"container": "c"}, "'container'"),
        ({"files": ["f"]}, "'files'"),
        ({"thread": "t"}, "'thread'"),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "compact_20260112"),
    ],
)
def test_what_may_bring_more_than_its_bytes_is_refused(service, more, words):
    with Gateway(live(service)) as gateway:
        answer = ask(gateway, **more)
        assert answer.status_code == 410
        assert words in answer.text
        assert gateway.over_budget is None
    assert service.asked == []


def test_pictures_and_pages_are_bounded_whatever_their_bytes(service):
    text = {"type": "text", "media_type": "text/plain", "data": "hi"}
    picture = {"type": "base64", "media_type": "image/png", "data": "aaaa"}
    pages = {"type": "base64", "media_type": "application/pdf", "data": "aaaa"}
    price = price_of(MODEL)
    worst = {}
    for name, kind, source in (
        ("text", "document", text),
        ("image", "image", picture),
        ("pdf", "document", pages),
    ):
        body = {"max_tokens": 1, "messages": blocks_of(kind, source)}
        worst[name] = worst_case(read_request(Asker(role="builder"), {}, body, 100), price)[0]
    assert worst["image"] == pytest.approx(worst["text"] + 5_000 * price.cache_write_1h / 1e6)
    assert worst["pdf"] == pytest.approx(worst["text"] + price.cache_write_1h)
    with Gateway(live(service)) as gateway:
        given = {"type": "image", "source": URL}  # what a tool was given is text
        use = {"type": "tool_use", "id": "t", "name": "Read", "input": given}
        assert ask(gateway, messages=[{"role": "assistant", "content": [use]}]).status_code == 200


def test_a_name_given_twice_is_not_sent(service):
    raw = f'{{"model": "{MODEL}", "max_tokens": 90000, "max_tokens": 1, "messages": []}}'
    with Gateway(live(service)) as gateway:
        assert post(gateway, content=raw).status_code == 400
    assert service.asked == []


def until(condition) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("what was waited for never came")


def test_a_client_that_leaves_before_the_first_chunk_costs_what_it_can_have(service):
    """The server is about to send the headers when it notices: the chunks are never begun."""
    answerer = live(service)
    body = json.dumps(
        {"model": MODEL, "max_tokens": 1000, "messages": [], "stream": True}
    ).encode()
    told = [{"type": "http.request", "body": body, "more_body": False}]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "POST",
        "path": "/v1/messages",
        "query_string": b"",
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict:
        return told.pop() if told else {"type": "http.disconnect"}

    async def send(_message: dict) -> None:
        await asyncio.Event().wait()

    async def serve() -> None:
        gateway = Gateway(answerer)
        with gateway.admitted(Asker(role="builder")) as key:
            headers = [(b"host", b"127.0.0.1:80"), (b"x-api-key", key.encode())]
            served = gateway._application()({**scope, "headers": headers}, receive, send)
            await asyncio.wait_for(served, 20)
        await answerer.close()

    asyncio.run(serve())
    assert len(service.asked) == 1
    assert answerer.meter.reserved_usd == 0
    assert answerer.meter.spent_usd > COST


def test_a_client_that_leaves_while_the_service_is_silent_is_settled(service):
    service.silence = threading.Event()
    answerer = live(service)
    with Gateway(answerer) as gateway:
        body = {"model": MODEL, "max_tokens": 1000, "messages": [], "stream": True}
        with pytest.raises(httpx.ReadTimeout):
            post(gateway, json=body, timeout=0.5)
        until(lambda: service.asked)
        assert answerer.meter.reserved_usd > 0
        service.silence.set()
        until(lambda: answerer.meter.reserved_usd == 0)
        assert answerer.meter.spent_usd > 0
        assert gateway.failure is None


class Bytes(httpx.AsyncByteStream):
    closed = False

    async def __aiter__(self):
        yield b"data: {}\n\n"

    async def aclose(self) -> None:
        self.closed = True


def test_a_stream_is_closed_when_its_observer_raises():
    told = []

    def learn(reader, size, broke) -> None:
        told.append((reader.message(), size, broke))
        raise GatewayError("no room", hint="Make some.")

    async def read() -> Bytes:
        source = Bytes()
        stream = _Stream(httpx.Response(200, stream=source), EventReader(), learn, 9.0)
        with pytest.raises(GatewayError, match="no room"):
            async for _ in stream.chunks():
                pass
        await stream.close()
        return source

    assert asyncio.run(read()).closed
    assert told == [(None, 10, "the stream ended before the answer did")]


class Said:
    """A service that sends `body`, whatever it is asked."""

    def __init__(self, service: Service, body: bytes, kind: str = "text/event-stream") -> None:
        self.body, self.kind = body, kind
        service.reply = self.reply

    def reply(self, handler, _body: dict) -> None:
        head = {"content-type": self.kind, "connection": "close"}
        Service.send(handler, 200, self.body, head)


WHOLE = b"".join(
    as_events(
        Message(
            id="m",
            model=MODEL,
            blocks=({"type": "text", "text": "hi"},),
            stop_reason="end_turn",
            usage=USAGE,
        )
    )
)
START = WHOLE[: WHOLE.index(b"event: content_block_start")]
OVERLOADED = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'
READ = COST - 200 * 5 / 1e6


@pytest.mark.parametrize(
    ("body", "least", "most", "words"),
    [
        (WHOLE, COST, COST, None),
        (START, READ, COST + 0.004, "ended before"),
        (START + OVERLOADED, READ, COST + 0.004, "status 529"),
        (OVERLOADED, 0, 0, "status 529"),
        (START + b"data: {no json\n\n", READ, COST + 0.004, "ended before"),
        (WHOLE + b"data: [1]\n\n", COST, COST, "cannot be read"),
        (WHOLE.replace(b'"delta": {', b'"delta": 3, "d": {'), READ, COST + 0.004, "ended before"),
        (b"", 0.001, 0.02, "ended before"),
    ],
)
def test_every_form_of_a_stream_is_paid_and_told(service, body, least, most, words):
    answerer = live(service, now=Seconds(0.0))
    Said(service, body)
    with Gateway(answerer) as gateway:
        assert ask(gateway).status_code == 200
        assert gateway.failure is None
        until(lambda: answerer.meter.reserved_usd == 0)
    assert least <= answerer.meter.spent_usd <= most + 1e-9
    trouble = answerer.weather.trouble("")
    assert (trouble is None) if words is None else words in trouble.words


CALL = {"type": "tool_use", "name": "Read", "input": {}}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>log in</html>",
        b"[]",
        b"{}",
        b'{"usage": {}, "content": 3}',
        json.dumps({"usage": {}, "content": [CALL]}).encode(),
    ],
)
def test_a_whole_answer_that_is_no_message_is_a_fault_of_the_service(service, body):
    answerer = live(service, now=Seconds(0.0))
    Said(service, body, "application/json")
    with Gateway(answerer) as gateway:
        assert ask(gateway, stream=False).status_code == 502
    assert "the answer is no message" in answerer.weather.trouble("").words
    assert 0 < answerer.meter.spent_usd < 0.02


def test_a_stream_that_hangs_is_given_up_after_its_idle_time(service):
    service.gate = threading.Event()
    answerer = live(service, idle_s=0.2)
    with Gateway(answerer) as gateway:
        assert "broke off: TimeoutError" in ask(gateway).text
        assert "TimeoutError" in answerer.weather.trouble("").words
    service.gate.set()


def test_a_stream_that_never_began_is_not_paid(service):
    service.silence = threading.Event()
    answerer = live(service, timeout_s=0.2)
    with Gateway(answerer) as gateway:
        assert ask(gateway).status_code == 504
    service.silence.set()
    assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0
    assert "did not answer: ReadTimeout" in answerer.weather.trouble("").words


def test_calls_that_nobody_can_read_are_refused_after_five_rounds(service):
    answerer = live(service)
    bad = {"type": "tool_result", "is_error": True, "content": "InputValidationError: x"}
    rounds = [{"role": "assistant", "content": []}, {"role": "user", "content": [bad]}]
    with Gateway(answerer) as gateway:
        assert ask(gateway, messages=rounds * 4).status_code == 200
        answer = ask(gateway, messages=rounds * 5)
        assert answer.status_code == 410
        assert "5 rounds of tool calls in a row could not be read" in answer.text
        assert answerer.weather.trouble("") is None  # of the service
        assert gateway.weather.trouble("").fault == "malformed"
        assert gateway.failure is None


def lines_of(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_request_is_written_down_before_it_is_sent_and_after(service, tmp_path):
    path = tmp_path / "state" / "spending.jsonl"
    service.gate = threading.Event()
    answerer = live(service, meter=Meter(budget_usd=1, log=SpendingLog(path, "p")))
    with Gateway(answerer) as gateway, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, gateway)
        until(lambda: service.asked)
        (before,) = lines_of(path)
        service.gate.set()
        asked.result()
        until(lambda: len(lines_of(path)) == 2)
    after = lines_of(path)[1]
    assert (before["plan"], before["role"]) == ("p", "builder")
    assert before["worst_usd"] > COST
    assert (after["id"], after["usage"]["output_tokens"]) == (before["id"], 200)
    assert after["usd"] == pytest.approx(COST)


def test_what_was_in_flight_at_a_kill_counts_as_its_worst_case(service, tmp_path):
    log = SpendingLog(tmp_path / "spending.jsonl", "p")
    log.reserve(session="s", role="builder", usd=0.98)  # and the process was killed
    with Gateway(live(service, meter=Meter(budget_usd=1, log=log))) as gateway:
        assert ask(gateway, max_tokens=10_000).status_code == 402
    with Gateway(
        live(service, meter=Meter(budget_usd=1, log=SpendingLog(tmp_path / "spending.jsonl", "q")))
    ) as gateway:
        assert ask(gateway, max_tokens=10_000).status_code == 200


def test_loops_of_two_trees_share_the_budget(service, tmp_path):
    """What the other spent meanwhile counts, also what it has in flight."""
    path = tmp_path / "spending.jsonl"
    other = SpendingLog(path, "p")
    with Gateway(live(service, meter=Meter(budget_usd=1, log=SpendingLog(path, "p")))) as gateway:
        assert ask(gateway).status_code == 200
        request = other.reserve(session="other", role="builder", usd=0.99)
        assert ask(gateway).status_code == 402
        other.settle(request, usd=0.1, usage={})
        assert ask(gateway).status_code == 200
        assert gateway.answerer.meter.spent_usd == pytest.approx(0.1 + 2 * COST)


def test_a_refusal_of_the_service_is_written_down_as_nothing(service, tmp_path):
    service.status = 529
    log = SpendingLog(tmp_path / "spending.jsonl", "p")
    with Gateway(live(service, meter=Meter(budget_usd=1, log=log))) as gateway:
        ask(gateway)
    assert log.spent().usd == 0
    assert len(lines_of(tmp_path / "spending.jsonl")) == 2


def full(_descriptor: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("problem", ["written to", "read from"])
def test_a_request_that_cannot_be_written_down_is_not_sent(
    service, tmp_path, monkeypatch, problem
):
    path = tmp_path / "spending.jsonl"
    if problem == "read from":
        path.mkdir()
    monkeypatch.setattr(os, "fsync", full)
    with Gateway(live(service, meter=Meter(budget_usd=1, log=SpendingLog(path, "p")))) as gateway:
        assert ask(gateway).status_code == 410
        assert f"cannot be {problem} {path}" in gateway.failure
    assert service.asked == []


def test_tokens_are_counted_by_the_service(service):
    with Gateway(live(service)) as gateway:
        counted = post(gateway, json={"messages": []}, path="/v1/messages/count_tokens")
        assert counted.json() == {"input_tokens": 42}
    assert service.asked[0]["headers"]["x-api-key"] == "the-real-key"


def test_prices_by_family_and_long_prompts():
    assert price_of("claude-opus-5-5") is FAMILIES["claude-opus-5-5"]
    assert price_of("claude-haiku-4-5-20251001") is FAMILIES["claude-haiku-4-5"]
    assert price_of("claude-opus-5-6") is None
    haiku = FAMILIES["claude-haiku-5-5"]
    assert haiku.cost({"input_tokens": 100_000}) == pytest.approx(0.01)
    assert haiku.cost({"input_tokens": 300_000, "output_tokens": 100_000}) == pytest.approx(0.4)
    hour = {
        "cache_creation_input_tokens": 1000,
        "cache_creation": {"ephemeral_1h_input_tokens": 400},
    }
    assert FAMILIES["claude-opus-5"].cost(hour) == pytest.approx((600 * 6.25 + 400 * 10) / 1e6)


@pytest.mark.parametrize("stream", [True, False])
def test_a_recording_can_be_replayed(service, tmp_path, stream):
    given = {
        "content": TRICKY,
        "n": 1e-05,
        "on": "on",
        "list": [[], {}, None, "null", "true", "07", "", "~", "- x"],
    }
    use = {"type": "tool_use", "id": "toolu_abc123", "name": "Write", "input": given}
    service.answers = [
        [{"type": "text", "text": "see toolu_abc123"}, use],
        [{"type": "text", "text": TRICKY}],
        [{"type": "text", "text": "1e-3"}],
    ]
    path = tmp_path / "recorded.yaml"
    with Gateway(live(service, observe=Recording(path))) as gateway:
        for place in ({}, {"turn": 1}, {"role": "oracle"}):
            assert ask(gateway, stream=stream, **place).status_code == 200
        assert gateway.failure is None
    assert "the-real-key" not in path.read_text()
    assert "toolu_" not in path.read_text()
    with Gateway(Scripted(read_scenario(path))) as gateway:
        first, second = (
            ask(gateway, stream=False).json(),
            ask(gateway, stream=False, turn=1).json(),
        )
        third = ask(gateway, role="oracle", stream=False).json()
    assert first["content"][0]["text"] == "see turn-1-1"
    assert first["content"][1]["input"] == use["input"]
    assert second["content"] == [{"type": "text", "text": TRICKY}]
    assert third["content"] == [{"type": "text", "text": "1e-3"}]


def test_a_subagent_cannot_be_recorded(service, tmp_path):
    with Gateway(live(service, observe=Recording(tmp_path / "r.yaml"))) as gateway:
        headers = {"x-claude-code-agent-id": "a"}
        body = {"model": MODEL, "max_tokens": 10, "messages": []}
        answer = post(gateway, json=body, headers=headers)
        assert answer.status_code == 410
        assert "cannot hold subagents" in gateway.failure
