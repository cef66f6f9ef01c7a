"""In the sandbox of `harness claude` a person's verb is the judge's to put to the person; hooks let
it through there, and nowhere else."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hook_project import HookProject

from harness.judge import client

ASKED = ("harness plan approve", "harness gate reject exp-0002 --reason 'No gain.'")
NOT_ASKED = ("harness ledger import", "harness init", "cd /; harness init")


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a sandbox whose judge takes every receipt."""
    place = tmp_path / "judge"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                asked, _ = listener.accept()
            except OSError:
                return
            with asked:
                client.receive(asked)
                client.send(asked, client.EXIT, b"0")

    threading.Thread(target=serve, daemon=True).start()
    yield {"HARNESS_JUDGE": str(place), "HARNESS_JUDGE_SANDBOX": "bwrap"}
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.mark.parametrize("command", ASKED)
def test_it_is_let_through_inside_alone(
    project: HookProject, judge: dict[str, str], command: str
) -> None:
    plain = project.shell(command)
    assert plain.denied
    assert "in a terminal of their own" in plain.errors
    assert "In `harness claude` you may run it, and they are asked." in plain.errors
    project.environment |= judge
    assert not project.shell(command).denied


def test_a_session_inside_is_told_of_each(project: HookProject, judge: dict[str, str]) -> None:
    assert "Asked of the person" not in project.event("SessionStart", source="startup").context
    project.environment |= judge
    told = project.event("SessionStart", source="startup").context
    verbs = [" ".join(verb) for verb in project.snapshot["asked_verbs"]]
    assert len(verbs) > 2
    listed = ", ".join(f"`harness {verb}`" for verb in verbs)
    assert f"Asked of the person, on their terminal: {listed}." in told


def test_a_session_inside_is_told_who_is_at_work(
    project: HookProject, judge: dict[str, str]
) -> None:
    project.environment |= judge
    assert "As it began" not in project.event("SessionStart", source="startup").context
    project.environment["HARNESS_JUDGE_BESIDE"] = "A loop is at work."
    told = project.event("SessionStart", source="startup").context
    assert ". As it began: A loop is at work.\n" in told


@pytest.mark.parametrize("command", NOT_ASKED)
def test_the_others_stay_denied_inside(
    project: HookProject, judge: dict[str, str], command: str
) -> None:
    project.environment |= judge
    answer = project.shell(command)
    assert answer.denied
    assert "harness claude" not in answer.errors
