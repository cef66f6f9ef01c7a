"""What a training is told that missed a file of the project."""

from pathlib import Path

from harness.artifacts.code_snapshot import Snapshot
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.runs.absent import absent_findings
from harness.runs.workspace import Workspace

RUN = Run(
    id="run-01",
    experiment="exp-0001",
    seed=1,
    attempt=1,
    status=RunStatus.FAILED,
    argv=("python", "train.py"),
    code="c",
    data={},
    environment={},
    sandbox="none",
    token="t",
    session=None,
    registered_at="2026-01-01T00:00:00Z",
)


def test_the_plans_table_is_read_where_the_harness_says_and_never_declared(tmp_path: Path) -> None:
    """Declared as readable, the table would bring rows into training that were split off it."""
    for name in ("train.csv", "other.csv"):
        (tmp_path / name).write_text("x,y\n")
    workspace = Workspace(
        path=tmp_path / "work", root=tmp_path, moves=True, read_only=(), given=("train.train.csv",)
    )
    snapshot = Snapshot(hash="h", files={"train.py": "1"}, links={})
    told = {}
    for name in ("train.csv", "other.csv"):
        stderr = [f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'"]
        (told[name],) = absent_findings(RUN, stderr, workspace, snapshot, table="train.csv")
    assert "which is the plan's table" in told["train.csv"].message
    assert "HARNESS_TRAIN" in told["train.csv"].hint
    assert "readable" not in told["train.csv"].hint
    assert "readable" in told["other.csv"].hint
