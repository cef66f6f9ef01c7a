"""A trainer's process and its result: what is believed, what is not, and that nothing of it is left
running."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from harness.errors import RefusedError
from harness.posttrain.field_problems import SpecificationError
from harness.posttrain.program import TrainingProgram
from tests.conformance import imported
from tests.posttrain import programs

FAILED = 'print(json.dumps(result("failed"))); sys.exit(1)'
MADE = 'adapter(out / "adapter", [spec["seed"] + 0.5, 2.0]);'
FILE = '(out / "result.json").write_text(json.dumps(result()));'
BAD_FILE = '(out / "result.json").write_text("{");'
MATRIX = {
    # exit code, stdout, file -> status, what the reason says
    "0 json absent": (f"{MADE} print(json.dumps(result()))", "completed", "validated"),
    "0 json same file": (f"{MADE} {FILE} print(json.dumps(result()))", "completed", "validated"),
    "0 json bad file": (f"{MADE} {BAD_FILE} print(json.dumps(result()))", "failed", "result.json"),
    "0 json other file": (
        (
            f'{MADE} (out / "result.json").write_text(json.dumps(result(seed=9)));'
            " print(json.dumps(result()))"
        ),
        "failed",
        "which one holds is unknown",
    ),
    "0 junk absent": (f'{MADE} print("step 1")', "failed", "stdout"),
    "0 junk good": (f'{MADE} {FILE} print("step 1")', "failed", "stdout"),
    "0 null absent": ('print("null")', "failed", "not an object"),
    "0 empty absent": (MADE, "failed", "the trainer gave none"),
    "0 empty good": (f"{MADE} {FILE}", "completed", "validated"),
    "0 empty bad": (f"{MADE} {BAD_FILE}", "failed", "result.json"),
    "0 over the cap": (f'{MADE} {FILE} print(" " * 1100000)', "failed", "too much"),
    "0 half a character": (
        f'{MADE} print(json.dumps(result(extra={{"told": chr(0xD800)}})))',
        "failed",
        "surrogate",
    ),
    "0 failed": ('print(json.dumps(result("failed")))', "failed", "they disagree"),
    "1 json": (f"{MADE} print(json.dumps(result())); sys.exit(1)", "failed", "they disagree"),
    "1 failed": (FAILED, "failed", "the loss was not finite"),
    "1 failed file": (
        '(out / "result.json").write_text(json.dumps(result("failed"))); sys.exit(1)',
        "failed",
        "finite",
    ),
    "1 junk": ('print("x"); sys.exit(1)', "failed", "stdout"),
    "1 empty": ('sys.exit("no such kernel")', "failed", "no such kernel"),
    "1 good file": (f"{MADE} {FILE} sys.exit(1)", "failed", "they disagree"),
}


QUICK = (
    "0 json absent",
    "0 json bad file",
    "0 junk good",
    "0 empty good",
    "0 over the cap",
    "0 half a character",
    "1 json",
    "1 failed",
)


@pytest.mark.parametrize(
    "case",
    [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in MATRIX],
)
def test_exit_code_stdout_and_file(execute, project, case: str) -> None:
    body, status, reason = MATRIX[case]
    report = execute(body)
    assert report.run.status == status
    assert reason in report.run.reason
    assert (report.model is not None) == (status == "completed") == bool(project.ledger.models())
    (judged,) = project.ledger.judgements(report.run.experiment)
    assert judged.accepted == (status == "completed")


def test_rows_that_a_trainer_left_out_are_told(execute) -> None:
    body = programs.GOOD.replace(
        "result()", 'result(rows_used=18, rows_refused={"prompt_too_\\nlong": 2})'
    )
    reason = execute(body).run.reason
    assert reason.endswith("trained on 18 of 20 rows, left out: prompt_too_ long (2)")


def test_the_checkpoint_is_recorded_before_the_run_is_completed(execute, project) -> None:
    report = execute()
    kinds = [fact.kind for fact in project.ledger.facts()]
    # The checkpoint may have been hashed while the run went on, before its result was judged.
    wanted = ["run_registered", "run_started", "training_judged", "model_registered", "run_ended"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    recorded = kinds.index("checkpoint_recorded")
    assert kinds.index("run_started") < recorded < kinds.index("model_registered")
    assert project.ledger.model(report.model).state == "registered"


def test_a_script_that_is_gone_fails_and_is_not_pending(
    program: TrainingProgram, root: Path
) -> None:
    made = program.create(programs.request(), by="me")
    (root / "trainer.py").unlink()
    report = program.execute(made.experiment)
    assert report.run.status == "failed"
    assert any(item.field == "code_hash" for item in report.problems)


def test_a_program_that_cannot_start_fails(program: TrainingProgram, root: Path) -> None:
    script = root / "trainer"
    script.write_text("not a program")
    script.chmod(0o755)
    made = program.create(programs.request(command=["./trainer"]), by="me")
    assert program.execute(made.experiment).run.status == "failed"


ORPHAN = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
(out / "child").write_text(str(child.pid))
time.sleep(60)
"""


def test_term_ignored_ends_in_a_kill_of_everything(execute, project) -> None:
    report = execute(ORPHAN, minutes=0.03)
    assert report.run.status == "killed"
    assert "budget.minutes" in report.run.reason
    folder = project.layout.run(report.run.experiment, report.run.id, "checkpoints")
    child = int((folder / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_tokens_beyond_the_budget_end_the_run(execute) -> None:
    head = programs.TRAINER.replace('log.end("completed")', "")
    report = execute(
        'log.epoch(2, {"tokens_seen": 5000})\nimport time; time.sleep(60)', head=head, tokens=1000
    )
    assert report.run.status == "killed"
    assert "budget.tokens, 1000: 5000" in report.run.reason
    assert report.run.exit_code not in (None, 0)


def test_a_fatal_alarm_ends_the_run(execute) -> None:
    head = programs.TRAINER.replace('log.end("completed")', "")
    nan = 'for n in range(2, 9): log.epoch(n, {"loss": float("nan")})\nimport time; time.sleep(60)'
    report = execute(nan, head=head)
    assert report.run.status == "killed"
    assert "alarm" in report.run.reason


def test_without_the_run_logger_nothing_is_believed(execute) -> None:
    head = programs.TRAINER[: programs.TRAINER.index("log = RunLogger")]
    assert "no detector" in execute(head=head).run.reason


def test_a_dry_run_is_validated_and_makes_nothing(
    program: TrainingProgram, project, root: Path
) -> None:
    good = program.create(programs.request(backend="dry-run"), by="me")
    report = program.execute(good.experiment)
    assert (report.run.status, report.model) == ("completed", None)
    assert project.ledger.models() == []
    bad = program.create(programs.request(backend="dry-run", seed=2), by="me")
    programs.write_rows(root / "train.jsonl", programs.rows(20, 50))
    report = program.execute(bad.experiment)
    assert report.run.status == "failed"
    assert {item.field for item in report.problems} == {"dataset_sha256"}


def test_a_completed_program_is_not_run_again(execute, program: TrainingProgram) -> None:
    with pytest.raises(RefusedError, match="completed run"):
        program.execute(execute().run.experiment)


def test_a_backend_that_is_gone_is_a_sentence(
    program: TrainingProgram, project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger of an earlier version has programs of it."""
    name = program.create(programs.request(backend="dry-run"), by="me").experiment
    made = project.ledger.program(name)
    old = replace(made, spec={**made.spec, "backend": "unsloth-orpo", "mode": "orpo"})
    monkeypatch.setattr(type(project.ledger), "program", lambda _self, _name: old)
    with pytest.raises(SpecificationError, match="unsloth-orpo: it is no longer supp") as refused:
        program.execute(name)
    assert "--backend trl-orpo or command" in refused.value.hint


def test_a_failed_one_may_be(execute, program: TrainingProgram, root: Path) -> None:
    body = (
        'import random\nif not (out.parent.parent / "run-02").exists(): sys.exit(1)\n'
        + programs.GOOD
    )
    first = execute(body)
    assert first.run.status == "failed"
    assert program.execute(first.run.experiment).run.status == "completed"


def test_older_weights_are_known_whatever_times_the_trainer_sets(execute, root: Path) -> None:
    imported.adapter(root / "old", (7.0, 8.0))
    body = """
    import shutil
    shutil.copytree("old", out / "adapter")
    for path in Path(given.spec).parent.rglob("*"):
        os.utime(path, (0, 0))
    os.utime(Path(given.spec).parent, (0, 0))
    print(json.dumps(result()))
    """
    report = execute(body)
    assert report.model is None
    assert {item.actual for item in report.problems} == {"checkpoint_known"}


def test_the_model_stays_final_whatever_else_the_trainer_kept(execute, project) -> None:
    keep = (
        '(out / "state").write_text("to go on from")\nlog.checkpoint_saved(out / "state", epoch=1,'
        " final=True)"
    )
    report = execute(head=programs.TRAINER.replace("log.end(", f"{keep}\nlog.end("))
    assert report.model is not None, report.run.reason
    kept = {
        item.path.rsplit("/", 1)[-1]: item.final
        for item in project.ledger.checkpoints(report.run.experiment)
    }
    assert kept == {"adapter": True, "state": False}


def test_the_same_bytes_in_another_program_are_not_its_own(execute) -> None:
    assert execute().model is not None
    report = execute(seed=2, body=programs.GOOD.replace('spec["seed"]', "1"))
    assert any("those of exp-0001" in item.reason for item in report.problems)


def test_nothing_is_written_into_the_source_tree(execute, root: Path) -> None:
    before = {path.name for path in root.iterdir()}
    execute()
    assert {path.name for path in root.iterdir()} == before
