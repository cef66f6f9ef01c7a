"""From a folder with data to a judged experiment in one session: Claude drafts the plan, a person
approves it in a terminal beside it, and one command tries an idea."""

import shutil
from pathlib import Path

import pytest

from harness.model_gateway.wire import tool_results
from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import PLAN, Journey, make_project
from tests.interactive.gateway import Turn, bash, call, open_gateway, prompts
from tests.interactive.lab import must
from tests.interactive.sklearn_repository import git
from tests.interactive.tmux import interactive

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)

EXPERIMENT = ".harness/experiments/exp-0001"
DRAFT = "plans/plan.draft.md"
WORKING_S = 240.0
"""A whole plan or experiment on a busy machine."""


@pytest.fixture
def empty(tmp_path: Path) -> Journey:
    """Data, and the harness; no plan but the form, no code."""
    journey = make_project(tmp_path / "my project", tmp_path / "home")
    for name in ("plan.md", "train.py", "predict.py"):
        (journey.root / name).unlink()
    git(journey.root, "init", "-q", "-b", "main")
    must(journey.harness("init"))
    return journey


IDEA = "centroids tell the blobs apart"


def drafting(root: Path) -> list[Turn]:
    plan, wrong = str(root / "plan.md"), PLAN.replace("maximize", "up")
    return [
        [call("form", "Read", file_path=plan)],
        [call("draft", "Write", file_path=plan, content=wrong)],
        [bash("wrong", "harness plan check")],
        [call("mend", "Edit", file_path=plan, old_string="up", new_string="maximize")],
        [bash("right", "harness plan check")],
        "Please type in your own terminal: harness plan approve plan.md",
    ]


def trying(root: Path) -> list[Turn]:
    return [
        [bash("late", "echo '# more' >> plan.md")],
        [
            call("train.py", "Write", file_path=str(root / "train.py"), content=TRAIN),
            call("predict.py", "Write", file_path=str(root / "predict.py"), content=PREDICT),
        ],
        [bash("try", f"harness try '{IDEA}' --set model=centroids")],
        [bash("look", "harness watch --once --wait")],
        [call("next", "Write", file_path=str(root / DRAFT), content=PLAN)],
        "TRIED-AND-JUDGED",
    ]


@pytest.mark.slow
def test_from_data_to_a_judged_experiment_in_one_session(empty: Journey) -> None:
    root = empty.root
    script = {
        "Draft this project's plan": drafting(root),
        "Try this idea in one experiment": trying(root),
    }
    with (
        open_gateway(script) as gateway,
        interactive(root, empty.home, gateway, "--permission-mode", "acceptEdits") as terminal,
    ):
        asked_for, line = "/harness:plan three blobs, from data/", "harness plan approve plan.md"
        terminal.say(asked_for, until=line, patience=WORKING_S)
        assert (root / "plan.md").read_text("utf-8") == PLAN
        shown = empty.harness("plan", "approve", "plan.md")
        assert (shown.exit_code, "oracle: metric=accuracy" in shown.stderr) == (2, True)
        confirming = shown.stderr.rpartition("`harness ")[2].split("`")[0]
        must(empty.harness(*confirming.split()))
        tried = "TRIED-AND-JUDGED"
        terminal.say("/harness:try nearest centroids", until=tried, patience=WORKING_S)
    assert gateway.failure is None
    asked = [text for request in gateway.requests for text in prompts(request.body)]
    assert any("The person says: three blobs, from data/" in text for text in asked)
    assert any("each line as it stands" in text for text in asked)

    told = {}
    for request in gateway.requests:
        told |= tool_results(request.body)
    assert "direction" in told["wrong"]
    assert "plan.md can be approved" in told["right"]
    assert "`harness plan approve plan.md`" in told["right"]
    assert f"Write the next version to {DRAFT}" in told["late"]
    tried = " ".join(told["try"].split())
    for words in ("exp-0001 opened in", f"experiment exp-0001 {IDEA}", "verdict PASS", "next: "):
        assert words in tried
    assert "completed" in told["look"]
    assert (root / "plan.md").read_text("utf-8") == PLAN
    config = (root / EXPERIMENT / "config.yaml").read_text("utf-8")
    assert config.splitlines()[1:] == ['command: "python train.py"', "model: centroids"]
    assert (root / DRAFT).exists()

    (row,) = must(empty.harness("experiment", "list", "--json")).document["experiments"]
    codes = {one["code"] for one in row["findings"]}
    assert row["verdict"] == "PASS"
    assert codes & {"protected_path_changed", "plan_changed", "config_changed"} == set()
    audit = empty.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(empty.home / "config"))
    assert audit.document["unguarded"] == []
    assert [one for one in audit.document["changes"] if "plan" in one["path"]] == []
