"""What a training is told that missed a file of the project."""

from pathlib import Path

from harness.artifacts.code_snapshot import Snapshot
from harness.domain.sandbox import Placed
from harness.runs.absent import absent_findings
from harness.runs.workspace import Workspace
from tests.gates.evidence import run


def test_the_plans_table_is_read_where_the_harness_says_and_never_declared(tmp_path: Path) -> None:
    """Declared as readable, the table would bring rows into training that were split off it."""
    for name in ("train.csv", "other.csv"):
        (tmp_path / name).write_text("x,y\n")
    workspace = Workspace(
        path=tmp_path / "work",
        root=tmp_path,
        moves=True,
        read_only=(),
        given=("train.train.csv",),
        run_dir=Placed(path=tmp_path / "run", source=tmp_path / "run"),
    )
    snapshot = Snapshot(hash="h", files={"train.py": "1"}, links={})
    told = {}
    for name in ("train.csv", "other.csv"):
        stderr = [f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'"]
        (told[name],) = absent_findings(run(1), stderr, workspace, snapshot, table="train.csv")
    stderr = ["FileNotFoundError: [Errno 2] No such file or directory: 'data/all.csv'"]
    split = {"table": "data/all.train.csv", "moved": {"data/all.csv"}}
    (moved,) = absent_findings(run(1), stderr, workspace, snapshot, **split)
    assert "was split and moved into the vault" in moved.message
    assert "data/all.train.csv" in moved.hint
    assert "HARNESS_TRAIN" in moved.hint
    assert "which is the plan's table" in told["train.csv"].message
    assert "HARNESS_TRAIN" in told["train.csv"].hint
    assert "readable" not in told["train.csv"].hint
    assert "readable" in told["other.csv"].hint
