import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts.front_matter import plain_scalar, quote, read_front_matter, read_yaml
from harness.domain.plain_text import plain
from harness.errors import UsageError

CASE_47 = Path(__file__).with_name("inputs") / "case-47"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.", 1.0),
        (".5", 0.5),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2026-01-01", "2026-01-01"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("nan", "nan"),
        ("1e999", math.inf),
        ("9" * 500, "9" * 500),
    ],
)
def test_scalars_are_what_their_author_meant(text: str, value: Any) -> None:
    found = plain_scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number_only_with_its_dot() -> None:
    assert math.isnan(plain_scalar(".nan"))


def test_lines_and_source_texts_are_kept() -> None:
    front = read_front_matter(
        "\n---\na: 1\nb:\n  c: 0.90\n  d: [x, '7']\n---\n\n\nBody\n", where="f.md"
    )
    assert front.data == {"a": 1, "b": {"c": 0.9, "d": ["x", "7"]}}
    assert front.text_of("b", "c") == "0.90"
    assert [
        front.line_of("a"),
        front.line_of("b", "c"),
        front.line_of("b", "d", 1),
        front.line_of("b", "e"),
    ] == [
        3,
        5,
        6,
        4,
    ]
    assert front.body == "Body\n"


def test_all_duplicates_are_told_at_once() -> None:
    with pytest.raises(UsageError) as error:
        read_front_matter("---\na: 1\na: 2\nb: {c: 1, c: 2}\n---\n", where="f.md")
    assert error.value.message == (
        "f.md:3: found the key 'a' a second time (first on line 2).\n"
        "f.md:4: found the key 'c' a second time (first on line 4)."
    )


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c\n", "- 1\n"])
def test_the_hint_of_a_whole_file_speaks_of_no_front_matter(text: str) -> None:
    with pytest.raises(UsageError) as error:
        read_yaml(text, where="config.yaml")
    assert "ront matter" not in str(error.value)
    assert "The whole file is YAML" in error.value.hint
    with pytest.raises(UsageError) as error:
        read_front_matter(f"---\n{text}---\n", where="result.md")
    assert "Front matter is YAML between two lines `---`" in error.value.hint


def test_a_bomb_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nested too deeply|more than 40 levels"):
        read_yaml("[" * 5000 + "]" * 5000, where="f.yaml")
    with pytest.raises(UsageError, match="more than 40 levels"):
        read_yaml("a: " + "[" * 50 + "]" * 50, where="f.yaml")


@given(st.text(max_size=60))
def test_quoted_text_reads_back(text: str) -> None:
    assert read_yaml(f"a: {quote(text)}\n", where="f").data["a"] == plain(text)
    assert "\n" not in quote(text)


@given(st.text(alphabet="-: \n[]{}#&*!|>'\"%@`a1.,?", max_size=40))
def test_text_that_is_no_front_matter_is_an_error_with_its_place(text: str) -> None:
    try:
        found = read_front_matter(f"---\n{text}\n---\n", where="f").where
    except UsageError as error:
        found = error.message[:1]
    assert found == "f"


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.integers() | st.text("xyz", min_size=1) | st.lists(st.booleans()),
    )
)
def test_what_yaml_writes_is_read(data: dict[str, Any]) -> None:
    assert read_yaml(yaml.safe_dump(data) if data else "", where="f").data == data


@pytest.mark.parametrize("name", ["colon.md", "flow.md", "star.md", "unindented.md"])
def test_reported_front_matter_that_is_no_yaml_is_an_error_with_its_line(name: str) -> None:
    with pytest.raises(UsageError, match=rf"{name}:\d+: this is not YAML"):
        read_front_matter((CASE_47 / name).read_text(), where=name)
