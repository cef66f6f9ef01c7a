"""A session that finds out nothing new is told, then ended; each is a decision with evidence."""

from typing import Any

import anyio
import pytest

from harness.contract.roles import ROLE_BY_NAME
from harness.domain.statuses import DecisionKind, SandboxKind
from harness.driver.callbacks import Guard
from harness.driver.circles import END_AT, NUDGE_AT
from harness.driver.tool_context import ToolContext
from harness.driver.watchdog import progress, silent
from tests.world import World


class Talk:
    """A session's calls, as the hooks see them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.context = ToolContext(
            world.project,
            session="build-1-1-abc",
            role=ROLE_BY_NAME["model-builder"],
            sandbox=SandboxKind.BWRAP,
        )
        self.guard = Guard(self.context, snapshot=dict)

    def call(self, answer: Any, tool: str = "Read", **given: Any) -> dict[str, Any]:
        payload = {
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": given or {"file_path": "plan.md"},
            "tool_response": answer,
        }
        said: dict[str, Any] = anyio.run(self.guard.after_tool, payload, "t-1", None)
        return said

    def decisions(self) -> list[tuple[DecisionKind, str]]:
        return [(one.kind, one.choice) for one in self.world.project.ledger.decisions()]


@pytest.fixture
def talk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    world = World.make(tmp_path_factory.mktemp("watchdog"))
    yield Talk(world)
    world.project.close()


def test_the_same_answer_again_and_again_is_told_then_ends_the_session(talk: Talk) -> None:
    said = [talk.call({"file": "the same"}) for _ in range(END_AT + 1)]
    assert all(answer == {} for answer in said[:NUDGE_AT])
    told = said[NUDGE_AT]["hookSpecificOutput"]["additionalContext"]
    assert "brought the answers that you had" in told
    assert "Read" in told
    assert said[NUDGE_AT + 1 : END_AT] == [{}] * (END_AT - NUDGE_AT - 1)
    assert said[END_AT]["continue_"] is False
    assert talk.guard.ended.startswith("talked in circles")
    assert talk.decisions() == [
        (DecisionKind.WATCHDOG, "Nudge it."),
        (DecisionKind.WATCHDOG, "End it; its step begins again in a fresh session."),
    ]
    # Its hand-off is written when it has ended: tests/scenarios/test_watchdog_scenario.py.
    assert talk.world.project.ledger.hand_offs() == []


def test_a_new_answer_is_progress(talk: Talk) -> None:
    for number in range(40):
        talk.call({"row": number // NUDGE_AT})
    assert talk.decisions() == []


def test_a_fact_since_the_nudge_is_progress(talk: Talk) -> None:
    for _ in range(NUDGE_AT + 1):
        talk.call("same")
    talk.world.open()
    said = [talk.call("same") for _ in range(END_AT)]
    assert not any("continue_" in answer for answer in said)
    assert talk.guard.ended == ""


def test_asking_for_a_run_that_goes_on_is_no_circle(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.context.current = talk.world.open().id
    monkeypatch.setattr(talk.context, "is_running", lambda _experiment: True)
    for _ in range(3 * END_AT):
        talk.call({"state": "running"}, tool="mcp__harness__run_status")
    assert talk.decisions() == []


def test_answers_of_any_form_are_compared(talk: Talk) -> None:
    for _ in range(NUDGE_AT):
        assert talk.call([{"type": "text", "text": object.__name__}, None, 1.5]) == {}
    assert talk.call([{"type": "text", "text": object.__name__}, None, 1.5]) != {}


def test_rows_and_runs_of_its_experiment_are_the_progress_of_a_silent_session(talk: Talk) -> None:
    context, world = talk.context, talk.world
    assert progress(context) is None
    context.current = world.open().id
    before = progress(context)
    world.train(context.current, (0.02,))
    trained = progress(context)
    assert trained != before
    with world.run_path(context.current, "metrics").open("a") as rows:
        rows.write("{}\n")
    assert progress(context) != trained


@pytest.mark.parametrize(
    ("at_work", "said"),
    [
        ((), "No message, and no tool or hook of the harness at work, for 900 s; and in the last"),
        (("run_status", "start_run"), "run_status and start_run did not answer, and no message"),
    ],
)
def test_a_silent_session_is_ended_with_the_name_of_what_did_not_answer(
    talk: Talk, at_work: tuple[str, ...], said: str
) -> None:
    silent(talk.context, 900.0, at_work)
    (one,) = talk.world.project.ledger.decisions()
    assert one.reason.startswith(said)
