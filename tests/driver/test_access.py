"""Which service a loop asks, and with what: as Claude Code finds it, and nothing of it is shown."""

from pathlib import Path

import pytest

from harness.driver.access import CREDENTIALS, service_of
from harness.errors import RefusedError
from harness.model_gateway.service import Dialect, Proof

DUMMY = "dummy-of-a-test"


def login(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / CREDENTIALS).write_text("never read")
    return {"HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("variables", "proof", "header", "dialect", "url"),
    [
        (
            {"ANTHROPIC_API_KEY": DUMMY},
            Proof.KEY,
            {"x-api-key": DUMMY},
            Dialect.MESSAGES,
            "https://api.anthropic.com",
        ),
        (
            {
                "ANTHROPIC_AUTH_TOKEN": DUMMY,
                "ANTHROPIC_API_KEY": "other",
                "ANTHROPIC_BASE_URL": "https://gateway.example",
                "ANTHROPIC_CUSTOM_HEADERS": "X-Team: ml\nnothing",
            },
            Proof.KEY,
            {"authorization": f"Bearer {DUMMY}", "x-team": "ml"},
            Dialect.MESSAGES,
            "https://gateway.example",
        ),
        (
            {"CLAUDE_CODE_OAUTH_TOKEN": DUMMY},
            Proof.TOKEN,
            {"authorization": f"Bearer {DUMMY}"},
            Dialect.MESSAGES,
            "https://api.anthropic.com",
        ),
        (
            {
                "CLAUDE_CODE_USE_BEDROCK": "1",
                "AWS_REGION": "eu-west-1",
                "AWS_BEARER_TOKEN_BEDROCK": DUMMY,
                "ANTHROPIC_API_KEY": "other",
            },
            Proof.HEADER,
            {"authorization": f"Bearer {DUMMY}"},
            Dialect.BEDROCK,
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
        ),
        (
            {
                "CLAUDE_CODE_USE_BEDROCK": "true",
                "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
                "ANTHROPIC_BEDROCK_BASE_URL": "https://gateway.example/bedrock",
            },
            Proof.HEADER,
            {},
            Dialect.BEDROCK,
            "https://gateway.example/bedrock",
        ),
        (
            {
                "CLAUDE_CODE_USE_VERTEX": "1",
                "CLOUD_ML_REGION": "global",
                "ANTHROPIC_VERTEX_PROJECT_ID": "p",
                "ANTHROPIC_AUTH_TOKEN": DUMMY,
            },
            Proof.HEADER,
            {"authorization": f"Bearer {DUMMY}"},
            Dialect.VERTEX,
            "https://aiplatform.googleapis.com/v1",
        ),
        (
            {
                "CLAUDE_CODE_USE_FOUNDRY": "1",
                "ANTHROPIC_FOUNDRY_RESOURCE": "mine",
                "ANTHROPIC_FOUNDRY_API_KEY": DUMMY,
            },
            Proof.KEY,
            {"x-api-key": DUMMY, "api-key": DUMMY},
            Dialect.MESSAGES,
            "https://mine.services.ai.azure.com/anthropic",
        ),
    ],
)
def test_what_the_cli_knows_is_known_here(
    variables: dict[str, str],
    proof: Proof,
    header: dict[str, str],
    dialect: Dialect,
    url: str,
) -> None:
    service = service_of(variables)
    assert (service.proof, service.headers, service.dialect) == (proof, header, dialect)
    assert service.url == url
    assert service.words
    assert DUMMY not in f"{service!r} {service.words} {service.cli('http://g', 'secret')}"


def test_the_login_of_claude_is_found_and_not_opened(tmp_path: Path) -> None:
    environment = login(tmp_path)
    file = tmp_path / ".claude" / CREDENTIALS
    file.chmod(0)
    before = file.stat().st_atime_ns
    service = service_of(environment)
    assert (service.login, service.headers, service.passes_login) == (file, {}, True)
    assert service.cli("http://g", "secret") == {
        "ANTHROPIC_BASE_URL": "http://g",
        "ANTHROPIC_CUSTOM_HEADERS": "x-harness-session: secret",
    }
    assert file.stat().st_atime_ns == before
    assert service_of({**environment, "ANTHROPIC_API_KEY": DUMMY}).login is None
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    assert service_of(elsewhere).login == file


def test_models_and_regions_reach_the_cli_and_no_header_does() -> None:
    service = service_of(
        {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "AWS_BEARER_TOKEN_BEDROCK": DUMMY,
            "ANTHROPIC_MODEL": "us.anthropic.claude-opus-5-5-v1:0",
            "ANTHROPIC_CUSTOM_HEADERS": f"x-key: {DUMMY}",
        }
    )
    assert service.cli("http://g", "secret") == {
        "AWS_REGION": "us-east-1",
        "ANTHROPIC_MODEL": "us.anthropic.claude-opus-5-5-v1:0",
        "ANTHROPIC_BEDROCK_BASE_URL": "http://g",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        "ANTHROPIC_CUSTOM_HEADERS": "x-harness-session: secret",
    }


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({}, "key_missing", "Log in with `claude`, or set ANTHROPIC_API_KEY"),
        ({"HOME": "/nowhere"}, "key_missing", "claude setup-token"),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, "access_unknown", "ANTHROPIC_AUTH_TOKEN"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, "access_unknown", "ANTHROPIC_FOUNDRY_API_KEY"),
    ],
)
def test_what_is_missing_is_named(variables: dict[str, str], code: str, words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        service_of(variables)
    assert caught.value.code == code
    assert words in caught.value.hint
