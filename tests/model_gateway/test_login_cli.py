"""The real Claude Code CLI with a login of its own, a subscription's token, Bedrock and Vertex,
through the gateway to a fake service on loopback. Dummy bearers only."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.domain.prices import FAMILIES
from harness.driver.environment import SessionFolders, link_login
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.service import Dialect, Proof
from harness.model_gateway.service import Service as ModelService
from tests.model_gateway.kept import keep
from tests.model_gateway.test_dialects import upstream  # noqa: F401
from tests.model_gateway.test_gateway_cli import BUILDER, CLI, environment, run_session
from tests.model_gateway.test_live_gateway import Service

pytestmark = pytest.mark.skipif(not CLI.is_file(), reason="the installed Agent SDK brings no CLI")

DUMMY = "sk-ant-oat01-dummy-of-a-test"
LOGIN = {
    "claudeAiOauth": {
        "accessToken": DUMMY,
        "refreshToken": "sk-ant-ort01-dummy-of-a-test",
        "expiresAt": 4_000_000_000_000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def said_by_the_cli(place: ModelService, tmp_path: Path) -> tuple[dict, Live]:
    """What the session says, and who metered it."""
    home = tmp_path / "home"
    live = Live(service=place, meter=Meter(budget_tokens=10_000_000), trust_environment=False)
    with Gateway(live, service=place) as gateway, gateway.admitted(BUILDER) as secret:
        requests = keep(gateway)
        variables = environment(gateway, secret, home)
        for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
            del variables[name]
        variables |= place.cli(gateway.url, secret)
        assert DUMMY not in json.dumps(variables)
        out = run_session(CLI, home, variables)
        assert gateway.refused is gateway.failure is None
        assert requests
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    kept = [path for path in files if path.name != "login.json"]
    assert not [path for path in kept if DUMMY.encode() in path.read_bytes()]
    return out, live


def test_a_login_passes_through(service: Service, tmp_path: Path) -> None:
    login = tmp_path / "login.json"
    login.write_text(json.dumps(LOGIN))
    folders = SessionFolders(outside=tmp_path / "session")
    folders.create()
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config").symlink_to(folders.config)
    link_login(folders, login)
    place = ModelService(url=service.url, proof=Proof.HEADER, login=login)
    out, live = said_by_the_cli(place, tmp_path)
    assert (out["result"], out["is_error"]) == ("hello", False)
    asked = [one["headers"] for one in service.asked if one["path"].startswith("/v1/messages")]
    assert {headers["authorization"] for headers in asked} == {f"Bearer {DUMMY}"}
    assert not [headers for headers in asked if "x-harness-session" in headers]
    assert live.meter.spent_tokens > 0


def test_a_subscriptions_token_stays_with_the_gateway(service: Service, tmp_path: Path) -> None:
    place = ModelService(
        url=service.url,
        proof=Proof.TOKEN,
        headers={"authorization": f"Bearer {DUMMY}"},
    )
    out, _ = said_by_the_cli(place, tmp_path)
    assert (out["result"], out["is_error"]) == ("hello", False)
    asked = service.asked[-1]
    assert asked["headers"]["authorization"] == f"Bearer {DUMMY}"
    assert "oauth" in asked["headers"]["anthropic-beta"]
    # As for a subscription, in everything but the token.
    assert asked["body"]["model"] in FAMILIES


@pytest.mark.parametrize("dialect", [Dialect.BEDROCK, Dialect.VERTEX])
def test_bedrock_and_vertex(upstream, tmp_path: Path, dialect: Dialect) -> None:  # noqa: F811
    place = ModelService(
        url=f"http://127.0.0.1:{upstream.server_port}",
        dialect=dialect,
        proof=Proof.HEADER,
        headers={"authorization": f"Bearer {DUMMY}"},
        variables={
            "AWS_REGION": "us-east-1",
            "CLOUD_ML_REGION": "us-east5",
            "ANTHROPIC_VERTEX_PROJECT_ID": "p",
            "ANTHROPIC_MODEL": "us.anthropic.claude-opus-5-5-v1:0"
            if dialect is Dialect.BEDROCK
            else "claude-opus-5-5",
        },
    )
    out, live = said_by_the_cli(place, tmp_path)
    assert (out["result"], out["is_error"]) == ("hello", False)
    assert {headers["authorization"] for _, headers, _ in upstream.asked} == {f"Bearer {DUMMY}"}
    assert live.meter.spent_tokens > 0
