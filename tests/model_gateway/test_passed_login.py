"""A login of the CLI's own goes to the service and nowhere else; the session is known by a header
of ours. Dummy bearers only, and a fake service on loopback."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.domain.prices import price_of
from harness.ledger.spending import SpendingLog
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.scenario import Recording
from harness.model_gateway.service import Proof
from harness.model_gateway.service import Service as ModelService
from harness.model_gateway.wire import Asker, Login
from tests.model_gateway.test_live_gateway import CLIENT, MODEL, USAGE, Service

BEARER = "Bearer dummy-of-a-test-9f3a"
BODY = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
TOKENS = sum(USAGE.values())


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def gateway_to(service: Service, tmp_path: Path, **more: object) -> Gateway:
    place = ModelService(
        url=service.url,
        proof=Proof.HEADER,
        login=tmp_path / "never-opened",
    )
    meter = Meter(
        budget_tokens=1_000_000,
        log=SpendingLog(tmp_path / "spending.jsonl", "p"),
    )
    live = Live(service=place, meter=meter, trust_environment=False, **more)  # type: ignore
    return Gateway(live, service=place)


def ask(gateway: Gateway, *, bearer: str = BEARER, secret: str | None = None) -> "object":
    with gateway.admitted(Asker(role="builder", session="s1")) as own:
        headers = {"authorization": bearer, "x-harness-session": secret or own}
        return CLIENT.post(f"{gateway.url}/v1/messages", json=BODY, headers=headers)


def test_it_reaches_the_service_and_tokens_are_metered(service: Service, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.yaml"
    with gateway_to(service, tmp_path, observe=Recording(recorded)) as gateway:
        answer = ask(gateway)
        assert answer.status_code == 200
        meter = gateway.answerer.meter
        assert (meter.spent_tokens, meter.reserved_tokens) == (TOKENS, 0)
    (asked,) = service.asked
    assert asked["headers"]["authorization"] == BEARER
    assert not [name for name in asked["headers"] if "harness" in name or name == "x-api-key"]
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 2
    assert not any("dummy-of-a-test" in text for text in written)
    assert "dummy-of-a-test" not in answer.text


def test_a_login_alone_is_no_session(service: Service, tmp_path: Path) -> None:
    with gateway_to(service, tmp_path) as gateway:
        assert ask(gateway, secret="guessed").status_code == 401
        bare = CLIENT.post(
            f"{gateway.url}/v1/messages", json=BODY, headers={"authorization": BEARER}
        )
        assert bare.status_code == 401
        assert "dummy-of-a-test" not in bare.text
    with gateway_to(service, tmp_path) as gateway, gateway.admitted(Asker(role="b")) as secret:
        # What proves a session is one header: its secret proves nothing in another.
        for name, value in (("x-api-key", secret), ("authorization", f"Bearer {secret}")):
            answer = CLIENT.post(f"{gateway.url}/v1/messages", json=BODY, headers={name: value})
            assert answer.status_code == 401
    assert service.asked == []


def test_a_token_that_the_gateway_holds_takes_the_place_of_the_sessions_own(
    service: Service, tmp_path: Path
) -> None:
    place = ModelService(url=service.url, headers={"authorization": BEARER}, proof=Proof.TOKEN)
    live = Live(service=place, meter=Meter(budget_usd=1), trust_environment=False)
    with Gateway(live, service=place) as gateway:
        with gateway.admitted(Asker(role="builder")) as secret:
            headers = {"authorization": f"Bearer {secret}", "anthropic-beta": "oauth-2025-04-20"}
            answer = CLIENT.post(f"{gateway.url}/v1/messages", json=BODY, headers=headers)
        assert answer.status_code == 200
    assert service.asked[0]["headers"]["authorization"] == BEARER
    assert service.asked[0]["headers"]["anthropic-beta"] == "oauth-2025-04-20"


def test_errors_name_no_secret(tmp_path: Path) -> None:
    wrong = "dummy\nof-a-test"
    place = ModelService(url="http://127.0.0.1:9", headers={"x-api-key": wrong})
    live = Live(service=place, meter=Meter(budget_usd=1), trust_environment=False)
    with Gateway(live, service=place) as gateway:
        with gateway.admitted(Asker(role="builder")) as secret:
            answer = CLIENT.post(
                f"{gateway.url}/v1/messages", json=BODY, headers={"x-api-key": secret}
            )
        assert answer.status_code in (502, 504)
        assert "of-a-test" not in answer.text
        assert "of-a-test" not in f"{place!r} {live.meter!r} {gateway.failure} {gateway.refused}"


def test_a_login_has_no_text_and_no_copy() -> None:
    login = Login(BEARER)
    assert "dummy" not in f"{login} {login!r}"
    assert copy.deepcopy(login).header() == {"authorization": ""}
    with pytest.raises(TypeError):
        pickle.dumps(login)


def test_a_budget_in_tokens_stops_before_it_is_passed(service: Service, tmp_path: Path) -> None:
    with gateway_to(service, tmp_path) as gateway:
        gateway.answerer.meter.budget_tokens = 3_000
        refused = ask(gateway)
        assert refused.status_code == 402
        assert "0 of 3,000 tokens are spent or reserved" in refused.text
        assert gateway.over_budget is not None
        assert "Raise budget.tokens in the plan" in gateway.over_budget
    assert service.asked == []


def test_names_of_other_services_have_their_familys_price() -> None:
    opus = price_of("claude-opus-5-5")
    assert opus is not None
    for name in (
        "us.anthropic.claude-opus-5-5-v1:0",
        "anthropic.claude-opus-5-5-20260901-v1:0",
        "claude-opus-5-5@20260901",
    ):
        assert price_of(name) is opus
    assert price_of("my-deployment") is None
