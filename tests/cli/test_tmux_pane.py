"""The pane beside a run: opened inside tmux, closed at the end, and never in the run's way."""

import os
from pathlib import Path

import pytest

from harness.cli.tmux_pane import watched_beside


def fake_tmux(folder: Path, answer: str) -> dict[str, str]:
    """A tmux that notes how it is called; the environment of a pane."""
    program = folder / "tmux"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/calls"\n{answer}\n')
    program.chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TMUX": "/tmp/x,1,0",
        "TMUX_PANE": "%3",
        "XDG_STATE_HOME": "/s t",
    }


def test_a_pane_follows_the_project_for_as_long_as_the_run_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = fake_tmux(tmp_path, 'echo "%9"')
    monkeypatch.setenv("PATH", environment["PATH"])
    with watched_beside(tmp_path, environment, wanted=True):
        (opened,) = (tmp_path / "calls").read_text().splitlines()
        assert opened.startswith("split-window -h -d -P -F #{pane_id}")
        assert "-t %3 " in opened
        assert "'XDG_STATE_HOME=/s t'" in opened
        assert opened.endswith(f"-m harness watch --follow --project {tmp_path}")
    assert (tmp_path / "calls").read_text().splitlines()[1:] == ["kill-pane -t %9"]


def test_a_run_does_not_depend_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = fake_tmux(tmp_path, "echo no space for new pane >&2; exit 1")
    monkeypatch.setenv("PATH", environment["PATH"])
    done = []
    for given, wanted in ((environment, True), (environment, False), ({}, True)):
        with watched_beside(tmp_path, given, wanted=wanted):
            done.append(wanted)
    assert done == [True, False, True]
    assert capsys.readouterr().err == "no dashboard: tmux refused: no space for new pane.\n"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
