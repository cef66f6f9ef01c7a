"""From an existing scikit-learn repository to a judged experiment by `claude`, and back to what it
was.

The person types what the README says; the scripted model does what its briefing and the answers of
its tools say.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive.gateway import Said, bash, call
from tests.interactive.lab import must
from tests.interactive.sdk import FROM_PROJECT, play
from tests.interactive.sklearn_repository import (
    NEW_BODY,
    OLD_BODY,
    PEOPLE,
    PLAN,
    PREDICT,
    git,
    make_repository,
)

EXPERIMENT = ".harness/experiments/exp-0001"


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the repository but git's own."""
    files = [
        path
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts[:1]
    ]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def made(base: Path) -> Journey:
    """The repository; its people had settings of their own."""
    root = make_repository(base / "tumour study")
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps(PEOPLE), "utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Settings")
    (base / "home").mkdir()
    return Journey(root, base / "home")


def adapt(root: Path) -> Said:
    """The run logger into train.py, a predict.py, and what is not allowed: training by itself, a
    verdict by hand."""
    train = str(root / "train.py")
    return [
        call("import", "Edit", file_path=train, old_string="import joblib\n", new_string=IMPORTS),
        call("body", "Edit", file_path=train, old_string=OLD_BODY, new_string=NEW_BODY),
        call("predict", "Write", file_path=str(root / "predict.py"), content=PREDICT),
        bash("early", "python train.py"),
        call(
            "open",
            "mcp__harness__open_experiment",
            hypothesis="a forest of 20 trees",
            rationale="It is a table.",
        ),
    ]


IMPORTS = "import joblib\nfrom harness.run_logger import RunLogger\n"


@pytest.mark.slow
def test_by_claude(tmp_path: Path) -> None:
    project = made(tmp_path)
    root, before = project.root, contents(project.root)

    must(project.harness("init"))
    (root / "plan.md").write_text(PLAN, "utf-8")
    must(project.harness("plan", "check"))
    must(project.harness("plan", "approve"))
    assert not (root / "data/held_out.csv").exists()

    folder = root / EXPERIMENT
    turns = [
        [call("read", "Read", file_path=str(root / "train.py"))],
        adapt(root),
        [
            call(
                "config",
                "Write",
                file_path=str(folder / "config.yaml"),
                content="model: {kind: forest, trees: 20}\n",
            ),
            call("next", "Write", file_path=str(folder / "next.md"), content="Try more trees.\n"),
            bash("train", "harness train exp-0001"),
            bash("evaluate", "harness evaluate exp-0001"),
            call("report", "mcp__harness__evaluation_report"),
        ],
        lambda results: [
            bash(
                "result",
                f"harness experiment result exp-0001 --claim accuracy={claim(results)} --summary"
                " 'As measured.'",
            ),
            bash("gate", "harness gate check exp-0001"),
            bash(
                "held-out",
                "harness evaluate exp-0001 --split held-out && harness gate check exp-0001",
            ),
            bash("approve", "harness gate approve exp-0001 --reason 'It is good'"),
        ],
        "The gates pass; please decide in your own terminal.",
    ]
    played = play(
        root, project.home, {"PLEASE TRY A FOREST": turns}, options=FROM_PROJECT, timeout=240
    )
    assert "harness train" in played.text("early")
    failed = {
        label: played.text(label) for label in played.document["results"] if played.failed(label)
    }
    assert failed.keys() == {"early", "approve"}, "\n".join(map(str, failed.items()))
    assert "PASS" in played.text("gate")
    assert "PASS" in played.text("held-out")

    must(
        project.harness(
            "gate", "approve", "exp-0001", "--reason", "Better than guessing, and looked at"
        )
    )
    (row,) = must(project.harness("experiment", "list", "--json")).document["experiments"]
    assert (row["status"], row["verdict"], row["split"], row["evidence"]) == (
        "kept",
        "PASS",
        "held_out",
        "recomputed, session not isolated",
    )
    assert must(project.harness("ledger", "verify")).exit_code == 0
    assert (
        must(project.harness("audit", CLAUDE_CONFIG_DIR=str(project.home / "config"))).exit_code
        == 0
    )

    (vault,) = project.home.rglob("vault/held_out/*.csv")
    removed = must(project.harness("init", "--remove", "--json")).document
    assert str(vault) in str(removed["notes"])
    shutil.copy(vault, root / "data/held_out.csv")  # as the notes say
    after = {
        name: data for name, data in contents(root).items() if not name.startswith(".harness/")
    }
    assert after.keys() == before.keys() | {"predict.py", "plan.md"}
    assert {name for name in before if after[name] != before[name]} == {"train.py"}
    assert git(root, "status", "--porcelain", "--", ".claude", ".gitignore") == ""


def claim(results: dict[str, str]) -> str:
    """The number that the report says to claim; without one, what the steps before it answered."""
    report = json.loads(results["report"].splitlines()[0])
    return str(report.get("claim", results))
