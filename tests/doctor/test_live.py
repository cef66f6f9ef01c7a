"""The doctor starts the Claude Code CLI itself: what it proves that no look at files can, and what
it leaves behind."""

import contextlib
import json
import secrets
import tempfile
from pathlib import Path

import psutil
import pytest

from harness.doctor.claude_cli import bundled_program, find_clis
from harness.doctor.report import DoctorCheck, Report
from tests.doctor.made import Made

pytestmark = pytest.mark.skipif(
    bundled_program() is None, reason="the installed Agent SDK brings no CLI"
)


def live(report: Report) -> DoctorCheck:
    (check,) = [check for check in report.checks if check.name == "cli_denies"]
    return check


def started_with(token: str) -> list[int]:
    """The processes whose PATH holds `token`: all that a probe starts has the PATH that the doctor
    was given."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            found += [process.pid] if token in process.environ().get("PATH", "") else []
    return found


def test_the_cli_denies_by_our_hook_and_leaves_no_trace(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = made.files()
    token = secrets.token_hex(16)
    report = made.doctor(start_cli=True, PATH=f"/usr/bin:/bin:/{token}")
    assert live(report).ok is True, live(report).message
    assert not report.broken
    assert made.files() == before
    assert list(tmp_path.iterdir()) == []
    assert started_with(token) == []


def test_hooks_that_are_switched_off_are_seen_by_the_call_that_passes(made: Made):
    made.write({**made.settings(), "disableAllHooks": True})
    before = made.files()
    report = made.doctor(start_cli=True)
    assert (live(report).ok, report.broken) == (False, True)
    assert "did not call our hook" in live(report).message
    assert made.files() == before, "the probe's write must not have happened"


def test_one_setting_that_is_not_valid_takes_every_hook_with_it(made: Made):
    """Nothing in our own entries is wrong, and the CLI says nothing: the file names the setting,
    and starting the CLI shows what it costs."""
    made.write({**made.settings(), "permissions": "all"})
    report = made.doctor(start_cli=True)
    assert [check.name for check in report.checks if check.broken] == [
        "settings_accepted",
        "cli_denies",
    ]
    assert "permissions" in live(report).message
    assert "Correct that setting" in live(report).hint


def test_a_missing_hook_is_told_from_a_denial(made: Made):
    (made.hooks / "run.py").unlink()
    report = made.doctor(start_cli=True)
    assert live(report).ok is False
    assert "hook not found" in live(report).message


def test_a_cli_that_is_none_says_nothing_about_the_guards(made: Made):
    cli = made.home / "bin/claude"
    cli.parent.mkdir()
    cli.write_text("#!/bin/sh\necho '2.9.1 (Claude Code)'\n")
    cli.chmod(0o755)
    report = made.doctor(start_cli=True, PATH=f"{cli.parent}:/usr/bin:/bin")
    assert (live(report).ok, report.broken) == (None, False)
    assert str(cli) in live(report).message


def test_the_persons_cli_comes_before_the_one_of_the_sdk(made: Made):
    usual = made.home / ".local/bin/claude"
    usual.parent.mkdir(parents=True)
    usual.write_text("#!/bin/sh\n")
    found = find_clis(made.environment, made.home)
    assert [(cli.program, cli.bundled) for cli in found] == [
        (usual, False),
        (bundled_program(), True),
    ]


def test_without_a_cli_it_says_so_and_nothing_is_dead(made: Made, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("harness.doctor.claude_cli.bundled_program", lambda: None)
    report = made.doctor(start_cli=True)
    assert (live(report).ok, report.broken) == (None, False)
    assert "No Claude Code CLI" in live(report).message
    assert json.dumps(report.document())
