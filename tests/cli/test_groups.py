"""A word that is no verb gets the nearest one."""

import pytest

from harness.cli.main import harness
from harness.errors import UsageError


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["experment", "list"], "`harness experiment`"),
        (["plan", "aprove"], "`harness plan approve`"),
        (["experiment", "shwo", "exp-0001"], "`harness experiment show`"),
        (["ledger", "verfy"], "`harness ledger verify`"),
    ],
)
def test_a_typo_is_told_the_nearest_verb(words: list[str], nearest: str) -> None:
    with pytest.raises(UsageError) as error:
        harness.main(words, prog_name="harness", standalone_mode=False)
    typed = words[0] if len(words) == 2 and words[0] == "experment" else words[1]
    assert error.value.message.startswith(f"{typed!r} is no command of `harness")
    assert error.value.hint == f"Did you mean {nearest}?"


def test_a_word_that_is_near_nothing_gets_no_suggestion() -> None:
    with pytest.raises(UsageError) as error:
        harness.main(["xyzzy"], prog_name="harness", standalone_mode=False)
    assert error.value.message.startswith("'xyzzy' is no command of `harness`; expected one of ")
    assert error.value.hint == "See `harness --help`."
