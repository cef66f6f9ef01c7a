"""What a fault of the model service means, and calls of tools that nobody can read."""

import json

import pytest

from harness.model_gateway.weather import (
    UNANSWERED,
    Fault,
    Weather,
    trouble_in_stream,
    trouble_of,
    unreadable_in_a_row,
)
from harness.model_gateway.wire import error_body


def body(kind: str, message: str) -> bytes:
    return json.dumps(error_body(kind, message)).encode()


@pytest.mark.parametrize(
    ("status", "said", "fault"),
    [
        (429, body("rate_limit_error", "slower"), Fault.PASSING),
        (500, body("api_error", "oops"), Fault.PASSING),
        (503, b"<html>upstream connect error</html>", Fault.PASSING),
        (529, body("overloaded_error", "Overloaded"), Fault.PASSING),
        (302, b"", Fault.PASSING),
        (401, body("authentication_error", "invalid x-api-key"), Fault.KEY),
        (403, b'{"Message": "not authorized"}', Fault.KEY),
        (402, body("billing_error", "pay first"), Fault.CREDIT),
        (400, body("invalid_request_error", "Your credit balance is too low"), Fault.CREDIT),
        (404, body("not_found_error", "model: claude-none"), Fault.MODEL),
        (400, body("invalid_request_error", "prompt is too long"), Fault.REQUEST),
        (400, body("x", "x-anthropic-billing-header is reserved"), Fault.REQUEST),
        (413, b"[]", Fault.REQUEST),
    ],
)
def test_a_status_says_whether_waiting_helps(status: int, said: bytes, fault: Fault) -> None:
    trouble = trouble_of(status, {}, said)
    assert trouble.fault is fault
    assert trouble.words.startswith(f"status {status}")


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("overloaded_error", Fault.PASSING),
        ("api_error", Fault.PASSING),
        ("authentication_error", Fault.KEY),
        ("billing_error", Fault.CREDIT),
        ("invalid_request_error", Fault.REQUEST),
        ("of_next_year", Fault.PASSING),
    ],
)
def test_an_error_inside_a_stream_says_the_same(kind: str, fault: Fault) -> None:
    assert trouble_in_stream({"type": kind, "message": "so"}).fault is fault
    assert trouble_in_stream("no object").fault is Fault.PASSING


def test_what_a_service_says_is_one_plain_line() -> None:
    trouble = trouble_of(500, {}, body("api_error", "a\n\x1b[31mred\n" + "x" * 5000))
    assert trouble.words.startswith("status 500: a red x")
    assert len(trouble.words) <= 300


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("", 0.0), ("Fri, 01 Jan", 0.0), ("-1", 0.0), ("inf", 0.0)]
)
def test_how_long_the_service_asks_to_be_left_alone(header: str, seconds: float) -> None:
    assert trouble_of(429, {"retry-after": header}, b"").wait_s == seconds


def test_each_session_has_its_own_weather() -> None:
    weather = Weather()
    weather.asked("a")
    assert weather.trouble("a") == UNANSWERED
    weather.answered("a", {"stop_reason": "max_tokens"})
    weather.failed("b", trouble_of(529, {}, b""))
    assert (weather.trouble("a"), weather.stop_reason("a")) == (None, "max_tokens")
    assert (weather.trouble("c"), weather.stop_reason("c")) == (None, "")
    assert weather.trouble("b") is not None


def round_of(*texts: str, error: bool = True) -> list[dict]:
    results = [{"type": "tool_result", "is_error": error, "content": text} for text in texts]
    return [{"role": "assistant", "content": []}, {"role": "user", "content": results}]


BAD = "<tool_use_error>InputValidationError: Read failed</tool_use_error>"


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([], 0),
        ([{"role": "user", "content": "go"}], 0),
        (round_of(BAD) * 3, 3),
        (round_of(BAD) * 3 + [{"role": "system", "content": "note"}], 3),
        (round_of("fine", error=False) + round_of(BAD) * 2, 2),
        (round_of(BAD) * 4 + round_of(BAD, "Exit code 1"), 0),
        (round_of(BAD) * 4 + round_of("File does not exist."), 0),
        (round_of("quotes InputValidationError", error=False), 0),
        (round_of("<tool_use_error>Error: No such tool available: X</tool_use_error>"), 1),
        ("no list", 0),
    ],
)
def test_rounds_of_calls_that_nobody_can_read_are_counted(messages, count: int) -> None:
    assert unreadable_in_a_row({"messages": messages}) == count
