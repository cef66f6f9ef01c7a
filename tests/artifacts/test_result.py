"""`case_NN` in a name is the number of a reported case: a file or log of a real project that an
earlier tool misread. Where its input was kept, it is in tests/artifacts/inputs/case-NN.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts.experiment_files import (
    agrees,
    claim_from,
    claim_of,
    parse_result,
    precise_enough,
    read_result,
    render_result,
)
from harness.domain.plain_text import plain
from harness.errors import NotFoundError, UsageError

CASE_50 = Path(__file__).with_name("inputs") / "case-50/result_claim_only.md"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("0.94", 0.9449, True),
        ("0.94", 0.9351, True),
        ("0.94", 0.9461, False),
        ("0.940", 0.9406, False),
        ("0.940", 0.9404, True),
        ("0.9", 0.9449, True),
        ("94e-2", 0.944, True),
        ("1", 0.6, True),
        ("-0.5", -0.54, True),
        ("0.94", 0.945, True),
        ("0.94", float("nan"), False),
        ("0.94", float("inf"), False),
        ("0.1234567890123456789012", 0.12345678901234568, True),
        ("1e-999", 0.0, True),
    ],
)
def test_a_claim_agrees_within_half_a_unit_of_its_last_digit(
    text: str, value: float, expected: bool
) -> None:
    assert agrees(claim_from("accuracy", text, where="result.md:2"), value) is expected


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_rounded_value_always_agrees(value: float, digits: int) -> None:
    assert agrees(claim_from("m", f"{value:.{digits}f}", where="r"), value)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("1", 0.893, False),
        ("0.9", 0.893, True),
        ("0.89", 0.893, True),
        ("94", 94.3, True),
        ("9e1", 94.3, True),
        ("1e2", 94.3, False),
        ("3", 3.2, False),
        ("3.2", 3.2, True),
        ("0.1", 0.14, False),
        ("0.00", 0.003, False),
        ("3e-3", 0.0032, False),
        ("3.2e-3", 0.0032, True),
        ("-0", -0.3, False),
        ("-0.30", -0.3, True),
        ("1", 1.0, True),
        ("0", 0.0, True),
    ],
)
def test_a_claim_says_something_when_half_a_unit_is_at_most_a_tenth(
    text: str, value: float, expected: bool
) -> None:
    assert precise_enough(claim_from("m", text, where="result.md:2"), value) is expected


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(2, 6))
def test_two_significant_digits_always_say_something(value: float, digits: int) -> None:
    claim = claim_from("m", f"{value:.{digits - 1}e}", where="r")
    assert agrees(claim, value)
    assert precise_enough(claim, value)


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_the_claim_that_the_harness_offers_always_passes(value: float) -> None:
    claim = claim_from("m", claim_of(value), where="r")
    assert agrees(claim, value)
    assert precise_enough(claim, value)


def test_the_claim_that_the_harness_offers_is_short() -> None:
    assert [claim_of(value) for value in (0.89312, 94.3, 0.00032, 0.0)] == [
        "0.8931",
        "94.3000",
        "3.200e-04",
        "0.0000",
    ]


def test_claims_keep_how_they_were_written() -> None:
    result = parse_result(
        "---\nclaims: {accuracy: 0.90, mse: 1e-3}\nshortfalls: [class 3 is weak]\n---\nText\n",
        where="r",
    )
    assert [(claim.value, claim.text) for claim in result.claims.values()] == [
        (0.9, "0.90"),
        (0.001, "1e-3"),
    ]
    assert result.shortfalls == ["class 3 is weak"]
    assert result.body == "Text\n"


@pytest.mark.parametrize(
    "text", ["\n\n---\nclaims: {accuracy: 0.9}\n---\nText", "---\nclaims: {accuracy: 0.9}\n---"]
)
def test_w7_blank_first_lines_and_no_last_newline_are_fine(text: str) -> None:
    """The reference rejects both."""
    assert parse_result(text, where="r").claims["accuracy"].value == 0.9


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("93%", "'93%'"),
        ("about 0.9", "'about 0.9'"),
        (".nan", "'.nan'"),
        (".inf", "'.inf'"),
        ("", "''"),
        ("true", "'true'"),
        ("[0.9]", "''"),
        ("1e9999", "'1e9999'"),
        ("1e999", "'1e999'"),
    ],
)
def test_a_claim_that_is_no_plain_number_is_named_with_its_line(value: str, shown: str) -> None:
    """The reference crashes on `93%`."""
    with pytest.raises(UsageError) as error:
        parse_result(f"---\nclaims:\n  accuracy: {value}\n---\n", where="result.md")
    assert error.value.message.startswith(
        f"result.md:3: claims.accuracy is {shown}; expected a plain number"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Result\n\nval_bpb improved to 0.95 (-5%).\n",
        "---\nexperiment: exp-0001\n---\n",
        "---\nclaims: 0.9\n---\n",
    ],
)
def test_prose_is_no_result(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_result(text, where="result.md")
    assert error.value.code == "result_unreadable"
    assert "result.md:" in error.value.message


def test_case_50_yields_no_claim() -> None:
    with pytest.raises(UsageError, match=r"result_claim_only\.md:1: found '# Result'"):
        read_result(CASE_50)


def test_no_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_result(tmp_path / "result.md")


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.floats(allow_nan=False, allow_infinity=False),
        max_size=3,
    ),
    st.lists(st.text(max_size=20)),
)
def test_what_is_rendered_is_read(claims: dict[str, float], shortfalls: list[str]) -> None:
    text = render_result(
        experiment="exp-0001", claims=claims, summary="---\nx", shortfalls=shortfalls, by="oracle"
    )
    result = parse_result(text.encode("utf-8", "replace").decode(), where="r")
    assert [claim.value for claim in result.claims.values()] == list(
        {plain(name): value for name, value in claims.items()}.values()
    )
    assert len(result.shortfalls) == sum(1 for item in shortfalls if plain(item).strip())
