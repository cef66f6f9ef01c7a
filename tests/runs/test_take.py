"""What the taken runs of several experiments say of their isolation."""

import pytest

from harness.runs.take import _least


@pytest.mark.parametrize(
    ("sandboxes", "least"),
    [
        (["bwrap", "bwrap"], "bwrap"),
        (["bwrap", "landlock"], "landlock"),
        (["landlock", "bwrap"], "landlock"),
        (["bwrap", "landlock", "none"], "none"),
    ],
)
def test_the_sandbox_that_isolates_least_is_said(sandboxes: list[str], least: str) -> None:
    assert _least(sandboxes) == least
