"""The same words and the same training again, through the real CLI: told before they are run, each a
decision; the agent goes another way, or says why it trains all the same."""

from pathlib import Path
from typing import Any

from toy_project import builder, oracle, play, tool, write_scenario

from harness.domain.statuses import DecisionKind, SandboxKind
from harness.ledger.project import Project
from tests.centroids import TRAIN

WRONG = TRAIN.replace("np.save(path, centroids)", "np.save(path, centroids[::-1])")
"""Below every tier, so that a second experiment follows."""
SAME = "model: {kind: centres}\nnumber: 1\n"
OTHER = "model: {kind: centres}\nnumber: 2\n"


def again() -> dict[str, Any]:
    """A builder that repeats experiment 1, is told, changes its configuration and trains."""
    session = builder(2, train=WRONG)
    turns = session["turns"]
    for call in turns[2]["tools"]:
        if call["id"] == "write_config":
            call["input"]["content"] = SAME
    path = "${open.folder}/config.yaml"
    turns[4:4] = [
        {"tools": [tool("other", "Write", file_path=path, content=OTHER)]},
        {"tools": [tool("start_2", "mcp__harness__start_run")]},
    ]
    turns[4]["expect"] = "trained the same code, command, configuration and data"
    return session


def test_a_dead_end_is_told_before_it_is_trained(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    sessions = (builder(1, train=WRONG), oracle(1), again(), oracle(2))
    scenario = write_scenario(tmp_path / "s.yaml", *sessions)
    play(project, scenario, sandbox=sandbox)
    ledger = project.ledger
    second = ledger.experiments()[1]
    told = [one for one in ledger.decisions() if one.kind is DecisionKind.DEAD_END]
    assert [(one.context, one.choice) for one in told] == [
        (
            "exp-0002 would repeat exp-0001 (idea_tried_before).",
            "Told before anything is trained.",
        ),
        (
            "exp-0002 would repeat exp-0001 (configuration_tried_before).",
            "Not started: it was told first.",
        ),
    ]
    assert "exp-0001" in told[1].reason
    configs = {run.config for run in ledger.runs(second.id)}
    assert len(configs) == 1
    assert configs.isdisjoint({run.config for run in ledger.runs("exp-0001")})
