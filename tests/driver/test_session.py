"""What the results of a session add up to, and the watchdog that cuts a silent one."""

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import CLIConnectionError, ProcessError, ResultMessage

from harness.contract.roles import ROLE_BY_NAME
from harness.driver.environment import SESSION, SessionFolders
from harness.driver.pulse import LONGEST_WORK_S, Pulse
from harness.driver.session import (
    SessionEnding,
    SessionSpec,
    end_session_processes,
    judge,
    run_session,
    session_processes,
)
from harness.driver.tools.definition import LONGEST_WAIT_S


def result(**changed: Any) -> ResultMessage:
    fields: dict[str, Any] = {
        "subtype": "success",
        "duration_ms": 1,
        "duration_api_ms": 1,
        "is_error": False,
        "num_turns": 2,
        "session_id": "s",
        "total_cost_usd": 0.5,
        "usage": {"input_tokens": 7, "service_tier": "standard"},
    }
    return ResultMessage(**{**fields, **changed})


@pytest.mark.parametrize(
    ("results", "error", "expected", "words"),
    [
        ([result()], None, SessionEnding.FINISHED, ""),
        ([result(), result(num_turns=3)], None, SessionEnding.FINISHED, ""),
        ([result(stop_reason="refusal", is_error=True)], None, SessionEnding.REFUSED, "declined"),
        (
            [result(subtype="error_max_turns", is_error=True)],
            None,
            SessionEnding.FAILED,
            "error_max_turns",
        ),
        (
            [result(is_error=True, api_error_status=529, result="Repeated 529")],
            None,
            SessionEnding.FAILED,
            "status 529",
        ),
        (
            [result(is_error=True, terminal_reason="aborted_streaming")],
            None,
            SessionEnding.CUT,
            "success",
        ),
        ([], ProcessError("died", exit_code=-9), SessionEnding.CUT, "outside"),
        ([], ProcessError("died", exit_code=137), SessionEnding.CUT, "outside"),
        ([], ProcessError("bad option", exit_code=1), SessionEnding.FAILED, "said on stderr"),
        ([], CLIConnectionError("no answer"), SessionEnding.FAILED, "no answer"),
        ([], None, SessionEnding.FAILED, "without a result"),
    ],
)
def test_results_and_errors_become_one_outcome(
    results: list[ResultMessage], error: Any, expected: SessionEnding, words: str
) -> None:
    judged = judge(results, error, ["said on stderr"])
    assert judged.outcome is expected
    assert words in judged.detail
    assert judged.turns == sum(item.num_turns for item in results)


def test_usage_keeps_whole_numbers_only() -> None:
    judged = judge([result()], None, [])
    assert judged.usage == {"input_tokens": 7}


def test_work_of_ours_is_a_sign_of_life() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 10.0
    assert pulse.silent_for() == 10.0
    with pulse.working():
        now[0] = 100.0
        assert pulse.silent_for() == 0.0
    now[0] = 103.0
    assert pulse.silent_for() == 3.0


def test_a_tool_of_ours_that_hangs_is_no_sign_of_life_for_ever() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 50.0
    with pulse.working("start_run"), pulse.working():
        assert pulse.at_work() == ["start_run"]
        now[0] = 50.0 + LONGEST_WAIT_S
        assert pulse.silent_for() == 0.0
        now[0] = 50.0 + LONGEST_WORK_S + 7
        assert pulse.silent_for() == 7.0
        pulse.beat()  # it told of something
        assert pulse.silent_for() == 0.0
    assert pulse.at_work() == []


def test_a_silent_cli_is_cut_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    folders = SessionFolders(outside=tmp_path / "silent")
    folders.create()
    script = (
        f"#!/bin/sh\necho $$ > '{folders.pid}'\nexport {SESSION}=silent-{tmp_path.name}\nexec sleep"
        " 600\n"
    )
    folders.launcher.write_text(script, "ascii")
    folders.launcher.chmod(0o700)
    session = f"silent-{tmp_path.name}"
    spec = SessionSpec(
        session=session,
        role=ROLE_BY_NAME["oracle"],
        system_prompt="",
        prompt="go",
        cwd=tmp_path,
        folders=folders,
        launcher=folders.launcher,
        silence_seconds=0.4,
    )
    looks = iter(range(3))  # its work goes on at first, and then no more
    outcome = run_session(spec, tools=[], hooks={}, progress=lambda: next(looks, None))
    assert next(looks, None) is None, "it was looked at more than once before it was ended"
    assert outcome.outcome is SessionEnding.CUT
    assert "no sign of life" in outcome.detail
    assert session_processes(session) == []
    assert end_session_processes(folders, session) == 0
