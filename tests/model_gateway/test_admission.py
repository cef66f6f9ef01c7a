"""Who may ask the gateway: living sessions by their secrets, from this machine's own address, and
nothing of what they sent is kept."""

import gc
import http.client
import json
import socket
import tracemalloc
from collections.abc import Iterator

import pytest

from harness.model_gateway.gateway import MOST_BYTES, Gateway
from harness.model_gateway.meter import Meter
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.wire import Asker
from tests.model_gateway.kept import Kept, parse_scenario
from tests.model_gateway.test_live_gateway import MODEL, Service, live

SCENARIO = "sessions: [{role: builder, turns: [{text: one}, {text: two}]}]"
BODY = {"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
BUILDER = Asker(role="builder", session="s1")


@pytest.fixture
def kept() -> Kept:
    return Kept(Scripted(parse_scenario(SCENARIO, where="s.yaml")))


@pytest.fixture
def gateway(kept: Kept) -> Iterator[Gateway]:
    with Gateway(kept) as gateway:
        yield gateway


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.server.shutdown()
    service.server.server_close()


def send(
    gateway: Gateway, headers: list[tuple[str, str]], body: bytes | None = None
) -> tuple[int, dict]:
    """POST exactly these headers, also twice the same one; status and answer."""
    sent = json.dumps(BODY).encode() if body is None else body
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    try:
        connection.putrequest("POST", "/v1/messages", skip_host=True, skip_accept_encoding=True)
        for name, value in [*headers, ("content-length", str(len(sent)))]:
            connection.putheader(name, value)
        connection.endheaders(sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def host(gateway: Gateway) -> tuple[str, str]:
    return "Host", f"127.0.0.1:{gateway.port}"


def test_two_gateways_and_two_sessions_have_secrets_of_their_own(gateway, kept):
    with (
        gateway.admitted(BUILDER) as one,
        gateway.admitted(BUILDER) as two,
        Gateway(kept) as other,
        other.admitted(BUILDER) as third,
    ):
        assert len({one, two, third}) == 3
        assert min(map(len, (one, two, third))) >= 43  # 32 random bytes
        assert send(gateway, [host(gateway), ("x-api-key", one)])[0] == 200
        assert send(gateway, [host(gateway), ("x-api-key", third)])[0] == 401
        assert one not in repr(vars(gateway._admission))


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [("x-api-key", "")],
        [("x-api-key", "harness-gateway-takes-no-key")],
        [("authorization", "Bearer KEY")],
        [("x-api-key", "KEYx")],
        [("x-api-key", "KEY"), ("x-api-key", "KEY")],
        [("x-api-key", "of-an-ended-session")],
    ],
)
def test_a_request_of_no_living_session_is_refused_and_changes_nothing(gateway, kept, keys):
    with gateway.admitted(BUILDER) as ended:
        pass
    with gateway.admitted(BUILDER) as key:
        sent = [
            (name, value.replace("KEY", key).replace("of-an-ended-session", ended))
            for name, value in keys
        ]
        # A stray request, also one that the scenario does not foresee or that cannot be read.
        for body in (None, b'{"messages": []}', b"{"):
            status, answer = send(gateway, [host(gateway), *sent], body)
            assert status == 401
            assert answer["type"] == "error"
            assert answer["error"]["type"] == "authentication_error"
            assert key not in json.dumps(answer)
        assert (kept.requests, gateway.failure, gateway.refused) == ([], None, None)
        # The scenario stands where it stood.
        status, answer = send(gateway, [host(gateway), ("x-api-key", key)])
        assert (status, answer["content"][0]["text"]) == (200, "one")


def test_what_is_refused_is_neither_sent_on_nor_paid(service):
    answerer = live(service)
    with Gateway(answerer) as gateway:
        with gateway.admitted(BUILDER) as key:
            pass
        assert send(gateway, [host(gateway), ("x-api-key", key)])[0] == 401
        assert send(gateway, [("Host", "evil.example"), ("x-api-key", key)])[0] == 403
        assert service.asked == []
        assert answerer.meter.roles == {}
        assert answerer.meter.spent_usd == answerer.meter.reserved_usd == 0
        with gateway.admitted(BUILDER) as key:
            assert send(gateway, [host(gateway), ("x-api-key", key)])[0] == 200
    (asked,) = service.asked
    assert asked["headers"]["x-api-key"] == "the-real-key"
    assert key not in json.dumps(asked)
    assert list(answerer.meter.roles) == ["builder"]


def test_whose_request_it_is_is_known_by_its_secret_alone(gateway, kept):
    """What a session says of itself, in headers, changes nothing."""
    told = [("x-harness-role", "oracle"), ("x-harness-session", "of another")]
    with gateway.admitted(BUILDER) as key:
        assert send(gateway, [host(gateway), ("x-api-key", key), *told])[0] == 200
    assert [request.asker for request in kept.requests] == [BUILDER]


@pytest.mark.parametrize(
    ("hosts", "origins", "status"),
    [
        (["127.0.0.1:PORT"], [], 200),
        (["localhost:PORT"], [], 200),
        (["LOCALHOST:PORT"], ["http://localhost:PORT"], 200),
        (["127.0.0.1:PORT"], ["http://127.0.0.1:PORT"], 200),
        ([], [], 403),
        (["rebound.example:PORT"], [], 403),
        (["127.0.0.1"], [], 403),
        (["127.0.0.1:1"], [], 403),
        (["127.0.0.1:PORT.example"], [], 403),
        (["127.0.0.1:PORT"], ["http://rebound.example"], 403),
        (["127.0.0.1:PORT"], ["null"], 403),
        (["127.0.0.1:PORT"], ["https://127.0.0.1:PORT"], 403),
        (["127.0.0.1:PORT"], ["http://127.0.0.1:PORT", "http://rebound.example"], 403),
    ],
)
def test_host_and_origin_name_the_gateway_itself(gateway, kept, hosts, origins, status):
    port = str(gateway.port)
    named = [("Host", value.replace("PORT", port)) for value in hosts]
    named += [("Origin", value.replace("PORT", port)) for value in origins]
    with gateway.admitted(BUILDER) as key:
        got, answer = raw(gateway, named, key)
    assert got == status or (not hosts and got == 400)  # HTTP/1.1 itself demands a Host
    if status == 403 and got == 403:
        assert answer["error"]["type"] == "permission_error"
    assert len(kept.requests) == (status == 200)


def raw(gateway: Gateway, headers: list[tuple[str, str]], key: str) -> tuple[int, dict]:
    body = json.dumps(BODY).encode()
    lines = [f"{name}: {value}" for name, value in [*headers, ("x-api-key", key)]]
    head = "\r\n".join(["POST /v1/messages HTTP/1.1", *lines, f"content-length: {len(body)}"])
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall(f"{head}\r\nconnection: close\r\n\r\n".encode() + body)
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    status, _, content = said.partition(b"\r\n\r\n")
    try:
        return int(status.split()[1]), json.loads(content)
    except ValueError:
        return int(status.split()[1]), {}


def test_a_host_twice_is_no_host(gateway, kept):
    with gateway.admitted(BUILDER) as key:
        both = [host(gateway), ("Host", "rebound.example")]
        assert raw(gateway, both, key)[0] in (400, 403)
    assert kept.requests == []


def test_a_request_larger_than_the_service_takes_is_refused(gateway, kept):
    with gateway.admitted(BUILDER) as key:
        status, answer = send(
            gateway, [host(gateway), ("x-api-key", key)], b" " * (MOST_BYTES + 1)
        )
    assert (status, answer["error"]["type"]) == (413, "request_too_large")
    assert (kept.requests, gateway.failure) == ([], None)


@pytest.mark.parametrize("kind", ["scripted", "live", "over budget", "refused"])
def test_nothing_of_a_request_is_kept_once_it_is_answered(service, kind):
    """30 requests of half a megabyte, counted in bytes that are still held afterwards."""
    if kind == "scripted":
        answerer = Scripted(parse_scenario(SCENARIO, where="s.yaml"))
    else:
        answerer = live(service, meter=Meter(budget_usd=100 if kind == "live" else 1e-6))
    large = json.dumps({**BODY, "system": "x" * (1 << 19)}).encode()
    with Gateway(answerer) as gateway, gateway.admitted(BUILDER) as key:
        headers = [host(gateway), ("x-api-key", "no" if kind == "refused" else key)]
        expected = {"scripted": 200, "live": 200, "over budget": 402, "refused": 401}[kind]

        def ask(times: int) -> None:
            for _ in range(times):
                assert send(gateway, headers, large)[0] == expected
                service.asked.clear()  # the fake service keeps them

        ask(3)
        tracemalloc.start()
        try:
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            ask(30)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 2 * len(large)
