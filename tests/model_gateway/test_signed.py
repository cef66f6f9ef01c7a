"""AWS access keys: the gateway signs what it sends, and the service finds the signature right."""

import http.server
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from harness.clock import ManualClock
from harness.driver.access import service_of
from harness.driver.outage import Outage
from harness.driver.role_sessions import named
from harness.driver.session import SessionEnding, SessionOutcome
from harness.errors import MissingExtraError, RefusedError
from harness.loop.steps import JudgeResult, StopLoop
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.service import Service
from harness.model_gateway.weather import Fault
from harness.model_gateway.wire import Asker
from tests.model_gateway.test_live_gateway import CLIENT

KEY, SECRET, TOKEN = "AKIADUMMYDUMMYDUMMY0", "dummy/secret+of+a+test", "dummy-session-token"
PATH = "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke"
BODY = {"anthropic_version": "x", "max_tokens": 1000, "messages": []}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


class Bedrock(http.server.BaseHTTPRequestHandler):
    """Signs what came by the same rules and answers when both signatures agree."""

    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []
    secret = SECRET

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked.append((self.path, headers))
        right = headers["authorization"] == self.expected(headers, body)
        answer = MESSAGE if right else {"message": "The request signature does not match."}
        sent = json.dumps(answer).encode()
        self.send_response(200 if right else 403)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def expected(self, headers: Mapping[str, str], body: bytes) -> str:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        _, _, fields = headers["authorization"].partition(" ")
        told = dict(part.strip().split("=", 1) for part in fields.split(","))
        _, day, region, service, _ = told["Credential"].split("/")
        assert headers["x-amz-date"].startswith(day)
        covered = told["SignedHeaders"].split(";")
        assert {"host", "x-amz-date"} <= set(covered)
        request = AWSRequest(
            method="POST",
            url=f"http://{headers['host']}{self.path}",
            data=body,
            headers={name: headers[name] for name in covered},
        )
        request.context["timestamp"] = headers["x-amz-date"]
        keys = Credentials(KEY, self.secret, headers.get("x-amz-security-token"))
        auth = SigV4Auth(keys, service, region)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        signature = auth.signature(text, request)
        return (
            f"AWS4-HMAC-SHA256 Credential={told['Credential']}, SignedHeaders={';'.join(covered)},"
            f" Signature={signature}"
        )


@pytest.fixture
def bedrock() -> Iterator[http.server.ThreadingHTTPServer]:
    pytest.importorskip("botocore")
    Bedrock.asked, Bedrock.secret = [], SECRET
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bedrock)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of whoever runs the test, and no look for a machine's role."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def chosen(port: int) -> Service:
    return service_of(
        {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "AWS_REGION": "eu-west-1",
            "ANTHROPIC_BEDROCK_BASE_URL": f"http://127.0.0.1:{port}",
        }
    )


def asked(service: Service, path: str = PATH) -> httpx.Response:
    live = Live(service=service, meter=Meter(budget_tokens=100_000), trust_environment=False)
    with Gateway(live, service=service) as gateway, gateway.admitted(Asker(role="b")) as secret:
        headers = {"x-harness-session": secret, "x-amz-date": "of the session"}
        return CLIENT.post(gateway.url + path, json=BODY, headers=headers)


def test_the_service_finds_the_signature_right(
    bedrock: http.server.ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    service = chosen(bedrock.server_port)
    answer = asked(service)
    assert (answer.status_code, answer.json()["content"][0]["text"]) == (200, "hello")
    ((path, headers),) = Bedrock.asked
    assert path == PATH
    assert f"Credential={KEY}/" in headers["authorization"]
    assert "/eu-west-1/bedrock/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == TOKEN
    told = f"{service!r} {service.words} {service.cli('http://g', 'secret')} {answer.headers}"
    assert not [one for one in (KEY, SECRET, TOKEN) if one in told]
    Bedrock.secret = "another"
    refused = asked(service)
    assert (refused.status_code, "does not match" in refused.text) == (410, True)


def test_a_profile_is_found_as_aws_finds_it(
    bedrock: http.server.ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = f"[night]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "credentials").write_text(lines)
    monkeypatch.setenv("AWS_PROFILE", "night")
    assert asked(chosen(bedrock.server_port)).status_code == 200
    monkeypatch.setenv("AWS_PROFILE", "day")
    with pytest.raises(RefusedError, match="ProfileNotFound") as refused:
        chosen(bedrock.server_port)
    assert refused.value.code == "key_missing"


def test_credentials_that_cannot_be_renewed_end_the_session_and_cost_nothing(
    bedrock: http.server.ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "renewed"
    soon = datetime.now(UTC).isoformat()
    said = {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET, "SessionToken": TOKEN}
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\n")
    program.chmod(0o700)
    (tmp_path / "said").write_text(json.dumps(said | {"Expiration": soon}))
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    service = chosen(bedrock.server_port)
    (tmp_path / "said").unlink()
    answer = asked(service)
    assert answer.status_code == 410
    assert "The AWS credentials cannot be used" in answer.text
    assert SECRET not in answer.text
    program.unlink()
    answer = asked(service)
    assert (answer.status_code, "FileNotFoundError" in answer.text) == (410, True)
    assert str(tmp_path) not in answer.text
    assert Bedrock.asked == []


PERSON = "arn:aws:iam::123456789012:user/ada"
ROLE = "arn:aws:iam::123456789012:role/night"


class Sts(http.server.BaseHTTPRequestHandler):
    """Who hands out credentials for a role."""

    says: ClassVar[tuple[int, str]] = (500, "")

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status, text = self.says
        self.send_response(status)
        self.send_header("content-type", "text/xml")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def refused_by_sts(code: str) -> str:
    words = f"User: {PERSON} is not authorized to perform: sts:AssumeRole on resource: {ROLE}"
    error = f"<Type>Sender</Type><Code>{code}</Code><Message>{words}</Message>"
    return f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"


def handed_out(expires: datetime) -> str:
    keys = f"<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
    until = f"<SessionToken>{TOKEN}</SessionToken><Expiration>{expires.isoformat()}</Expiration>"
    result = f"<AssumeRoleResult><Credentials>{keys}{until}</Credentials></AssumeRoleResult>"
    return f"<AssumeRoleResponse>{result}</AssumeRoleResponse>"


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[http.server.HTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "config").write_text(
        f"[profile night]\nrole_arn = {ROLE}\nsource_profile = day\nregion = eu-west-1\n"
    )
    (tmp_path / "credentials").write_text(
        f"[day]\naws_access_key_id = {KEY}\naws_secret_access_key = of-the-day\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "night")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.shutdown()
    server.server_close()


LONG_AGO, LATER = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-5, 5))


@pytest.mark.parametrize(
    ("says", "told", "fault"),
    [
        ((403, refused_by_sts("AccessDenied")), "AccessDenied", Fault.KEY),
        ((403, refused_by_sts("ExpiredToken")), "ExpiredToken", Fault.KEY),
        ((403, refused_by_sts(f"No, {PERSON}")), "ClientError", Fault.KEY),
        ((200, handed_out(LONG_AGO)), "RuntimeError", Fault.KEY),
        ((400, refused_by_sts("Throttling")), "Throttling", Fault.PASSING),
        ((503, refused_by_sts("ServiceUnavailable")), "ServiceUnavailable", Fault.PASSING),
        (None, "EndpointConnectionError", Fault.PASSING),
    ],
)
def test_without_fresh_credentials_the_loop_stops_or_waits_and_the_gateway_lasts(
    bedrock: http.server.HTTPServer,
    sts: http.server.HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    says: tuple[int, str] | None,
    told: str,
    fault: Fault,
) -> None:
    if says is None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    else:
        monkeypatch.setattr(Sts, "says", says)
    service = chosen(bedrock.server_port)
    live = Live(service=service, meter=Meter(budget_tokens=100_000), trust_environment=False)
    asker = Asker(role="oracle", session="s")
    gateway = Gateway(live, service=service, weather=live.weather)
    with gateway, gateway.admitted(asker) as secret:
        headers = {"x-harness-session": secret}
        for path in (PATH, PATH.replace("invoke", "count-tokens")):
            answer = CLIENT.post(gateway.url + path, json=BODY, headers=headers)
            assert answer.status_code == (503 if fault is Fault.PASSING else 410)
            assert f": {told}. " in answer.json()["error"]["message"]
            assert "123456789012" not in f"{answer.text} {gateway.refused}"
        assert (gateway.failure, Bedrock.asked) == (None, [])
        ended = SessionOutcome(outcome=SessionEnding.FAILED, detail="API Error")
        assert named(ended, gateway, "s").outcome is SessionEnding.UNSERVED
        clock, step = ManualClock(), JudgeResult(experiment="exp-0001", index=1, attempt=1)
        due = Outage(3600.0, clock, lambda _text: None).due(step, gateway.weather)
        if fault is Fault.PASSING:
            assert (due, clock.monotonic()) == (step, 15)
        else:
            assert isinstance(due, StopLoop)
            assert (due.reason, clock.monotonic()) == ("key_refused", 0)
            assert told in due.detail
        if says is not None:
            monkeypatch.setattr(Sts, "says", (200, handed_out(LATER)))
            answer = CLIENT.post(gateway.url + PATH, json=BODY, headers=headers)
            assert (answer.status_code, gateway.weather.trouble("s")) == (200, None)


def test_without_any_credentials_it_says_what_would_do() -> None:
    pytest.importorskip("botocore")
    with pytest.raises(RefusedError, match="none were found") as refused:
        chosen(9)
    assert "AWS_BEARER_TOKEN_BEDROCK" in refused.value.hint
    assert "AWS_PROFILE" in refused.value.hint


def test_without_botocore_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    with pytest.raises(MissingExtraError) as refused:
        chosen(9)
    assert "experiment-harness[aws]" in refused.value.hint
    assert "AWS_BEARER_TOKEN_BEDROCK" in refused.value.hint
