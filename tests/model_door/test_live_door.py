"""Live and recording against a fake service on loopback: the key, the stream, the meter, the budget, the replay."""

import http.server
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from harness.errors import DoorError
from harness.model_door.door import Door
from harness.model_door.live import Live
from harness.model_door.meter import Meter
from harness.model_door.prices import FAMILIES, Price, price_of
from harness.model_door.recording import Recording
from harness.model_door.scenario import read_scenario
from harness.model_door.scripted import Scripted
from harness.model_door.wire import Message, as_events, as_json

MODEL = "claude-haiku-4-5-20251001"  # 1 and 5 dollars a million tokens
USAGE = {
    "input_tokens": 1000,
    "output_tokens": 200,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 10_000,
}
COST = (1000 * 1 + 200 * 5 + 10_000 * 0.1) / 1e6
TRICKY = "line one\n  two: 1e-3\n\ttab ${a.b} 'x' \"y\"\n"
CLIENT = httpx.Client(trust_env=False, timeout=30)


class Service:
    """A Messages service that says what it is told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.status = 200
        self.cut = False
        self.gate: threading.Event | None = None
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
        message = Message(id="msg_1", model=body["model"], blocks=tuple(blocks), stop_reason=stop, usage=USAGE)
        if not body.get("stream"):
            return self.send(handler, 200, json.dumps(as_json(message)).encode())
        handler.send_response(200)
        for name, value in {"content-type": "text/event-stream", "request-id": "r1", "connection": "close"}.items():
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
        for name, value in {"content-type": "application/json", "content-length": len(body), **(headers or {})}.items():
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
    return Live(upstream=service.url, key="the-real-key", meter=meter, trust_environment=False, **more)


def ask(door: Door, *, role: str = "builder", stream: bool = True, turn: int = 0, **more) -> httpx.Response:
    messages = [{"role": "user", "content": "hi"}]
    messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}] * turn
    body = {"model": MODEL, "max_tokens": 1000, "messages": messages, "stream": stream, **more}
    headers = {
        "x-harness-role": role,
        "x-harness-experiment": "1",
        "x-harness-attempt": "1",
        "x-api-key": "dummy",
        "authorization": "Bearer dummy",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b1",
    }
    return CLIENT.post(door.url + "/v1/messages?beta=true", json=body, headers=headers)


@pytest.mark.parametrize("stream", [True, False])
def test_requests_pass_through_with_the_key_and_nothing_of_ours(service, stream):
    answerer = live(service)
    with Door(answerer) as door:
        answer = ask(door, stream=stream)
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
    assert "the-real-key" not in repr(door.requests) + answer.text
    spent = answerer.meter.roles["builder"]
    assert spent.usd == pytest.approx(COST)
    assert (spent.requests, spent.output_tokens, spent.cache_read_input_tokens) == (1, 200, 10_000)
    assert answerer.meter.reserved_usd == pytest.approx(0)


def test_an_answer_streams_while_the_service_still_speaks(service):
    service.gate = threading.Event()
    with Door(live(service)) as door:
        body = {"model": MODEL, "max_tokens": 10, "messages": [], "stream": True}
        with httpx.stream("POST", door.url + "/v1/messages", json=body, trust_env=False, timeout=30) as answer:
            chunks = answer.iter_bytes()
            assert b"message_start" in next(chunks)
            service.gate.set()
            assert b"message_stop" in b"".join(chunks)


def test_spending_is_kept_by_role(service):
    answerer = live(service)
    with Door(answerer) as door:
        for role in ("builder", "oracle", "oracle"):
            ask(door, role=role)
    assert {role: spent.requests for role, spent in answerer.meter.roles.items()} == {"builder": 1, "oracle": 2}
    assert answerer.meter.spent_usd == pytest.approx(3 * COST)


@pytest.mark.parametrize("status", [429, 500, 529, 401])
def test_refusals_of_the_service_pass_through_and_cost_nothing(service, status):
    service.status = status
    answerer = live(service)
    with Door(answerer) as door:
        answer = ask(door)
        assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")
        assert door.failure is None
    assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0


def test_the_worst_case_is_refused_before_it_is_sent(service):
    answerer = live(service, budget=0.004)
    with Door(answerer) as door:
        answer = ask(door)
        assert answer.status_code == 403
        assert "The budget would be passed: $0.0000 of $0.0040" in answer.json()["error"]["message"]
        assert "CLAUDE_CODE_MAX_OUTPUT_TOKENS" in door.refused
        assert door.failure is None
    assert service.asked == []


def test_what_earlier_sessions_spent_counts(service):
    answerer = live(service, meter=Meter(budget_usd=10, spent_before_usd=9.999))
    with Door(answerer) as door:
        assert ask(door).status_code == 403


def test_many_requests_at_once_never_pass_the_budget(service):
    service.gate = threading.Event()
    answerer = live(service, budget=0.06)  # the worst case of one is about a cent
    with Door(answerer) as door, ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(ask, door) for _ in range(20)]
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
    assert set(statuses) == {200, 403}


def test_a_stream_that_breaks_off_costs_the_worst_case_and_says_so(service):
    service.cut = True
    answerer = live(service)
    with Door(answerer) as door:
        answer = ask(door)
        assert "event: error" in answer.text
        assert "broke off" in answer.text
        assert door.failure is None
    assert answerer.meter.spent_usd > COST
    assert answerer.meter.reserved_usd == pytest.approx(0)


def test_a_service_that_is_not_there_costs_nothing(service):
    answerer = Live(upstream="http://127.0.0.1:9", key="k", meter=Meter(budget_usd=1), trust_environment=False)
    with Door(answerer) as door:
        answer = ask(door)
        assert answer.status_code == 502
        assert "cannot be reached" in answer.text
    assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0


def test_a_silent_service_is_given_up(service):
    service.gate = threading.Event()
    answerer = live(service, timeout_s=0.3)
    with Door(answerer) as door:
        assert "ReadTimeout" in ask(door).text
    service.gate.set()
    assert answerer.meter.spent_usd > 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "other-model"}, "price of the model 'other-model' is not known"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "billed apart"),
        ({"speed": "fast"}, "speed 'fast' has a price of its own"),
        ({"max_tokens": None}, "no max_tokens"),
    ],
)
def test_what_has_no_known_price_is_refused(service, more, words):
    with Door(live(service)) as door:
        answer = ask(door, **more)
        assert answer.status_code == 403
        assert words in answer.text
    assert service.asked == []


def test_a_price_can_be_given(service):
    price = Price(input=1, output=1, cache_write=1, cache_write_1h=1, cache_read=1)
    answerer = live(service, meter=Meter(budget_usd=1, prices={"other-model": price}))
    with Door(answerer) as door:
        assert ask(door, model="other-model").status_code == 200
    assert answerer.meter.spent_usd == pytest.approx(11_200 / 1e6)


def test_tokens_are_counted_by_the_service(service):
    with Door(live(service)) as door:
        counted = httpx.post(door.url + "/v1/messages/count_tokens", json={"messages": []}, trust_env=False)
        assert counted.json() == {"input_tokens": 42}
    assert service.asked[0]["headers"]["x-api-key"] == "the-real-key"


def test_a_key_is_needed(service):
    with pytest.raises(DoorError, match="no key"):
        Live(upstream=service.url, key="", meter=Meter(budget_usd=1))


def test_prices_by_family_and_long_prompts():
    assert price_of("claude-opus-5-5", {}) is FAMILIES["claude-opus-5-5"]
    assert price_of("claude-haiku-4-5-20251001", {}) is FAMILIES["claude-haiku-4-5"]
    assert price_of("claude-opus-5-6", {}) is None
    haiku = FAMILIES["claude-haiku-5-5"]
    assert haiku.cost({"input_tokens": 100_000}) == pytest.approx(0.01)
    assert haiku.cost({"input_tokens": 300_000, "output_tokens": 100_000}) == pytest.approx(0.4)
    hour = {"cache_creation_input_tokens": 1000, "cache_creation": {"ephemeral_1h_input_tokens": 400}}
    assert FAMILIES["claude-opus-5"].cost(hour) == pytest.approx((600 * 6.25 + 400 * 10) / 1e6)


@pytest.mark.parametrize("stream", [True, False])
def test_a_recording_can_be_replayed(service, tmp_path, stream):
    given = {"content": TRICKY, "n": 1e-05, "on": "on", "list": [[], {}, None, "null", "true", "07", "", "~", "- x"]}
    use = {"type": "tool_use", "id": "toolu_abc123", "name": "Write", "input": given}
    service.answers = [
        [{"type": "text", "text": "see toolu_abc123"}, use],
        [{"type": "text", "text": TRICKY}],
        [{"type": "text", "text": "1e-3"}],
    ]
    path = tmp_path / "recorded.yaml"
    with Door(live(service, observe=Recording(path))) as door:
        for place in ({}, {"turn": 1}, {"role": "oracle"}):
            assert ask(door, stream=stream, **place).status_code == 200
        assert door.failure is None
    assert "the-real-key" not in path.read_text()
    assert "toolu_" not in path.read_text()
    with Door(Scripted(read_scenario(path))) as door:
        first, second = ask(door, stream=False).json(), ask(door, stream=False, turn=1).json()
        third = ask(door, role="oracle", stream=False).json()
    assert first["content"][0]["text"] == "see turn-1-1"
    assert first["content"][1]["input"] == use["input"]
    assert second["content"] == [{"type": "text", "text": TRICKY}]
    assert third["content"] == [{"type": "text", "text": "1e-3"}]


def test_a_subagent_cannot_be_recorded(service, tmp_path):
    with Door(live(service, observe=Recording(tmp_path / "r.yaml"))) as door:
        headers = {"x-claude-code-agent-id": "a"}
        body = {"model": MODEL, "max_tokens": 10, "messages": []}
        answer = httpx.post(door.url + "/v1/messages", json=body, headers=headers, trust_env=False)
        assert answer.status_code == 400
        assert "no place for one" in door.failure
