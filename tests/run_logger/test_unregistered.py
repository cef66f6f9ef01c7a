"""The same train.py everywhere: outside `harness train` the logger writes to ./harness-runs/, says so in
one line, and nothing of it is evidence."""

import json
import multiprocessing.process
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.artifacts.code_snapshot import take_snapshot
from harness.clock import ManualClock
from harness.domain.variables import UNREGISTERED
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.run_logger.ranks import is_other, rank_of

REPOSITORY = Path(__file__).parents[2]
TRAIN = """import sys
from harness.run_logger import RunLogger
with RunLogger.from_environment() as log:
    log.start(total_epochs=2)
    for epoch in range(2):
        log.epoch(epoch, {"loss": 1.0 / (epoch + 1)})
    path = log.checkpoint_dir / "model.txt"
    path.write_text("weights")
    log.checkpoint_saved(path, epoch=1, final=True)
    print(log.registered, log.seed)
"""


def typed(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """`python train.py`, as in a debugger or a CI job."""
    (folder / "train.py").write_text(TRAIN)
    return subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_training_outside_the_harness_is_logged_and_says_that_it_counts_for_nothing(
    tmp_path: Path,
) -> None:
    done = typed(tmp_path)
    assert done.stdout == "False 0\n"
    (folder,) = (one for one in (tmp_path / UNREGISTERED).iterdir() if one.is_dir())
    assert done.stderr == (
        f"harness: unregistered run, logged to harness-runs/{folder.name}; it counts for no"
        " experiment. To count: `harness train EXP -- python train.py`.\n"
    )
    start, *_, end = rows(folder)
    assert (start["registered"], start["run"]) == (False, f"unregistered/{folder.name}")
    assert end["status"] == "completed"
    assert (folder / "checkpoints/model.txt").is_file()
    typed(tmp_path, HARNESS_SEED="7")
    assert len(list((tmp_path / UNREGISTERED).glob("*/metrics.jsonl"))) == 2


def test_it_is_no_code(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    typed(root)
    typed(root / "src")
    plain = take_snapshot(root, tmp_path / "objects")
    assert sorted(plain.files) == ["src/train.py", "train.py"]
    git = ("git", "-C", str(root))
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "status", "--porcelain", "-uall"], capture_output=True, text=True, check=True
    )
    assert sorted(line.split()[1] for line in listed.stdout.splitlines()) == sorted(plain.files)
    subprocess.run([*git, "add", "-f", "."], check=True)  # also where somebody tracks it
    assert take_snapshot(root, tmp_path / "objects").files == plain.files


def test_in_a_notebook_the_line_names_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = ["python", "-m", "ipykernel_launcher", "-f", "/run/kernel-1.json"]
    with RunLogger.from_environment({}, ManualClock(), command=kernel) as log:
        log.epoch(0, {"loss": 1.0})
    assert "`harness train EXP -- python train.py`" in capsys.readouterr().err


def test_where_nothing_can_be_written_it_logs_to_the_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / UNREGISTERED).write_text("a file is in the way")
    with RunLogger.from_environment({}, ManualClock()) as log:
        log.epoch(0, {"loss": 1.0})
    folder = log.checkpoint_dir.parent
    assert not folder.is_relative_to(tmp_path)
    assert str(folder) in capsys.readouterr().err
    assert rows(folder)[-1]["event"] == "end"


@pytest.mark.parametrize(
    "given",
    [
        {"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "2"},  # torchrun, accelerate: second node
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
        {"OMPI_COMM_WORLD_RANK": "1"},
        {"LOCAL_RANK": "1"},  # Lightning's own processes
        {"LOCAL_RANK": "0", "NODE_RANK": "1"},
    ],
)
def test_other_ranks_are_silent(
    given: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with RunLogger.from_environment(given, ManualClock()) as log:
        log.epoch(0, {"loss": 1.0})
        log.checkpoint_saved("nowhere")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""
    first = {
        name: "0" if "SIZE" not in name and "NTASKS" not in name else value
        for name, value in given.items()
    }
    with RunLogger.from_environment(first, ManualClock()) as log:
        log.epoch(0, {"loss": 1.0})
    assert len(list(tmp_path.glob("*/*/metrics.jsonl"))) == 1
    assert "unregistered run" in capsys.readouterr().err


def test_processes_of_one_launch_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        RunLogger.from_environment({"RANK": rank, "WORLD_SIZE": "2"}, ManualClock())
        for rank in "01"
    )
    assert first.checkpoint_dir == second.checkpoint_dir
    assert second.checkpoint_dir.is_dir()


def test_one_parents_next_launch_is_another_run_and_a_restart_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def launched(**more: str) -> Path:
        first, second = (
            RunLogger.from_environment({"RANK": rank, "WORLD_SIZE": "2", **more}, ManualClock())
            for rank in "01"
        )
        assert first.checkpoint_dir == second.checkpoint_dir
        first.epoch(0, {"loss": 1.0})
        first.end("failed")
        return first.checkpoint_dir.parent

    begun = launched()
    later = launched()
    assert later != begun
    assert launched(TORCHELASTIC_RESTART_COUNT="1") == later
    events = [[row["event"] for row in rows(folder)] for folder in (begun, later)]
    assert [found.count("attempt") for found in events] == [0, 1]
    assert launched() not in (begun, later)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"MASTER_PORT": "29500"}, {"MASTER_PORT": "29501"}),
        (
            {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
            {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"},
        ),
        ({"PMIX_NAMESPACE": "a/1"}, {"PMIX_NAMESPACE": "a/2"}),
    ],
)
def test_two_launches_of_one_parent_at_once_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: dict[str, str], other: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [
        RunLogger.from_environment(
            {"RANK": rank, "WORLD_SIZE": "2", **launched}, ManualClock()
        ).checkpoint_dir.parent
        for launched in (one, other)  # none has ended
        for rank in "01"
    ]
    assert folders[0] == folders[1] != folders[2] == folders[3]
    assert {folder.parent for folder in folders} == {tmp_path / UNREGISTERED}


def test_a_restart_of_torchrun_on_another_port_stays_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def launched(port: str, restarts: str) -> Path:
        given = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": port}
        given |= {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": restarts}
        return RunLogger.from_environment(given, ManualClock()).checkpoint_dir

    assert launched("29500", "0") == launched("29501", "1")


def test_a_process_of_torch_spawn_knows_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrapped() -> None: ...

    wrapped.__module__ = "torch.multiprocessing.spawn"
    for rank in (0, 1):
        process = SimpleNamespace(_target=wrapped, _args=(print, rank, (), "error"))
        monkeypatch.setattr(multiprocessing.process, "current_process", lambda one=process: one)
        assert rank_of({}) == rank
    assert rank_of({"RANK": "5"}) == 5


def test_what_torch_distributed_says_holds_once_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(
        sys.modules,
        "torch.distributed",
        SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: bool(started),
            get_rank=lambda: started[0],
        ),
    )
    assert not is_other()
    log = RunLogger.from_environment({}, ManualClock())
    started.append(1)
    log.epoch(0, {"loss": 1.0})
    assert not (log.checkpoint_dir.parent / "metrics.jsonl").exists()
    started[0] = 0
    log.epoch(0, {"loss": 1.0})
    assert (log.checkpoint_dir.parent / "metrics.jsonl").exists()


def test_a_seed_that_is_no_number_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="HARNESS_SEED is 'abc'") as refused:
        RunLogger.from_environment({"HARNESS_SEED": "abc"}, ManualClock())
    assert "HARNESS_SEED=1" in refused.value.hint
    assert list(tmp_path.iterdir()) == []
