"""The scripted gateway over HTTP: both answer forms, references, expectations, loud ends, many
sessions at once."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from harness.errors import GatewayError
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.wire import Asker, EventReader
from tests.model_gateway.kept import Kept, parse_scenario

SCENARIO = """
sessions:
  - role: builder
    turns:
      - text: First.
        tools:
          - {id: open, name: mcp__harness__open_experiment, input: {hypothesis: h}}
          - {id: other, name: Bash, input: {command: ls}}
      - expect: [exp-0001, listed]
        tools:
          - name: Write
            input:
              path: "e/${open.experiment}/x"
              n: "${open.number}"
              deep: [{a: "${open.runs.1}"}]
              sh: "$${a.b} ${HOME}"
      - {text: "Done with ${open.experiment}.", expect: written}
  - {role: builder, attempt: 2, turns: [{text: "${open.experiment}"}]}
  - {role: strict, turns: [{text: never, expect: [please, magic]}]}
  - {role: wrong, turns: [{text: a, tools: [{id: t, name: B}]}, {text: "${t.absent}"}]}
"""
USER = {"role": "user", "content": "please begin"}
CLIENT = httpx.Client(trust_env=False, timeout=30)


@pytest.fixture
def gateway():
    with Gateway(Kept(Scripted(parse_scenario(SCENARIO, where="s.yaml")))) as gateway:
        yield gateway


@pytest.fixture(scope="module", autouse=True)
def _closing():
    yield
    CLIENT.close()


def ask(gateway, messages, *, role="builder", attempt="1", stream=False, **more) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"model": "m", "max_tokens": 10, "messages": messages, "stream": stream, **more}
    with gateway.admitted(Asker(role=role, attempt=attempt)) as key:
        headers = {"x-api-key": key, **headers}
        return CLIENT.post(gateway.url + "/v1/messages", json=body, headers=headers)


def results(answer: dict, *texts) -> list[dict]:
    """The messages that follow `answer`: itself, and a result for each of its tools."""
    uses = [block for block in answer["content"] if block["type"] == "tool_use"]
    content = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": text}
        for use, text in zip(uses, texts, strict=True)
    ]
    return [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": content},
    ]


OPENED = [
    {
        "type": "text",
        "text": json.dumps({"experiment": "exp-0001", "number": 1, "runs": ["a", "b"]}),
    }
]


def test_a_session_with_references(gateway):
    messages = [USER]
    first = ask(gateway, messages).json()
    assert (first["role"], first["model"], first["stop_reason"]) == ("assistant", "m", "tool_use")
    assert first["content"][0] == {"type": "text", "text": "First."}
    messages += results(first, OPENED, "listed")
    messages.append({"role": "system", "content": "a note of the CLI"})
    second = ask(gateway, messages).json()
    assert second["content"][0]["input"] == {
        "path": "e/exp-0001/x",
        "n": 1,
        "deep": [{"a": "b"}],
        "sh": "${a.b} ${HOME}",
    }
    messages += results(second, "written")
    third = ask(gateway, messages).json()
    assert third["content"] == [{"type": "text", "text": "Done with exp-0001."}]
    assert third["stop_reason"] == "end_turn"
    assert [request.turn for request in gateway.answerer.requests] == [0, 1, 2]
    assert gateway.failure is None


def test_the_same_request_has_the_same_answer_in_both_forms(gateway):
    first, again = ask(gateway, [USER]).json(), ask(gateway, [USER]).json()
    assert first == again
    streamed = ask(gateway, [USER], stream=True)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    kinds = [line[7:] for line in streamed.text.splitlines() if line.startswith("event: ")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", *block * 3, "message_delta", "message_stop"]
    reader = EventReader()
    for byte in streamed.content:
        reader.feed(bytes([byte]))
    message = reader.message()
    assert message["content"] == first["content"]
    assert message["stop_reason"] == "tool_use"


def test_tool_ids_differ_between_turns_and_attempts(gateway):
    first = ask(gateway, [USER]).json()
    ids = {block["id"] for block in first["content"][1:]}
    second = ask(gateway, [USER, *results(first, OPENED, "listed")]).json()
    ids |= {second["content"][0]["id"]}
    assert len(ids) == 3
    assert all(name.startswith("toolu_") for name in ids)


@pytest.mark.parametrize(
    ("role", "attempt", "words"),
    [
        ("nobody", "1", "no session for role nobody, experiment 1, attempt 1; it has builder/1/1"),
        ("builder", "9", "no session for role builder, experiment 1, attempt 9"),
        ("strict", "1", "expected 'magic' in the request, found 'please begin'"),
        (
            "builder",
            "2",
            "${open.experiment} refers to a missing tool result; known: none",
        ),
    ],
)
def test_what_is_not_foreseen_ends_the_gateway_loudly(gateway, role, attempt, words):
    answer = ask(gateway, [USER], role=role, attempt=attempt)
    assert answer.status_code == 410
    assert answer.json()["error"]["type"] == "api_error"
    assert words in answer.json()["error"]["message"]
    assert words in gateway.failure
    later = ask(gateway, [USER])
    assert (later.status_code, words in later.text) == (410, True)


def test_a_turn_too_many_ends_the_gateway(gateway):
    messages = [USER] + [{"role": "assistant", "content": "x"}, USER] * 3
    assert ask(gateway, messages).status_code == 410
    assert "3 turns, but turn 4 was requested with 'please begin'" in gateway.failure


@pytest.mark.parametrize("text", ["no json", '{"present": 1}', "[1, 2]"])
def test_a_field_that_is_not_in_the_result_ends_the_gateway(gateway, text):
    first = ask(gateway, [USER], role="wrong").json()
    assert ask(gateway, [USER, *results(first, text)], role="wrong").status_code == 410
    assert f"the result of t is {text!r}, without absent" in gateway.failure


def test_a_subagent_ends_the_gateway(gateway):
    assert ask(gateway, [USER], headers={"x-claude-code-agent-id": "a1"}).status_code == 410
    assert "a subagent sent a request" in gateway.failure


def test_json_on_a_line_of_its_own_is_found(gateway):
    first = ask(gateway, [USER]).json()
    text = "opened:\n" + OPENED[0]["text"] + "\nwell"
    assert (
        ask(gateway, [USER, *results(first, text, "listed")]).json()["content"][0]["input"]["n"]
        == 1
    )


def test_other_paths(gateway):
    with gateway.admitted(Asker(role="builder")) as key:
        client = httpx.Client(base_url=gateway.url, headers={"x-api-key": key}, trust_env=False)
        with client:
            counted = client.post("/v1/messages/count_tokens", json={"messages": [USER]})
            assert counted.json()["input_tokens"] > 0
            for method, path in (
                ("HEAD", "/"),
                ("GET", "/"),
                ("GET", "/v1/messages"),
                ("POST", "/api/event"),
            ):
                assert client.request(method, path).status_code == 404
            assert client.post("/v1/messages", content=b"{").status_code == 400
    assert gateway.failure is None
    assert gateway.answerer.requests == []


def test_keys_are_not_kept(gateway):
    with gateway.admitted(Asker(role="builder")) as key:
        headers = {"x-api-key": key, "authorization": "Bearer secret"}
        body = {"model": "m", "max_tokens": 10, "messages": [USER]}
        CLIENT.post(gateway.url + "/v1/messages", json=body, headers=headers)
    for secret in ("secret", key):
        assert secret not in repr(gateway.answerer.requests[0])
    assert gateway.answerer.requests[0].bytes > 50


def test_many_sessions_at_once(gateway):
    def session(_: int) -> str:
        first = ask(gateway, [USER], stream=False).json()
        messages = [USER, *results(first, OPENED, "listed")]
        second = ask(gateway, messages).json()
        return ask(gateway, [*messages, *results(second, "written")]).json()["content"][0]["text"]

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(session, range(48))) == {"Done with exp-0001."}
    assert len(gateway.answerer.requests) == 144


def test_a_gateway_opens_and_closes():
    gateway = Gateway(Scripted(parse_scenario(SCENARIO, where="s.yaml")))
    with pytest.raises(GatewayError, match="closed"):
        _ = gateway.port
    url = gateway.start()
    assert gateway.start() == url
    gateway.stop()
    gateway.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


def test_a_fault_in_an_answerer_ends_the_gateway():
    class Faulty(Scripted):
        async def answer(self, request, raw):
            raise ZeroDivisionError("oops")

    with Gateway(Faulty(parse_scenario(SCENARIO, where="s.yaml"))) as gateway:
        assert ask(gateway, [USER]).status_code == 410
        assert "ZeroDivisionError: oops" in gateway.failure
