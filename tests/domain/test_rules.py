"""Rules as data: which texts are rules, and what holds them."""

import pytest

from harness.detectors.kinds import KINDS
from harness.domain.causes import CAUSES, Cause, ending_code
from harness.domain.rules import Form, read_rule
from harness.domain.statuses import Verdict
from harness.errors import UsageError
from harness.gates.findings import FINDINGS


@pytest.mark.parametrize(
    "text",
    [
        "deny command pip install *",
        "deny path data/raw/*",
        "config optimizer.lr below 0.1",
        "config epochs above 3.0",
        "file notes/reading.md",
    ],
)
def test_a_rule_is_read_as_it_is_written(text: str) -> None:
    assert read_rule(text).words == text
    assert read_rule(read_rule(text).words) == read_rule(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "deny",
        "deny command *",
        "deny path **",
        "deny path /etc/passwd",
        "deny path ../other",
        "deny network example.org",
        "config lr below",
        "config lr below fast",
        "config lr below nan",
        "config lr equals 1",
        "file ../../x",
        "allow command rm",
        "deny command a\nb",
    ],
)
def test_another_text_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="no rule") as error:
        read_rule(text)
    assert "config KEY below NUMBER" in error.value.hint


@pytest.mark.parametrize(
    ("value", "holds"), [(0.05, True), (0.1, False), (1, False), ("0.05", False), (True, False)]
)
def test_a_bound_holds_for_numbers_alone(value: object, holds: bool) -> None:
    rule = read_rule("config lr below 0.1")
    assert (rule.form, rule.holds(value)) == (Form.BELOW, holds)


def test_each_finding_that_blocks_and_each_alarm_has_a_class_and_no_note_has_one() -> None:
    blocking = {code for code, kind in FINDINGS.items() if kind.outcome is not Verdict.PASS}
    notes = set(FINDINGS) - blocking
    assert blocking | set(KINDS) <= set(CAUSES)
    assert not notes & set(CAUSES)


@pytest.mark.parametrize(
    ("reason", "code", "cause"),
    [
        ("crashed: ValueError: no such column", "crashed", Cause.CODE),
        ("crashed: torch.OutOfMemoryError: CUDA out of memory", "out_of_memory", Cause.RESOURCES),
        ("never started: No such file: train", "never_started", Cause.CODE),
        ("stopped by the alarm non_finite at row 3: loss", "failed_alarm", Cause.OPTIMISATION),
        ("exit code 3; stderr ends: no", "exit_code", Cause.CODE),
        ("its supervisor died before the run had ended", "lost", Cause.RESOURCES),
        ("the limit of 2 minutes", "at_limit", Cause.RESOURCES),
    ],
)
def test_how_a_run_ended_says_what_kind_of_failure_it_was(
    reason: str, code: str, cause: Cause
) -> None:
    assert (ending_code(reason), CAUSES[ending_code(reason)]) == (code, cause)
