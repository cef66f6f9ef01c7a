"""The same values and the same text as the json package."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.guard.policy import json_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=20,
)
QUICK = settings(max_examples=300, deadline=None)


@given(value=JSON, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
@QUICK
def test_reads_what_json_reads(value, ascii_only: bool, indent: int | None):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert repr(json_text.loads(text)) == repr(json.loads(text))


@given(value=JSON, sort_keys=st.booleans())
@QUICK
def test_writes_what_json_writes(value, sort_keys: bool):
    assert json_text.dumps(value, sort_keys=sort_keys) == json.dumps(
        value, sort_keys=sort_keys, separators=(",", ":")
    )


@given(text=st.text(alphabet='{}[]",:0123e-.ntrufalse\\ \n\x01ü', max_size=30))
@QUICK
def test_refuses_what_json_refuses(text: str):
    try:
        expected = repr(json.loads(text))
    except (ValueError, RecursionError):
        with pytest.raises((ValueError, RecursionError)):
            json_text.loads(text)
    else:
        assert repr(json_text.loads(text)) == expected


def test_numbers_without_a_value_are_read_as_json_reads_them():
    assert math.isnan(json_text.loads("NaN"))
    assert json_text.loads("[-Infinity, 1e999]") == [-math.inf, math.inf]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
def test_what_is_nested_too_deep_is_an_error_that_can_be_caught(text: str):
    with pytest.raises((RecursionError, ValueError)):
        json_text.loads(text)


@pytest.mark.parametrize("value", [{1, 2}, b"x", object()], ids=["set", "bytes", "object"])
def test_what_is_no_json_is_not_written(value):
    with pytest.raises(TypeError):
        json_text.dumps([value])


def test_without_the_c_functions_json_itself_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_text, "c_json", None)
    assert json_text.loads(' {"a": [1]} ') == {"a": [1]}
    assert json_text.dumps({"b": 1, "a": "ü"}, sort_keys=True) == '{"a":"\\u00fc","b":1}'
