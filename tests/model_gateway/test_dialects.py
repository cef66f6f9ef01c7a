"""Bedrock's and Vertex's paths and streams are metered as the Messages API is."""

import base64
import http.client
import http.server
import json
import struct
import threading
import zlib
from collections.abc import Iterator

import pytest

from harness.domain.prices import price_of
from harness.model_gateway.dialects import FRAMES, FrameReader
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.service import Dialect, Proof
from harness.model_gateway.service import Service as ModelService
from harness.model_gateway.wire import Asker, Message, as_events
from tests.model_gateway.test_live_gateway import CLIENT

USAGE = {"input_tokens": 1000, "output_tokens": 200}
MODEL = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
BEDROCK = "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream"
VERTEX = (
    "/v1/projects/p/locations/us-east5/publishers/anthropic/models"
    "/claude-haiku-4-5@20251001:streamRawPredict"
)
BODY = {"anthropic_version": "x", "max_tokens": 1000, "messages": []}
EVENTS = list(
    as_events(
        Message(
            id="m",
            model="m",
            blocks=({"type": "text", "text": "hello"},),
            stop_reason="end_turn",
            usage=USAGE,
        )
    )
)


def frame(event: bytes) -> bytes:
    data = event.partition(b"data: ")[2].strip()
    payload = json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abc"}).encode()
    headers = b"".join(
        struct.pack("B", len(name)) + name + b"\x07" + struct.pack(">H", len(value)) + value
        for name, value in (
            (b":event-type", b"chunk"),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    whole = 12 + len(headers) + len(payload) + 4
    lengths = struct.pack(">II", whole, len(headers))
    message = lengths + checksum(lengths) + headers + payload
    return message + checksum(message)


def checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


@pytest.fixture
def upstream() -> Iterator[http.server.ThreadingHTTPServer]:
    asked: list[tuple[str, dict[str, str], dict]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked.append((self.path, headers, body))
            frames = self.path.startswith("/model/")
            self.send_response(200)
            self.send_header("content-type", FRAMES if frames else "text/event-stream")
            self.end_headers()
            for one in EVENTS:
                self.wfile.write(frame(one) if frames else one)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = asked  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("dialect", "path"), [(Dialect.BEDROCK, BEDROCK), (Dialect.VERTEX, VERTEX)]
)
def test_a_request_passes_and_is_metered(upstream, dialect: Dialect, path: str) -> None:
    place = ModelService(
        url=f"http://127.0.0.1:{upstream.server_port}",
        dialect=dialect,
        headers={"authorization": "Bearer dummy"},
        proof=Proof.HEADER,
    )
    live = Live(service=place, meter=Meter(budget_usd=1.0), trust_environment=False)
    with Gateway(live, service=place) as gateway:
        with gateway.admitted(Asker(role="builder")) as secret:
            headers = {"x-harness-session": secret}
            answer = CLIENT.post(gateway.url + path, json=BODY, headers=headers)
            other = CLIENT.post(gateway.url + "/model/x/delete", json=BODY, headers=headers)
        stranger = CLIENT.post(gateway.url + path, json=BODY)
    assert answer.status_code == 200
    frames = dialect is Dialect.BEDROCK
    assert answer.content == b"".join(frame(one) if frames else one for one in EVENTS)
    assert (other.status_code, stranger.status_code) == (404, 401)
    ((got, sent, body),) = upstream.asked
    assert (got, body) == (path, BODY)
    assert sent["authorization"] == "Bearer dummy"
    assert "x-harness-session" not in sent
    spent = live.meter.roles["builder"]
    assert (spent.input_tokens, spent.output_tokens) == (1000, 200)
    price = price_of("claude-haiku-4-5")
    assert price is not None
    assert spent.usd == pytest.approx(price.cost(USAGE))


def test_these_paths_are_closed_where_the_service_is_another() -> None:
    place = ModelService(url="http://127.0.0.1:9")
    live = Live(service=place, meter=Meter(budget_usd=1.0), trust_environment=False)
    with Gateway(live, service=place) as gateway, gateway.admitted(Asker(role="b")) as secret:
        for path in (BEDROCK, VERTEX):
            answer = CLIENT.post(gateway.url + path, json=BODY, headers={"x-api-key": secret})
            assert answer.status_code == 404


COUNT = "/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict"
OPUS = "claude-opus-5-5:rawPredict"
PROFILE = (
    "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile"
    "%2Fus.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke"
)


@pytest.fixture
def cloud(upstream):
    """Sends a path, as it stands, through a gateway of a cloud: the answer's status and the
    meter."""

    def send(dialect: Dialect, target: str, **headers: str) -> tuple[int, Meter, Gateway]:
        place = ModelService(
            url=f"http://127.0.0.1:{upstream.server_port}",
            dialect=dialect,
            headers={"authorization": "Bearer dummy"},
            proof=Proof.HEADER,
        )
        meter = Meter(budget_usd=1.0)
        live = Live(service=place, meter=meter, trust_environment=False)
        asker = Asker(role="builder")
        with Gateway(live, service=place) as gateway, gateway.admitted(asker) as secret:
            wire = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
            wire.putrequest("POST", target)
            body = json.dumps(BODY).encode()
            more = {"content-length": str(len(body)), "x-harness-session": secret}
            for name, value in (headers | more).items():
                wire.putheader(name, value)
            wire.endheaders(body)
            status = wire.getresponse().status
            wire.close()
        return status, meter, gateway

    return send


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (Dialect.VERTEX, COUNT.replace("rawPredict", f"x/../{OPUS}")),
        (Dialect.VERTEX, COUNT.replace("rawPredict", f"x/%2e%2E/{OPUS}")),
        (Dialect.VERTEX, COUNT.replace("rawPredict", f"x%2f..%2f{OPUS}")),
        (Dialect.VERTEX, COUNT.replace("rawPredict", f"x%5c..%5c{OPUS}")),
        (Dialect.VERTEX, COUNT.replace("locations/l", "locations/..")),
        (Dialect.VERTEX, f"/v1/{COUNT}"),
        (Dialect.BEDROCK, "/model/..%2F..%2Fmodel%2Fx%2Finvoke%23/count-tokens"),
        (Dialect.BEDROCK, "/model/x%2Finvoke%3F/count-tokens"),
        (Dialect.BEDROCK, "/model/%252e%252e/count-tokens"),
        (Dialect.BEDROCK, "/model/../count-tokens"),
        (Dialect.BEDROCK, BEDROCK.replace("%3A0", "%3A0%2F..%2Fus.anthropic.claude-opus-5-5")),
    ],
)
def test_a_path_that_another_may_read_differently_is_not_sent(
    cloud, upstream, dialect: Dialect, path: str
) -> None:
    status, meter, gateway = cloud(dialect, path)
    assert status == 400
    assert (upstream.asked, meter.roles, gateway.failure) == ([], {}, None)


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (Dialect.VERTEX, COUNT.replace("rawPredict", "x")),
        (Dialect.VERTEX, f"{COUNT}/x"),
        (Dialect.BEDROCK, COUNT),
        (Dialect.VERTEX, "/model/us.anthropic.claude-opus-5-5/count-tokens"),
    ],
)
def test_each_cloud_counts_tokens_at_one_path_only(
    cloud, upstream, dialect: Dialect, path: str
) -> None:
    assert cloud(dialect, path)[0] == 404
    assert upstream.asked == []


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (Dialect.VERTEX, COUNT),
        (Dialect.VERTEX, f"/v1{COUNT}"),
        (Dialect.BEDROCK, "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/count-tokens"),
    ],
)
def test_a_count_of_tokens_is_sent_as_it_came_and_costs_nothing(
    cloud, upstream, dialect: Dialect, path: str
) -> None:
    status, meter, _ = cloud(dialect, path)
    assert (status, [path for path, _, _ in upstream.asked]) == (200, [path])
    assert meter.spent_usd == meter.reserved_usd == 0


def test_a_model_named_by_its_arn_is_sent_as_it_came_and_metered(cloud, upstream) -> None:
    status, meter, _ = cloud(Dialect.BEDROCK, PROFILE)
    assert (status, upstream.asked[0][0]) == (200, PROFILE)
    assert meter.spent_usd > 0


@pytest.mark.parametrize(
    ("dialect", "path"), [(Dialect.BEDROCK, PROFILE), (Dialect.VERTEX, VERTEX)]
)
def test_only_headers_that_change_no_price_reach_a_cloud(
    cloud, upstream, dialect: Dialect, path: str
) -> None:
    kept = {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "claude-cli",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b1",
        "x-app": "cli",
        "x-stainless-timeout": "600",
        "x-claude-code-session-id": "abc",
    }
    dropped = {
        "X-Amzn-Bedrock-Service-Tier": "priority",
        "X-Amzn-Bedrock-PerformanceConfig-Latency": "optimized",
        "X-Vertex-AI-LLM-Shared-Request-Type": "priority",
        "X-Vertex-AI-LLM-Request-Type": "dedicated",
        "x-goog-user-project": "another",
        "X-HTTP-Method-Override": "GET",
        "authorization": "Bearer of-the-session",
    }
    assert cloud(dialect, f"{path}?userProject=another", **kept, **dropped)[0] == 200
    ((got, sent, _),) = upstream.asked
    ours = {
        "authorization": "Bearer dummy",
        "accept-encoding": "identity",
        "content-length": str(len(json.dumps(BODY))),
    }
    gone = ("host", "connection")
    assert got == path
    assert {name: sent[name] for name in sent if name not in gone} == kept | ours


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_cut_anywhere_are_put_together(size: int) -> None:
    data = b"".join(map(frame, EVENTS))
    reader = FrameReader()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    message = reader.message()
    assert message is not None
    assert message["usage"]["input_tokens"] == 1000
    assert message["usage"]["output_tokens"] == 200
    assert message["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize("data", [b"\xff" * 40, b"\0" * 40, struct.pack(">III", 16, 0, 0) + b"ab"])
def test_what_is_no_frame_is_no_answer(data: bytes) -> None:
    reader = FrameReader()
    reader.feed(data)
    assert reader.message() is None
