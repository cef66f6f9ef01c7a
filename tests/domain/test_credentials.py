"""Credentials are told by their form, by the name before them, and by the environment."""

import pytest

from harness.domain.credentials import secret_values, without_credentials

BEDROCK = "ABSK" + "QmVkcm9ja0FQSUtleS1h+/b3" * 3 + "=="
OPAQUE = "0pAqUe-vAlUe-of-n0-f0rm-at-all"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("AWS_BEARER_TOKEN_BEDROCK", OPAQUE, OPAQUE),
        ("aws_secret_access", OPAQUE, OPAQUE),
        ("KEY_OF_THE_LAB", OPAQUE, OPAQUE),
        ("PGPASSWORD", OPAQUE, OPAQUE),
        ("APP_CREDENTIAL_2", OPAQUE, OPAQUE),
        ("ANTHROPIC_CUSTOM_HEADERS", f"X-Lab: {OPAQUE}", OPAQUE),
        ("ANTHROPIC_CUSTOM_HEADERS", f"X-App: abc\nX-Lab:{OPAQUE}\n", OPAQUE),
        ("ANTHROPIC_CUSTOM_HEADERS", f"Authorization: Basic {OPAQUE}", OPAQUE),
    ],
)
def test_a_value_of_the_environment_is_known(name: str, value: str, secret: str) -> None:
    known = secret_values({name: value})
    assert without_credentials(f"it is {secret}, see", known) == "it is [secret], see"


@pytest.mark.parametrize(
    "name",
    [
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "MONKEY_BUSINESS",
        "KEYBOARD_LAYOUT",
        "TOKENIZERS_PARALLELISM",
    ],
)
def test_a_name_that_only_sounds_like_one_is_none(name: str) -> None:
    assert secret_values({name: "ordinary-words"}) == frozenset()


def test_short_headers_are_no_secrets() -> None:
    assert secret_values({"ANTHROPIC_CUSTOM_HEADERS": "X-App: me\nno header"}) == frozenset()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"the key {BEDROCK} works", "the key [secret] works"),
        (f"export AWS_BEARER_TOKEN_BEDROCK={OPAQUE}", "export AWS_BEARER_TOKEN_BEDROCK=[secret]"),
        (f'PASSWD="{OPAQUE}"', 'PASSWD="[secret]"'),
        (
            f'ANTHROPIC_CUSTOM_HEADERS="X-Lab: {OPAQUE}\nX-More: {OPAQUE}" claude',
            "ANTHROPIC_CUSTOM_HEADERS=[secret] claude",
        ),
        (
            f"ANTHROPIC_CUSTOM_HEADERS=$'X-Lab: {OPAQUE}\\nX-More: b' claude",
            "ANTHROPIC_CUSTOM_HEADERS=$[secret] claude",
        ),
        (
            f"ANTHROPIC_CUSTOM_HEADERS=X-Lab:{OPAQUE} claude",
            "ANTHROPIC_CUSTOM_HEADERS=[secret] claude",
        ),
    ],
)
def test_a_credential_in_text_is_replaced(text: str, left: str) -> None:
    assert without_credentials(text) == left


@pytest.mark.parametrize(
    "text",
    [
        'KEY_NAME="val_accuracy"',
        "TOKEN_COUNT=100000000",
        "ABSKURD is no key",
        "echo $ANTHROPIC_CUSTOM_HEADERS",
        "PYTHONPATH=/a/long/folder/of/ordinary/words",
    ],
)
def test_honest_text_stays(text: str) -> None:
    assert without_credentials(text) == text
