"""`posttrain run --resume`: the same run goes on in its own folder; budgets and rows are those of
one training."""

import json
import time
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.verify import verify
from harness.posttrain.tokens import Tokens
from harness.process import identity
from harness.runs.closing import recover
from harness.sandbox.select import choose
from tests.metrics_rows import read_rows
from tests.posttrain import programs

CRASH = "sys.exit(3)"
GONE = "os.kill(os.getpid(), 9)"


@pytest.fixture
def stopped(execute):
    """A run whose trainer was killed in its first attempt, after three rows and one saved step."""
    report = execute(programs.MADE, head=programs.resuming(GONE), tokens=1000)
    assert report.run.status == "failed", report.run.reason
    return report.run


def test_it_goes_on_as_the_same_run(stopped, program, project) -> None:
    report = program.execute(stopped.experiment, resume=True)
    run = report.run
    assert (run.status, run.id, run.attempt, run.token) == (
        "completed",
        "run-01",
        2,
        stopped.token,
    ), run.reason
    assert run.seconds > stopped.seconds
    assert len(project.ledger.runs(stopped.experiment)) == 1
    folder = project.layout.run(run.experiment, run.id)
    metrics = read_rows(folder / "metrics.jsonl")
    epochs = [row for row in metrics.effective if row["event"] == "epoch"]
    assert [row["epoch"] for row in epochs] == list(range(6)), "no row twice"
    assert [row["metrics"]["tokens_seen"] for row in epochs] == [50 * n for n in range(1, 7)]
    told = json.loads((folder / "checkpoints" / "told").read_text())
    assert told["HARNESS_SPENT_TOKENS"] == "150"
    assert float(told["HARNESS_SPENT_SECONDS"]) == stopped.seconds
    (tree,) = program.lineage(run.experiment)["runs"]
    assert (tree["attempt"], tree["judgement"]["accepted"]) == (2, True)
    assert [item["accepted"] for item in tree["earlier_judgements"]] == [False]
    kinds = [fact.kind for fact in project.ledger.facts() if fact.kind.startswith("run_")]
    assert kinds == [
        "run_registered",
        "run_started",
        "run_ended",
        "run_resumed",
        "run_started",
        "run_ended",
    ]
    assert verify(project.layout.ledger_db, project.layout.anchors, project.layout.facts_dir) == []
    with pytest.raises(RefusedError, match="completed run"):
        program.execute(run.experiment, resume=True)


@pytest.mark.slow
def test_what_an_earlier_attempt_said_is_not_this_ones(execute, program, project) -> None:
    """A result file and words on stdout of the attempt that failed stand beside, and are not judged
    again."""
    failed = (
        f'(out / "result.json").write_text(json.dumps(result("failed"))); print("{{}}"); {CRASH}'
    )
    run = execute(programs.MADE, head=programs.resuming(failed)).run
    assert run.status == "failed"
    report = program.execute(run.experiment, resume=True)
    assert report.run.status == "completed", report.run.reason
    folder = project.layout.run(run.experiment, run.id)
    assert (folder / "stdout.log.attempt-1").read_text().strip() == "{}"
    assert (
        json.loads((folder / "checkpoints" / "result.json.attempt-1").read_text())["status"]
        == "failed"
    )


@pytest.mark.slow
def test_tokens_of_all_attempts_count(execute, program) -> None:
    """Three rows of 50; the third is trained again."""
    run = execute(
        programs.MADE, head=programs.resuming(GONE, then="time.sleep(60)"), tokens=240
    ).run
    report = program.execute(run.experiment, resume=True)
    assert (report.run.status, report.run.reason) == (
        "killed",
        "ended at budget.tokens, 240: 300 were seen",
    )
    with pytest.raises(RefusedError, match="spent") as caught:
        program.execute(run.experiment, resume=True)
    assert caught.value.code == "tokens_spent"


@pytest.mark.slow
def test_a_trainer_that_ends_beyond_the_tokens_of_all_attempts_is_not_believed(
    execute, program
) -> None:
    run = execute(programs.MADE, head=programs.resuming(GONE), tokens=340).run
    report = program.execute(
        run.experiment, resume=True
    )  # 300 for the model, 50 for what was lost
    assert (report.model, "budget.tokens" in report.run.reason) == (None, True)
    assert report.run.status in ("killed", "failed"), "seen while it trained, or when it had ended"


@pytest.mark.slow
def test_minutes_of_all_attempts_count(execute, program) -> None:
    slow = f"time.sleep(2.5); {GONE}"
    run = execute(
        programs.MADE, head=programs.resuming(slow, then="time.sleep(60)"), minutes=0.1
    ).run
    assert run.status == "failed"
    report = program.execute(run.experiment, resume=True)
    assert (report.run.status, report.run.reason) == ("killed", "ended at budget.minutes, 0.1")
    assert report.run.seconds < 6 + 3.4, "the second attempt had what the first left"
    with pytest.raises(RefusedError) as caught:
        program.execute(run.experiment, resume=True)
    assert caught.value.code == "minutes_spent"


def refused(program, experiment: str) -> str:
    with pytest.raises(RefusedError) as caught:
        program.execute(experiment, resume=True)
    assert caught.value.hint
    return caught.value.code


def test_only_what_is_as_it_was_goes_on(stopped, program, project, root: Path) -> None:
    name, folder = stopped.experiment, project.layout.run(stopped.experiment, stopped.id)
    rows = (root / "train.jsonl").read_bytes()
    (root / "train.jsonl").write_bytes(rows + b"\n")
    assert refused(program, name) == "dataset_differs"
    (root / "train.jsonl").write_bytes(rows)
    code = (root / "trainer.py").read_text()
    (root / "trainer.py").write_text(code + "# other\n")
    assert refused(program, name) == "code_differs"
    (root / "trainer.py").write_text(code)
    program._sandbox, before = choose(None, required=False), program._sandbox
    if program._sandbox.kind is not SandboxKind.NONE:
        assert refused(program, name) == "sandbox_differs"
    program._sandbox = before
    time.sleep(0.02)
    (folder / "checkpoints" / "state").write_text("5")
    assert refused(program, name) == "run_changed"
    assert [run.attempt for run in project.ledger.runs(name)] == [1]


@pytest.mark.slow
def test_nothing_to_go_on_from(execute, program, root: Path) -> None:
    made = program.create(programs.request(), by="me")
    assert refused(program, made.experiment) == "nothing_to_resume"
    never = execute(head="raise SystemExit(1)\n")
    assert refused(program, never.run.experiment) == "nothing_to_resume"
    lying = execute("print(json.dumps(result(seed=9)))", seed=3)
    assert refused(program, lying.run.experiment) == "result_refused"


@pytest.mark.slow
def test_a_kill_between_resume_and_launch_costs_no_time_and_loses_nothing(
    stopped, program, project
) -> None:
    project.ledger.resume_run(
        experiment=stopped.experiment, run=stopped.id, environment={}, session=None
    )
    report = program.execute(stopped.experiment, resume=True)
    assert (report.run.status, report.run.attempt) == ("completed", 3), report.run.reason
    ended = [fact.body() for fact in project.ledger.facts() if fact.kind == "run_ended"]
    assert [item["status"] for item in ended] == ["failed", "lost", "completed"]
    assert ended[1]["seconds"] == stopped.seconds, "the attempt that was never launched took none"


def test_a_lost_attempt_is_told_by_its_own_judgement_only(stopped, program, project) -> None:
    """The first attempt's result was refused; of the second, whose supervisor died, nothing was
    judged."""
    project.ledger.resume_run(
        experiment=stopped.experiment, run=stopped.id, environment={}, session=None
    )
    gone = identity() | {"pid": 2**22 - 1}
    project.ledger.append(
        RunStarted(
            experiment=stopped.experiment, run=stopped.id, supervisor=gone, job=local_job(gone)
        )
    )
    recover(project)
    assert project.ledger.run(stopped.experiment, stopped.id).status == "lost"


def test_tokens_that_a_later_attempt_saw_again_are_spent_and_not_seen_twice() -> None:
    def row(epoch: int, tokens: int) -> dict[str, object]:
        return {"event": "epoch", "epoch": epoch, "metrics": {"tokens_seen": tokens}}

    tokens = Tokens()
    tokens.take([{"event": "start"}, row(0, 10), row(1, 20), row(2, 30)])
    assert (tokens.seen, tokens.spent) == (30, 30)
    tokens.take([{"event": "attempt", "resumed_at": 1}, row(1, 20)])
    assert (tokens.seen, tokens.spent) == (20, 40)
    tokens.take([{"event": "attempt", "resumed_at": None}, row(0, 10)])
    assert (tokens.seen, tokens.spent) == (10, 50)
    assert Tokens().seen is None
