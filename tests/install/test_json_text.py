"""Edits of JSON text: right by value whatever the text, and no other byte moves."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.install.json_edit import (
    NotStrictJsonError,
    add_item,
    add_member,
    load,
    parse,
    remove_part,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from([None, 0, 1, 2, 4, "\t"])


def written(value: Any, indent: Any, crlf: bool) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text.replace("\n", "\r\n") if crlf else text


@given(st.dictionaries(st.text(), values, max_size=4), st.text(), values, layouts, st.booleans())
def test_an_added_member_is_there_and_taken_out_again_exactly(owner, key, value, indent, crlf):
    owner.pop(key, None)
    text = written(owner, indent, crlf)
    more = add_member(text, parse(text), key, value)
    assert load(more) == {**owner, key: value}
    assert list(load(more))[:-1] == list(owner)
    assert remove_part(more, parse(more), len(owner)) == text


@given(st.lists(values, max_size=4), values, layouts, st.booleans())
def test_an_added_item_too(owner, value, indent, crlf):
    text = written({"list": owner}, indent, crlf)
    node = parse(text).member("list")
    assert node is not None
    more = add_item(text, node, value)
    assert load(more) == {"list": [*owner, value]}
    again = parse(more).member("list")
    assert again is not None
    assert remove_part(more, again, len(owner)) == text


@given(st.lists(values, min_size=1, max_size=5), st.data(), layouts)
def test_any_item_can_be_removed(owner, data, indent):
    index = data.draw(st.integers(0, len(owner) - 1))
    text = written(owner, indent, False)
    assert load(remove_part(text, parse(text), index)) == owner[:index] + owner[index + 1 :]


def test_the_file_s_own_way_of_writing_is_kept():
    text = '{\r\n\t"b" : [1,2],\r\n\t"a":{ }\r\n}\r\n'
    node = parse(text).member("a")
    assert node is not None
    assert add_member(text, node, "x", {"y": 1}) == (
        '{\r\n\t"b" : [1,2],\r\n\t"a":{\r\n\t\t"x": {\r\n\t\t\t"y": 1\r\n\t\t}\r\n\t}\r\n}\r\n'
    )
    assert add_member('{"a": 1}', parse('{"a": 1}'), "b", [2]) == '{"a": 1, "b": [2]}'
    assert add_member("{}\n", parse("{}\n"), "b", []) == '{\n  "b": []\n}\n'


def test_of_two_equal_keys_the_last_counts_as_for_every_reader():
    text = '{"a": 1, "a": 2}'
    node = parse(text).member("a")
    assert node is not None
    assert text[node.start : node.end] == "2"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ('{\n  "a": 1,\n}', 3, 1),
        ('{\n  // a remark\n  "a": 1}', 2, 3),
        ('{"a": NaN}', 1, 7),
        ('{\n"a": -Infinity}', 2, 6),
        ('{"a": 1} x', 1, 10),
    ],
)
def test_what_is_no_json_is_named_with_its_place(text, line, column):
    with pytest.raises(NotStrictJsonError) as refused:
        load(text)
    assert (refused.value.line, refused.value.column) == (line, column)


def test_deep_nesting_is_an_answer_and_a_byte_order_mark_none():
    with pytest.raises(NotStrictJsonError, match="deep"):
        load("[" * 100_000)
    with pytest.raises(NotStrictJsonError, match="deep"):
        parse("[" * 900 + "]" * 900)
    text = '\ufeff{"a": 1}'
    assert load(text) == {"a": 1}
    assert add_member(text, parse(text), "b", 2) == '\ufeff{"a": 1, "b": 2}'
