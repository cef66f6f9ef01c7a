"""`train`: registered first, one run a seed, what is collected, what is refused, and the logger
that was bypassed."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer, Unconfined, wait_until

from harness.artifacts.code_snapshot import read_snapshot
from harness.artifacts.content import hash_path
from harness.domain.statuses import ExperimentStatus, RunStatus, SandboxKind
from harness.errors import NotFoundError, RefusedError, RunError
from harness.evaluation.scores import counted_runs
from harness.ledger.facts import RunEnded, RunStarted, local_job
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.plans.approved import seeds_for
from harness.runs.launchers.local import LocalLauncher
from harness.runs.lock import supervising

REPOSITORY = Path(__file__).parents[2]


def codes(report: object) -> list[str]:
    return [finding.code for finding in report.findings]  # type: ignore[attr-defined]


def test_one_run_a_seed_of_the_harness_own_choice(project: Project, run_training: Trainer) -> None:
    report = run_training()
    assert report.ok, report.findings
    assert [run.seed for run in report.runs] == seeds_for(project.plan().basis, 2)
    assert [(run.id, run.status, run.attempt) for run in report.runs] == [
        ("run-01", RunStatus.COMPLETED, 1),
        ("run-02", RunStatus.COMPLETED, 1),
    ]
    assert report.findings == []
    assert project.ledger.experiment("exp-0001").status is ExperimentStatus.RUNNING
    weights = [
        (project.layout.run("exp-0001", run.id) / "checkpoints/weights.bin").read_text()
        for run in report.runs
    ]
    assert weights == [str(run.seed) for run in report.runs]


def test_what_is_registered_and_collected(
    project: Project, run_training: Trainer, root: Path
) -> None:
    run = run_training(argv=["python", "train.py", "--x"], seeds=[7], session="s-0001").runs[0]
    layout = project.layout
    assert (run.argv, run.seed, run.sandbox, run.session) == (
        ("python", "train.py", "--x"),
        7,
        "none",
        "s-0001",
    )
    assert run.code == read_snapshot(layout.experiment("exp-0001", "code")).hash
    assert run.data["train"] == hash_path(root / "data/train.npz")
    described = run.environment
    assert described["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert described["packages"]["numpy"]
    assert described["threads"] == {"OMP_NUM_THREADS": "1"}
    assert described["cpus"]
    assert described["cpu"]
    assert described["memory_bytes"] > 0
    assert set(run.files) == {"run", "metrics", "status", "stdout", "stderr"}
    for name, expected in run.files.items():
        assert hash_path(layout.run("exp-0001", run.id, name)) == expected
    assert run.rows == 6
    assert (layout.run("exp-0001", run.id) / "stdout.log").read_text() == "trained\n"
    told = json.loads(layout.run("exp-0001", run.id, "run").read_text())
    assert (told["status"], told["rows"], told["exit_code"], told["seed"]) == (
        "completed",
        6,
        0,
        7,
    )
    [checkpoint] = project.ledger.checkpoints("exp-0001", run.id)
    assert (checkpoint.epoch, checkpoint.final, checkpoint.bytes) == (2, True, 1)
    assert checkpoint.id == hash_path(root / checkpoint.path)
    start = json.loads(layout.run("exp-0001", run.id, "metrics").read_text().splitlines()[0])
    assert hashlib.sha256(start["token"].encode()).hexdigest() == run.token
    kinds = [
        fact.kind
        for fact in project.ledger.facts()
        if fact.kind.startswith(("run_", "checkpoint_"))
    ]
    order = ["run_registered", "run_started", "checkpoint_recorded", "run_ended"]
    assert list(dict.fromkeys(kinds)) == order, (
        "once while it ran, and at its end as the final one"
    )


def test_completed_seeds_are_not_repeated_until_the_code_changes(
    project: Project, run_training: Trainer
) -> None:
    assert run_training(seeds=[1]).ok
    second = run_training(seeds=[1, 2])
    assert [(run.id, run.seed) for run in second.runs] == [("run-01", 1), ("run-02", 2)]
    assert len(project.ledger.runs("exp-0001")) == 2
    changed = run_training(GOOD + "\n# another thought\n", seeds=[1])
    assert [(run.id, run.seed, run.attempt) for run in changed.runs] == [("run-03", 1, 2)]


def test_an_experiment_that_changed_and_changed_back_is_trained_as_a_whole(
    project: Project, run_training: Trainer
) -> None:
    """The gate judges the newest run's code and command: what ran before something else is no part
    of it."""
    first = ["python", "train.py", "--first"]
    assert run_training(argv=first, seeds=[1, 2]).ok
    assert run_training(seeds=[1]).ok
    report = run_training(argv=first, seeds=[1, 2])
    assert [(run.id, run.seed) for run in report.runs] == [("run-04", 1), ("run-05", 2)]


def test_a_seed_whose_newest_run_failed_is_not_done(
    project: Project, run_training: Trainer
) -> None:
    done = run_training(seeds=[1]).runs[0]
    project.ledger.register_run(
        experiment="exp-0001",
        seed=1,
        argv=list(done.argv),
        code=done.code,
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
    )
    me = {"pid": 1, "boot": "b", "started": 1.0}
    named = {"experiment": "exp-0001", "run": "run-02"}
    project.ledger.append(RunStarted(supervisor=me, job=local_job(me), **named))
    gone = {"experiment": "exp-0001", "run": "run-02", "exit_code": 1, "seconds": 1.0, "rows": 0}
    project.ledger.append(RunEnded(status="failed", reason="crashed", **gone))
    assert [run.id for run in run_training(seeds=[1]).runs] == ["run-03"]


def test_the_environment_of_training_is_an_allow_list(
    project: Project, run_training: Trainer, root: Path
) -> None:
    code = (
        "import json, os\n"
        + GOOD
        + '    seen = {**os.environ, "cwd": os.getcwd()}\n'
        + '    (log.checkpoint_dir / "seen.json").write_text(json.dumps(seen))\n'
    )
    assert run_training(code, seeds=[1]).ok
    kept = project.layout.run("exp-0001", "run-01", "checkpoints") / "seen.json"
    seen = json.loads(kept.read_text())
    # w8: it runs in its workspace, whatever the supervisor's folder is
    assert seen.pop("cwd") == seen["HARNESS_PROJECT"]
    assert Path(seen["HARNESS_PROJECT"]).parent == project.layout.workspaces
    assert not [name for name in seen if "KEY" in name]
    assert seen["OMP_NUM_THREADS"] == "1"
    assert seen["HARNESS_CHECKPOINT_EVERY"] == "10"
    assert seen["HARNESS_ATTEMPT"] == "1"
    assert seen["HARNESS_TRAIN"] == f"{seen['HARNESS_PROJECT']}/data/train.npz"
    assert seen["HARNESS_VALIDATION"] == f"{seen['HARNESS_PROJECT']}/data/validation.npz"
    assert seen["HOME"] != os.environ.get("HOME")
    assert Path(seen["TMPDIR"]).parent == Path(seen["HOME"]).parent
    assert not Path(seen["TMPDIR"]).exists(), "the private folder is removed after the run"
    allowed = {
        "PATH",
        "OMP_NUM_THREADS",
        "HOME",
        "TMPDIR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "PYTHONPATH",
    }
    others = {name for name in seen if not name.startswith("HARNESS_")} - allowed
    assert others <= {"LC_CTYPE"}, "Python itself may add LC_CTYPE"


def test_what_training_may_touch(project: Project, run_training: Trainer, root: Path) -> None:
    sandbox = Unconfined()
    run_training(seeds=[1], sandbox=sandbox)
    given = sandbox.confinement
    code, own = given.placed
    assert (code.path, code.source.parent) == (root, project.layout.workspaces)
    folder = project.layout.run("exp-0001", "run-01")
    assert (own.path, own.source, own.writable) == (folder, folder, True)
    assert [path for path in given.writable if path.is_relative_to(root)] == []
    assert given.gateway_port is None
    assert given.hidden == (project.layout.state,)
    data = {root / "data/train.npz", root / "data/validation.npz"}
    assert {path for path in given.read_only if path.is_relative_to(root)} == data


def test_a_bypassed_run_logger_is_found_then_and_there(
    project: Project, run_training: Trainer, root: Path
) -> None:
    report = run_training('open("results.json", "w").write("{\\"accuracy\\": 0.99}")')
    assert not report.ok
    assert "run_logger_bypassed" in codes(report)
    [run] = project.ledger.runs("exp-0001")
    assert run.status is RunStatus.FAILED
    assert run.findings[0].code == "run_logger_bypassed"
    assert run.findings[0].message.startswith(
        "The run logger was bypassed: exp-0001/run-01 ended without one row"
    )


def test_a_silent_run_is_ended(project: Project, run_training: Trainer) -> None:
    report = run_training("import time\ntime.sleep(600)", silent_s=1.0)
    [run] = report.runs
    assert run.status is RunStatus.KILLED
    assert run.reason.startswith("The run logger was bypassed: exp-0001/run-01 ran for 1 s")
    assert "run_logger_bypassed" in codes(report)


def test_w2_touched_empty_files_are_no_evidence(run_training: Trainer) -> None:
    code = """
        import os
        from pathlib import Path
        for name in ("metrics.jsonl", "training_status.json"):
            Path(os.environ["HARNESS_RUN_DIR"], name).touch()
    """
    report = run_training(code)
    assert "run_logger_bypassed" in codes(report)
    assert run_training(code).runs[0].status is RunStatus.FAILED, "asking again changes nothing"


def test_rows_that_are_not_the_runs_own_do_not_count(
    project: Project, run_training: Trainer
) -> None:
    code = """
        import json, os
        path = os.environ["HARNESS_RUN_DIR"] + "/metrics.jsonl"
        rows = [{"event": "start", "run": "exp-0001/run-01", "token": "made up"},
                {"event": "epoch", "run": "exp-0001/run-01", "epoch": 0, "metrics": {"accuracy": 0.99}},
                {"step": 1, "loss": 0.0}]
        open(path, "w").write("".join(json.dumps(row) + "\\n" for row in rows))
    """
    run = run_training(code).runs[0]
    assert (run.status, run.rows) == (RunStatus.FAILED, 0)
    assert "3 rows of something else" in run.reason


def test_a_run_without_an_end_row_is_completed_with_a_finding(run_training: Trainer) -> None:
    report = run_training(
        "from harness.run_logger import RunLogger\nRunLogger.from_environment().epoch(0,"
        " {'loss': 1})",
        seeds=[1],
    )
    assert report.ok
    assert codes(report) == ["run_end_missing"]


def test_a_training_that_says_it_failed_has_failed(run_training: Trainer) -> None:
    code = (
        "from harness.run_logger import RunLogger\nlog ="
        " RunLogger.from_environment()\nlog.start()\nlog.end('failed')"
    )
    assert run_training(code).runs[0].status is RunStatus.FAILED


@pytest.mark.parametrize(
    ("code", "argv", "reason"),
    [
        ("raise MemoryError", None, "crashed: MemoryError"),
        (
            "import no_such_module",
            None,
            "crashed: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("", ["sh", "-c", "trainer"], "never started: "),
        (
            "import sys; print('bad lr', file=sys.stderr); sys.exit(3)",
            None,
            "exit code 3; stderr ends: bad lr",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            None,
            "killed by SIGKILL, which the harness did not send",
        ),
        ("import os; os.abort()", None, "ended by SIGABRT, which the harness did not send"),
    ],
)
def test_case_50_each_failure_has_its_own_reason(
    project: Project, run_training: Trainer, code: str, argv: list[str] | None, reason: str
) -> None:
    report = run_training(code, argv=argv)
    assert not report.ok
    [run] = project.ledger.runs("exp-0001")
    assert run.status is RunStatus.FAILED
    assert run.reason.startswith(reason)
    assert "run_logger_bypassed" not in codes(report)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["trainer", "--fast"], "trainer is no program on the PATH"),
        (["bin/trainer"], "bin/trainer is no program"),
        (["python", "-u", "trian.py"], "trian.py is not in the project"),
        (["sh", "trian.sh", "train.py"], "trian.sh is not in the project"),
    ],
)
def test_a_command_that_cannot_start_registers_no_run(
    project: Project, run_training: Trainer, argv: list[str], told: str
) -> None:
    with pytest.raises(RefusedError, match=told) as refused:
        run_training(argv=argv)
    assert refused.value.code == "command_not_found"
    assert project.ledger.runs("exp-0001") == []


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["pythn3", "train.py"], "`harness train exp-0001 -- python3 train.py`"),
        (["bin/go.s"], "`harness train exp-0001 -- bin/go.sh`"),
        (["python", "src/trian.py"], "`harness train exp-0001 -- python src/train.py`"),
        (["python", "-m", "own.trian"], "`harness train exp-0001 -- python -m own.train`"),
        (["python", "notes/own.py"], "Take it out of .gitignore, or commit it."),
    ],
)
def test_the_nearest_that_is_there_is_named(
    project: Project, run_training: Trainer, root: Path, argv: list[str], hint: str
) -> None:
    for name in ("bin/go.sh", "src/train.py", "own/__init__.py", "own/train.py", "notes/own.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("print('started')\n")
    (root / "bin/go.sh").chmod(0o755)
    subprocess.run(["git", "-C", str(root), "init", "-q"], check=True)
    (root / ".gitignore").write_text("data/\nnotes/\n")
    with pytest.raises(RefusedError) as refused:
        run_training(argv=argv)
    assert refused.value.code == "command_not_found"
    assert hint in refused.value.hint
    assert project.ledger.runs("exp-0001") == []


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "-m", "own.train"],
        ["python", "-m", "json.tool", "--help"],
        ["python", "train.py", "--export", "made.py"],
        ["env", "A=1", "python", "train.py"],
        ["sh", "-c", "python train.py made.sh"],
    ],
)
def test_what_a_command_makes_or_runs_later_need_not_be_there(
    run_training: Trainer, root: Path, argv: list[str]
) -> None:
    (root / "own").mkdir()
    for name in ("__init__", "train"):
        (root / f"own/{name}.py").write_text("")
    report = run_training("print('started')", argv=argv, seeds=[1])
    assert "never started" not in report.runs[0].reason


def test_a_launch_that_is_refused_closes_its_run(
    project: Project, run_training: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_training(seeds=[1, 2]).ok

    def refuse(*words: object, **more: object) -> None:
        raise RunError("No sandbox here.", hint="Install one.")

    monkeypatch.setattr(LocalLauncher, "submit", refuse)
    report = run_training(argv=["python", "train.py", "--x"], seeds=[1, 2])
    (run,) = report.runs
    assert (run.status, run.reason) == (
        RunStatus.FAILED,
        "never started: No sandbox here. Install one.",
    )
    assert "counts for no seed" in report.findings[0].hint
    # The runs that trained count on, and are not trained again.
    runs = project.ledger.runs("exp-0001")
    assert [one.id for one in counted_runs(runs)] == ["run-01", "run-02"]
    monkeypatch.undo()
    assert run_training(seeds=[1, 2]).ok
    assert project.ledger.runs("exp-0001") == runs


def test_case_50_what_lay_in_the_runs_folder_before_is_not_read(
    project: Project, run_training: Trainer
) -> None:
    folder = project.layout.run("exp-0001", "run-01")
    folder.mkdir(parents=True)
    (folder.parent / "run-01.before-1").mkdir()
    (folder.parent / "run-01.before-1" / "kept").write_text("of another time")
    (folder / "metrics.jsonl").write_text(
        '{"event":"end","run":"exp-0001/run-01","status":"completed"}\n'
    )
    run = run_training("pass").runs[0]
    assert (run.status, run.rows) == (RunStatus.FAILED, 0)
    assert (folder.parent / "run-01.before-1" / "kept").exists()
    assert (folder.parent / "run-01.before-2" / "metrics.jsonl").exists()


def test_checkpoints_are_taken_from_the_runs_folder_only(
    project: Project, run_training: Trainer, root: Path
) -> None:
    code = """
        from harness.run_logger import RunLogger
        with RunLogger.from_environment() as log:
            log.start()
            for epoch, name in enumerate(["a", "b", "c", "a"]):
                (log.checkpoint_dir / name).write_text(f"{name}{epoch}")
                log.checkpoint_saved(log.checkpoint_dir / name, epoch=epoch)
            (log.checkpoint_dir / "b").unlink()
            (log.checkpoint_dir / "c").unlink()
            (log.checkpoint_dir / "c").symlink_to("/etc/passwd")
    """
    report = run_training(code, seeds=[1])
    [checkpoint] = [
        item for item in project.ledger.checkpoints("exp-0001", "run-01") if item.final
    ]
    assert (checkpoint.epoch, checkpoint.final) == (3, True)
    assert checkpoint.id == hashlib.sha256(b"a3").hexdigest()
    assert codes(report) == ["checkpoint_unreadable"], (
        "one that was taken away again is no fault, a link is"
    )


def test_changed_data_is_refused_by_name(
    project: Project, run_training: Trainer, root: Path
) -> None:
    (root / "data/train.npz").write_bytes(b"other rows")
    with pytest.raises(RefusedError, match=r"data/train\.npz") as caught:
        run_training()
    assert caught.value.code == "split_changed"
    assert project.ledger.runs("exp-0001") == []


def test_closed_and_unknown_experiments_are_refused(
    project: Project, run_training: Trainer
) -> None:
    project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "tried")
    with pytest.raises(RefusedError) as caught:
        run_training()
    assert caught.value.code == "experiment_closed"
    with pytest.raises(NotFoundError):
        project.ledger.experiment("exp-0002")


def test_two_supervisors_of_one_experiment(project: Project, run_training: Trainer) -> None:
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom harness.ledger.project import"
        " open_project\nfrom harness.runs.lock import supervising\nwith"
        " open_project(Path(sys.argv[1]), os.environ) as p, supervising(p.layout, 'exp-0001'):\n   "
        " print('held', flush=True)\n    time.sleep(600)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "XDG_STATE_HOME": str(project.layout.state.parents[1]),
    }
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(project.layout.root)],
        env=environment,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RefusedError) as caught:
            run_training()
        assert caught.value.code == "already_training"
        assert project.ledger.runs("exp-0001") == []
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    wait_until(lambda: run_training(seeds=[1]).ok)
    with supervising(project.layout, "exp-0001"):
        pass


def test_progress_is_told(run_training: Trainer) -> None:
    events: list[dict] = []
    code = """
        import time
        from harness.run_logger import RunLogger
        with RunLogger.from_environment() as log:
            log.start(total_epochs=2 if log.seed == 1 else 1)
            log.epoch(0, {"loss": 0.5})
            time.sleep(0.5)
            log.epoch(1, {"loss": float("nan")})
    """
    run_training(code, seeds=[1, 2], on_event=events.append)
    assert events[0]["kind"] == "config_written"
    alarms = [event for event in events if event["kind"] == "alarm"]
    assert len(alarms) == 2  # of the last row, which is not finite
    told = [event for event in events[1:] if event not in alarms]
    assert [event["kind"] for event in told] == ["run", "epoch", "epoch", "run"] * 2
    assert told[1]["text"] == "exp-0001/run-01  epoch 0/1  loss 0.5"
    # The last row comes when the process has ended already.
    assert told[2]["text"] == "exp-0001/run-01  epoch 1/1  loss nan"
    assert told[3]["text"].startswith("exp-0001/run-01  completed")
    assert told[5]["text"] == "exp-0001/run-02  epoch 0  loss 0.5"  # never "0/0"


def test_a_required_sandbox_is_required(
    project: Project, run_training: Trainer, root: Path
) -> None:
    plan = root / "plan.md"
    plan.write_text(plan.read_text().replace("budget:", "sandbox: required\nbudget:"))
    approve_plan(project, plan, by="tester")
    assert Unconfined.kind is SandboxKind.NONE
    with pytest.raises(RefusedError) as caught:
        run_training()
    assert caught.value.code == "isolation_absent"
