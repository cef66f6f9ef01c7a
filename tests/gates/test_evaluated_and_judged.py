"""Evidence is gathered from a real project, scored by the real protocol, judged, and recorded
once."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.decisions.experiments import decide
from harness.domain.findings import Finding
from harness.domain.sandbox import Completed, Sandbox
from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    GateName,
    RunStatus,
    Split,
    Tier,
    Verdict,
)
from harness.domain.variables import PREDICTIONS
from harness.errors import NotFoundError, RefusedError
from harness.evaluation import concurrent_seeds
from harness.evaluation.comparison import compared
from harness.evaluation.experiment import awaiting, evaluate_experiment
from harness.evaluation.outcome import TRIVIAL, explain, worth
from harness.evaluation.requests import predict_limit
from harness.gates.check import check_gate, due_gate, require_validation_passed, standing
from harness.gates.collect import changed, collect
from harness.ledger.facts import EvaluationRecorded, RecordedVerdict
from harness.plans.approval import approve_plan
from harness.plans.parse import plan_from
from harness.projections.scores import change_text
from harness.rendering.derived import write_derived
from harness.runs.endings import bypassed
from harness.sandbox.none import NoSandbox
from harness.views.experiments import details
from tests.world import GOOD, PLAN, POOR, InProcess, World, train_past_the_logger

VALIDATION, HELD_OUT = GateName.VALIDATION, GateName.HELD_OUT
BYPASS = [bypassed("exp-0001/run-01", "ran for 60 s")]


def evaluate(
    world: World, experiment: str, split: Split = Split.VALIDATION, sandbox: Sandbox | None = None
) -> list[float | None]:
    sandbox = sandbox or InProcess()
    found = evaluate_experiment(
        world.project,
        experiment,
        split,
        sandbox,
        environment={},
        shuffle_seed=7,
        admit=require_validation_passed,
    )
    return [item.value for item in found]


def passed(
    world: World,
    cuts: tuple[float, ...] = GOOD,
    parent: str | None = None,
    name: str = "A cut at 0",
) -> str:
    """An experiment with a PASS on validation."""
    experiment = world.open(name, parent).id
    world.train(experiment, cuts)
    evaluate(world, experiment)
    world.result(experiment)
    assert check_gate(world.project, experiment, VALIDATION).verdict is Verdict.PASS
    return experiment


def codes(verdict: RecordedVerdict) -> set[str]:
    return {found.code for found in verdict.findings}


def keep(world: World, experiment: str) -> None:
    newest = world.project.ledger.verdicts(experiment)[-1]
    decide(
        world.project,
        kind=DecisionKind.KEEP,
        experiment=experiment,
        by="harness",
        context="c",
        choice="c",
        alternatives="a",
        reason="r",
        confidence="high",
        verdict=newest.id,
    )


def test_from_training_to_a_pass_on_held_out(world: World) -> None:
    experiment = passed(world)
    verdict = world.project.ledger.verdicts(experiment)[-1]
    assert verdict.tier is Tier.SHOULD
    assert verdict.score is not None
    assert verdict.score["n_seeds"] == 3
    assert verdict.score["not_isolated"] == ["training", "predict"]
    assert verdict.comparison is not None
    assert verdict.comparison["against"] == "trivial predictor"
    assert verdict.comparison["better"] is True
    assert world.project.ledger.experiment(experiment).status is ExperimentStatus.JUDGED
    evaluate(world, experiment, Split.HELD_OUT)
    held_out = check_gate(world.project, experiment)
    assert (held_out.gate, held_out.verdict, held_out.tier) == (
        "held_out",
        Verdict.PASS,
        Tier.SHOULD,
    )
    written = json.loads(world.run_path(experiment, "evaluation").read_text())
    assert set(written) == {"validation", "held_out"}
    assert written["held_out"]["query"] == 1
    score = json.loads(world.path(experiment, "score").read_text())
    assert score["validation"]["mean"] == verdict.score["mean"]


def test_looking_again_records_nothing_and_says_the_same(world: World) -> None:
    experiment = passed(world)
    first = check_gate(world.project, experiment)
    facts = world.project.ledger.counts()
    files = {path: path.read_bytes() for path in sorted(world.root.rglob("*")) if path.is_file()}
    for _ in range(3):
        assert check_gate(world.project, experiment) == first
    assert world.project.ledger.counts() == facts
    assert {
        path: path.read_bytes() for path in sorted(world.root.rglob("*")) if path.is_file()
    } == files


def test_w2_asking_twice_does_not_help_a_run_without_metrics(world: World) -> None:
    """There the first call said no but marked the run complete, so that the second let it
    through."""
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment)
    world.result(experiment)
    world.run_path(experiment, "metrics").unlink()
    first, second = (check_gate(world.project, experiment, VALIDATION) for _ in range(2))
    assert first == second
    assert first.verdict is Verdict.FAIL
    assert "metrics.jsonl" in first.findings[0].message


def test_w2_touched_files_and_a_written_result_do_not_pass(world: World) -> None:
    experiment = world.open().id
    world.path(experiment, "config").write_text("")
    run = world.project.layout.run(experiment, "run-01")
    run.mkdir(parents=True)
    for name in ("metrics", "status"):
        world.run_path(experiment, name).touch()
    world.path(experiment, "result").write_text(
        "---\nclaims: {anything: -999}\ntier: must_pass\n---\n"
    )
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert {"artifact_empty", "runs_missing", "claim_unsupported", "evaluation_missing"} <= codes(
        verdict
    )
    assert verdict.tier is None


def test_w2_the_change_against_the_parent_is_computed_not_read(world: World) -> None:
    """There a forged delta in the agent's result stood in the record."""
    parent = passed(world)
    evaluate(world, parent, Split.HELD_OUT)
    check_gate(world.project, parent)
    keep(world, parent)
    child = world.open("A cut far off", parent).id
    world.train(child, (0.2, 0.21, 0.22))
    evaluate(world, child)
    world.path(child, "result").write_text("---\nclaims: {}\ndelta_vs_parent: 0.5\n---\n")
    comparison = check_gate(world.project, child, VALIDATION).comparison
    assert comparison is not None
    assert comparison["against"] == parent
    assert comparison["difference"] < 0
    assert comparison["better"] is False


def test_w7_a_result_with_blank_lines_or_without_a_final_newline_is_read(world: World) -> None:
    experiment = passed(world)
    world.path(experiment, "result").write_text("\n\n---\nclaims: {accuracy: 0.98}\n---\nGood.")
    assert "artifact_unreadable" not in codes(check_gate(world.project, experiment, VALIDATION))


def test_w7_a_percent_sign_is_a_finding_not_a_crash(world: World) -> None:
    experiment = passed(world)
    world.path(experiment, "result").write_text("---\nclaims: {accuracy: 93%}\n---\n")
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert codes(verdict) == {"artifact_unreadable"}
    assert "93%" in verdict.findings[0].message


def test_a_bypassed_run_logger_is_said_in_those_words(world: World) -> None:
    experiment = world.open().id
    world.train(
        experiment, (0.0,), statuses=[RunStatus.KILLED], log=train_past_the_logger, findings=BYPASS
    )
    world.result(experiment, accuracy=0.999)
    assert evaluate(world, experiment) == []
    verdict = check_gate(world.project, experiment)
    assert verdict.verdict is Verdict.FAIL
    assert verdict.findings[0].message.startswith("The run logger was bypassed")
    assert {
        "claim_unsupported",
        "artifact_missing",
        "seeds_outstanding",
        "checkpoint_missing",
    } <= codes(verdict)


def test_a_poor_score_fails_with_the_number(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, POOR)
    values = evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert codes(verdict) == {"below_tier"}
    mean = sum(value for value in values if value is not None) / 3
    assert f"{mean:.6g}" in verdict.findings[0].message


def test_failed_seeds_are_inconclusive_and_what_was_done_is_kept(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, statuses=[RunStatus.COMPLETED, RunStatus.COMPLETED, RunStatus.FAILED])
    assert len(evaluate(world, experiment)) == 2
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert verdict.verdict is Verdict.INCONCLUSIVE
    assert codes(verdict) == {"seeds_outstanding", "evaluation_missing"}
    assert verdict.score is not None
    assert verdict.tier is None


def test_equal_weights_of_two_seeds_fail(world: World) -> None:
    def ignoring(log: Any, folder: Path, cut: float) -> None:
        with log:
            log.start()
            log.epoch(0, {"loss": 1.0})
            path = log.checkpoint_dir / "last.json"
            path.write_text(json.dumps({"cut": 0.0}))
            log.checkpoint_saved(path, final=True)

    experiment = world.open().id
    world.train(experiment, log=ignoring)
    evaluate(world, experiment)
    world.result(experiment)
    assert codes(check_gate(world.project, experiment)) == {"seed_ignored"}


@pytest.mark.parametrize("cuts", [(0.0, 1e-4, -1e-4), GOOD])
def test_seeds_that_answer_all_rows_alike_are_noted(
    world: World, cuts: tuple[float, float, float]
) -> None:
    """Other bytes, one model: a pickle, or padding, that no reader of weights sees through."""

    def padded(log: Any, folder: Path, cut: float) -> None:
        with log:
            log.start()
            log.epoch(0, {"loss": 1.0})
            path = log.checkpoint_dir / "last.json"
            path.write_text(json.dumps({"cut": cut, "pad": str(log.seed)}))
            log.checkpoint_saved(path, final=True)

    experiment = world.open().id
    world.train(experiment, cuts, log=padded)
    evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert verdict.verdict is Verdict.PASS
    assert codes(verdict) == ({"seeds_answer_alike"} if cuts != GOOD else set())


@pytest.mark.parametrize("name", ["metrics", "status"])
def test_a_file_edited_after_the_run_is_named_and_noted_once(world: World, name: str) -> None:
    experiment = passed(world)
    path = world.run_path(experiment, name)
    path.write_bytes(path.read_bytes().replace(b"1.0", b"0.1") + b"\n")
    for _ in range(2):
        assert codes(check_gate(world.project, experiment, VALIDATION)) == {f"{name}_changed"}
    noted = world.project.ledger.tampering()
    assert [fact.what for fact in noted] == [f"{name}_changed"]
    assert noted[0].path.endswith(path.name)


def test_rows_copied_from_another_run_are_not_evidence(world: World) -> None:
    experiment = world.open().id
    world.train(experiment)
    shutil.copy(
        world.run_path(experiment, "metrics", "run-02"),
        world.run_path(experiment, "metrics", "run-01"),
    )
    assert "metrics_of_another_run" in codes(check_gate(world.project, experiment))


def test_a_linked_artifact_is_refused_and_never_written_through(
    world: World, tmp_path: Path
) -> None:
    experiment = passed(world)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(world.project.layout.run(experiment, "run-01"), elsewhere)
    os.symlink(elsewhere, world.project.layout.run(experiment, "run-01"))
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert "artifact_linked" in codes(verdict)
    (elsewhere / "evaluation.json").unlink()
    evaluate(world, experiment)
    assert not (elsewhere / "evaluation.json").exists()
    assert awaiting(world.project, experiment, Split.VALIDATION) == []


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"---\nclaims: [1\n---\n", b"no front matter"]
)
def test_an_unreadable_result_is_a_finding(world: World, content: bytes) -> None:
    experiment = passed(world)
    world.path(experiment, "result").write_bytes(content)
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert codes(verdict) <= {"artifact_unreadable", "artifact_empty"}


def test_a_pipe_in_the_place_of_a_file_does_not_hang(world: World) -> None:
    experiment = passed(world)
    world.run_path(experiment, "metrics").unlink()
    os.mkfifo(world.run_path(experiment, "metrics"))
    assert "artifact_unreadable" in codes(check_gate(world.project, experiment, VALIDATION))


def _new_version(world: World, _experiment: str) -> None:
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    approve_plan(world.project, world.root / "plan.md", by="a person")


RUNS = ("run-01", "run-02", "run-03")
STALE: dict[str, Callable[[World, str], object]] = {
    "result": lambda w, e: w.result(e, accuracy=0.98),
    "config": lambda w, e: w.path(e, "config").write_text("cut: 0.5\n"),
    "code": lambda w, e: w.path(e, "code").write_text("{}"),
    "hypothesis": lambda w, e: w.path(e, "hypothesis").unlink(),
    **{
        f"{run}/status": lambda w, e, run=run: w.run_path(e, "status", run).write_text("{}")
        for run in RUNS
    },
    **{
        f"{run}/metrics": lambda w, e, run=run: w.run_path(e, "metrics", run).write_text("")
        for run in RUNS
    },
    **{
        f"{run}/checkpoint": (
            lambda w, e, run=run: (w.run_path(e, "checkpoints", run) / "last.json").write_text(
                "{}"
            )
        )
        for run in RUNS
    },
    "plan": _new_version,
    "frozen": lambda w, e: (w.root / "plan.md").write_text(PLAN + "\nStill more.\n"),
}


def test_a_verdict_is_stale_when_anything_that_it_read_has_changed(world: World) -> None:
    experiment = passed(world)
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert standing(world.project, verdict) is Verdict.PASS
    before: set[str] = set()
    for name, change in STALE.items():
        assert name not in before
        change(world, experiment)
        before = set(changed(world.project, verdict))
        assert name in before
    assert standing(world.project, verdict) is Verdict.STALE
    still = set(verdict.evidence) - set(changed(world.project, verdict))
    assert still == {*RUNS}  # the ledger's own records of the runs, which no file changes
    assert check_gate(world.project, experiment, VALIDATION).id != verdict.id


def test_a_reworded_finding_makes_no_verdict_stale(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hash covers a sentence: the next version of the harness may say it better."""
    experiment = passed(world)
    (world.root / "plan.md").write_text(PLAN + "More words.\n")
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert "plan_changed" in codes(verdict)

    def reworded(code: str, message: str, hint: str, data: dict[str, Any]) -> Finding:
        return Finding(code, f"In other words: {message}", "Do the same.", data)

    monkeypatch.setattr("harness.plans.approved.Finding", reworded)
    assert changed(world.project, verdict) == ()
    assert check_gate(world.project, experiment, VALIDATION).id == verdict.id


def test_held_out_does_not_rest_on_a_stale_pass(world: World) -> None:
    experiment = passed(world)
    evaluate(world, experiment, Split.HELD_OUT)
    world.path(experiment, "config").write_text("cut: 0.5\n")
    verdict = check_gate(world.project, experiment, HELD_OUT)
    assert verdict.verdict is Verdict.FAIL
    assert codes(verdict) == {"validation_stale"}
    check_gate(world.project, experiment, VALIDATION)
    assert check_gate(world.project, experiment, HELD_OUT).verdict is Verdict.PASS


def test_the_plan_changed_is_named_and_a_new_version_asks_for_new_evaluations(
    world: World,
) -> None:
    experiment = passed(world)
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    assert codes(check_gate(world.project, experiment, VALIDATION)) == {"plan_changed"}
    approve_plan(world.project, world.root / "plan.md", by="a person")
    verdict = check_gate(world.project, experiment, VALIDATION)
    assert codes(verdict) == {"evaluation_missing", "approved_anew"}
    (anew,) = [one for one in verdict.findings if one.code == "approved_anew"]
    assert "oracle.predict: python predict.py -> python ./predict.py" in anew.message
    assert len(awaiting(world.project, experiment, Split.VALIDATION)) == 3
    evaluate(world, experiment)
    assert check_gate(world.project, experiment, VALIDATION).verdict is Verdict.PASS


def test_required_isolation_that_was_absent_fails(tmp_path: Path) -> None:
    world = World.make(tmp_path, PLAN.replace("schema: 1", "schema: 1\nsandbox: required"))
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert (verdict.verdict, codes(verdict)) == (Verdict.FAIL, {"isolation_absent"})
    links = {finding.data["link"] for finding in verdict.findings}
    assert links == {"training", "predict"}


def test_what_has_a_value_is_not_evaluated_again(world: World) -> None:
    experiment = passed(world)
    before = world.project.ledger.evaluations(experiment)
    evaluate(world, experiment)
    assert world.project.ledger.evaluations(experiment) == before


def test_each_look_at_held_out_is_counted_before_it_is_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = passed(world)

    def crash(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(InProcess, "run", crash)
        with pytest.raises(KeyboardInterrupt):
            evaluate(world, experiment, Split.HELD_OUT)
    assert world.project.ledger.queries("signs", Split.HELD_OUT) == 1
    evaluate(world, experiment, Split.HELD_OUT)
    evaluate(world, experiment, Split.HELD_OUT)  # nothing is due: no look
    assert world.project.ledger.queries("signs", Split.HELD_OUT) == 2


def test_what_is_refused_before_predict_sees_the_rows_costs_no_look(world: World) -> None:
    experiment = passed(world)
    ledger = world.project.ledger
    finals = {item.run: item for item in ledger.checkpoints(experiment) if item.final}
    for item in finals.values():
        (world.root / item.path).write_text("something else")
    evaluate_experiment(
        world.project,
        experiment,
        Split.HELD_OUT,
        InProcess(),
        environment={},
        admit=lambda project, name: None,
    )
    made = ledger.evaluations(experiment, Split.HELD_OUT)
    assert [[found.code for found in item.findings] for item in made] == [
        ["checkpoint_changed"]
    ] * len(finals)
    assert {item.query for item in made} == {0}
    assert ledger.queries("signs", Split.HELD_OUT) == 0


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_predictions_that_no_reader_takes_are_a_finding(
    world: World, monkeypatch: pytest.MonkeyPatch, method: int
) -> None:
    """The look is spent, because predict saw the rows; the judge lives, and says what was wrong."""
    experiment = passed(world)

    def packed(*_: Any, environment: Any, **__: Any) -> Completed:
        with zipfile.ZipFile(environment[PREDICTIONS], "w", method) as target:
            target.writestr("id.npy", b"x" * 100)
        return Completed(exit_code=0, stdout=b"", stderr=b"", timed_out=False, seconds=0.0)

    monkeypatch.setattr(InProcess, "run", packed)
    assert set(evaluate(world, experiment, Split.HELD_OUT)) == {None}
    made = world.project.ledger.evaluations(experiment, Split.HELD_OUT)
    assert {found.code for item in made for found in item.findings} == {"predictions_unreadable"}
    assert world.project.ledger.queries("signs", Split.HELD_OUT) == 1


@pytest.mark.parametrize(
    ("trained", "minutes", "limit"),
    [
        (0.0, None, 60.0),
        (5.0, None, 60.0),
        (90.0, None, 90.0),
        (4000.0, None, 600.0),
        (5.0, 0.5, 30.0),
        (5.0, 90, 5400.0),
    ],
)
def test_predict_may_take_as_long_as_the_run_trained_or_as_the_plan_says(
    world: World, trained: float, minutes: float | None, limit: float
) -> None:
    plan = plan_from(world.project.plan().content)
    oracle = plan.oracle.model_copy(update={"predict_minutes": minutes})
    given = plan.model_copy(update={"oracle": oracle})
    assert predict_limit(given, trained) == limit


def test_a_look_at_held_out_needs_a_pass_on_validation_that_stands(world: World) -> None:
    """A look that is taken without one is spent, and its rows are worn for the next candidate."""
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment)

    def refused(said: str) -> None:
        with pytest.raises(RefusedError, match=f"is {said}; expected PASS") as caught:
            evaluate(world, experiment, Split.HELD_OUT)
        assert caught.value.code == "validation_not_passed"
        assert f"harness gate check {experiment}" in caught.value.hint
        assert world.project.ledger.queries("signs", Split.HELD_OUT) == 0

    refused("none yet")
    check_gate(world.project, experiment)  # result.md is missing
    refused("FAIL")
    world.result(experiment)
    check_gate(world.project, experiment)
    world.path(experiment, "config").write_text("cut: 0.5\n")
    refused("STALE")
    check_gate(world.project, experiment)
    assert len(evaluate(world, experiment, Split.HELD_OUT)) == 3


def test_held_out_is_no_longer_due_when_the_plan_changed_since(world: World) -> None:
    experiment = passed(world)
    evaluate(world, experiment, Split.HELD_OUT)
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    approve_plan(world.project, world.root / "plan.md", by="a person")
    assert due_gate(world.project, experiment) is VALIDATION


def test_seeds_that_somebody_picked_fail(world: World) -> None:
    experiment = world.open().id
    for seed, cut in zip((1, 2, 3), GOOD, strict=True):
        world.train_one(experiment, seed, cut)
    evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert (verdict.verdict, codes(verdict)) == (Verdict.FAIL, {"seeds_not_of_the_plan"})


def test_seeds_of_an_earlier_version_of_the_plan_are_the_plans(world: World) -> None:
    experiment = world.open().id
    world.train(experiment)
    (world.root / "plan.md").write_text(PLAN.replace("total_minutes: 10", "total_minutes: 20"))
    approve_plan(world.project, world.root / "plan.md", by="a person")
    evaluate(world, experiment)
    world.result(experiment)
    assert check_gate(world.project, experiment).verdict is Verdict.PASS


def train_with_a_nan(log: Any, folder: Path, cut: float) -> None:
    with log:
        log.start()
        for epoch in range(25):
            log.epoch(epoch, {"loss": 1.81, "grad_norm": float("nan") if epoch >= 4 else 1.0})
        path = log.checkpoint_dir / "last.json"
        path.write_text(json.dumps({"cut": cut, "seed": log.seed}))
        log.checkpoint_saved(path, final=True)


def test_what_was_noticed_in_the_metrics_is_said_and_blocks_nothing(world: World) -> None:
    """The final checkpoint comes after the NaN: whether that did harm, its recomputed score
    says."""
    experiment = world.open().id
    world.train(experiment, log=train_with_a_nan)
    evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert (verdict.verdict, verdict.tier) == (Verdict.PASS, Tier.SHOULD)
    assert verdict.notes[:2] == (
        f"{experiment}/run-01: 21 values are not finite, the first at 4",
        f"{experiment}/run-01: loss is exactly 1.81 in 25 rows in a row, from 0 on",
    )
    assert len(verdict.notes) == 6
    assert check_gate(world.project, experiment) == verdict
    write_derived(world.project)
    assert f"- noticed: {verdict.notes[0]}" in world.project.layout.briefing.read_text()
    assert details(world.project, world.project.ledger.experiment(experiment))["verdicts"][-1][
        "notes"
    ] == list(verdict.notes)


NEXT = {
    "# Next\n\nSome words.\n\n- a wider kernel\n- more data\n": "a wider kernel",
    "1. [ ] a wider kernel\n2. more data": "a wider kernel",
    "# Next\n\nTry a wider kernel.\n": "Try a wider kernel.",
    "# Next\n": None,
    "": None,
}


@pytest.mark.parametrize("text", NEXT)
def test_the_first_idea_of_next_md_is_what_is_planned_next(world: World, text: str) -> None:
    experiment = world.open().id
    world.path(experiment, "next").write_text(text)
    verdict = check_gate(world.project, experiment)
    assert verdict.next_planned == NEXT[text]
    write_derived(world.project)
    shown = f'"{NEXT[text]}"' if NEXT[text] else "decide, or mend it"
    assert f"| {shown} |" in world.project.layout.project("checklist").read_text()


def test_next_md_that_is_a_link_or_unreadable_names_nothing(world: World, tmp_path: Path) -> None:
    experiment = world.open().id
    (tmp_path / "secret").write_text("- a secret\n")
    world.path(experiment, "next").symlink_to(tmp_path / "secret")
    assert check_gate(world.project, experiment).next_planned is None
    world.path(experiment, "next").unlink()
    world.path(experiment, "next").write_bytes(b"- \xff\xfe")
    assert check_gate(world.project, experiment).next_planned is None


def test_a_spent_query_budget_refuses_the_look(world: World) -> None:
    experiment = passed(world)
    for _ in range(3):
        world.project.ledger.query_held_out(experiment, 3)
    with pytest.raises(RefusedError, match="held-out evaluations"):
        evaluate(world, experiment, Split.HELD_OUT)
    assert world.project.ledger.evaluations(experiment, Split.HELD_OUT) == []


def test_an_evaluation_cut_between_seeds_goes_on_where_it_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = world.open().id
    world.train(experiment)
    real, second = concurrent_seeds.evaluate_run, world.seed(2)

    def second_is_cut(request: Any, *rest: Any) -> Any:
        if request.seed == second:
            raise KeyboardInterrupt
        return real(request, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(concurrent_seeds, "evaluate_run", second_is_cut)
        with pytest.raises(KeyboardInterrupt):
            evaluate(world, experiment)
    assert [item.run for item in world.project.ledger.evaluations(experiment)] == ["run-01"]
    assert sorted(awaiting(world.project, experiment, Split.VALIDATION)) == [
        "run-01",
        "run-02",
        "run-03",
    ]
    assert None not in evaluate(world, experiment)
    assert [item.run for item in world.project.ledger.evaluations(experiment)] == [
        "run-01",
        "run-02",
        "run-03",
    ]
    assert awaiting(world.project, experiment, Split.VALIDATION) == []


def test_a_cut_before_the_files_were_written_is_healed(world: World) -> None:
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment)
    world.path(experiment, "score").unlink()
    assert awaiting(world.project, experiment, Split.VALIDATION)
    evaluate(world, experiment)
    assert world.path(experiment, "score").exists()
    assert len(world.project.ledger.evaluations(experiment)) == 3


def test_predict_that_crashes_is_the_experiments_fault(world: World) -> None:
    (world.root / "predict.py").write_text("raise SystemExit(3)\n")
    experiment = world.open().id
    world.train(experiment)
    assert evaluate(world, experiment, sandbox=NoSandbox()) == [None, None, None]
    world.result(experiment)
    verdict = check_gate(world.project, experiment)
    assert verdict.verdict is Verdict.FAIL
    assert codes(verdict) == {"predict_crashed"}
    assert awaiting(world.project, experiment, Split.VALIDATION) == []


def test_the_real_predict_command_scores_like_the_one_in_process(world: World) -> None:
    experiment = world.open().id
    world.train(experiment)
    real = evaluate(world, experiment, sandbox=NoSandbox())
    other = world.open_another(experiment)
    world.train(other)
    assert evaluate(world, other) == real


def test_a_verdict_cut_before_the_move_is_healed_without_a_second_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = world.open().id
    world.train(experiment)

    def cut(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(world.project.ledger), "move_experiment", cut)
        with pytest.raises(KeyboardInterrupt):
            check_gate(world.project, experiment)
    assert world.project.ledger.experiment(experiment).status is ExperimentStatus.RUNNING
    check_gate(world.project, experiment)
    assert world.project.ledger.experiment(experiment).status is ExperimentStatus.JUDGED
    assert len(world.project.ledger.verdicts(experiment)) == 1


def test_the_gate_that_is_due_is_held_out_once_it_was_looked_at(world: World) -> None:
    experiment = passed(world)
    assert due_gate(world.project, experiment) is VALIDATION
    evaluate(world, experiment, Split.HELD_OUT)
    assert due_gate(world.project, experiment) is HELD_OUT


def test_errors_say_which(world: World) -> None:
    with pytest.raises(NotFoundError):
        check_gate(world.project, "exp-0404")
    with pytest.raises(NotFoundError):
        collect(world.project, "exp-0404", VALIDATION)


def kept_parent(world: World) -> str:
    parent = passed(world)
    evaluate(world, parent, Split.HELD_OUT)
    check_gate(world.project, parent)
    keep(world, parent)
    return parent


def tried(world: World, parent: str, cuts: tuple[float, ...]) -> dict[str, Any]:
    child = world.open("Another cut", parent).id
    world.train(child, cuts)
    evaluate(world, child)
    world.result(child)
    comparison = check_gate(world.project, child, VALIDATION).comparison
    assert comparison is not None
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(
        world.project, kind="CANCEL", experiment=child, by="a person", confidence="high", **words
    )
    return comparison


def test_tries_against_one_parent_are_counted_and_later_ones_change_no_verdict(
    world: World,
) -> None:
    parent = kept_parent(world)
    first, second = (tried(world, parent, cuts) for cuts in ((0.3, 0.31, 0.32), (0.2, 0.21, 0.22)))
    assert [item["comparisons"] for item in (first, second)] == [1, 2]
    assert second["p_corrected"] >= second["p"]
    assert "after correction for 2 comparisons with this reference." in explain(second)
    verdict = world.project.ledger.latest_verdict("exp-0002", VALIDATION)
    assert verdict is not None
    assert verdict.comparison == first
    assert "comparison" not in changed(world.project, verdict)
    shown = change_text(
        world.project.ledger.summary("exp-0003"), None
    )  # CHECKLIST.md says what the gate said
    assert shown is not None
    assert shown.endswith(f"({worth(second)}; try 2, on readable labels)")


def test_code_that_was_scored_and_left_behind_inside_one_experiment_is_a_try(world: World) -> None:
    """Edit, train, look at validation, edit again: the correction sees each look, in this verdict and in
    later ones."""
    parent = kept_parent(world)
    experiment = world.open("Some cut", parent).id
    for place, cut in enumerate((0.3, 0.25, 0.2)):
        (world.root / "train.py").write_text(f"print({place})\n")
        world.train(experiment, (cut, cut + 0.01, cut + 0.02))
        if place != 1:  # nobody looked at the second
            evaluate(world, experiment)
    world.result(experiment)
    comparison = check_gate(world.project, experiment, VALIDATION).comparison
    assert comparison is not None
    assert comparison["comparisons"] == 2
    assert "after correction for 2 comparisons with this reference." in explain(comparison)
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(
        world.project,
        kind="CANCEL",
        experiment=experiment,
        by="a person",
        confidence="high",
        **words,
    )
    assert tried(world, parent, (0.2, 0.21, 0.22))["comparisons"] == 3


def test_a_child_of_a_parent_scored_under_another_version_is_no_try_against_the_trivial_predictor(
    world: World,
) -> None:
    parent = kept_parent(world)
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    approve_plan(world.project, world.root / "plan.md", by="a person")
    tried(world, parent, (0.2, 0.21, 0.22))
    orphan = world.open("From nothing").id
    world.train(orphan, (0.1, 0.11, 0.12))
    evaluate(world, orphan)
    comparison = compared(
        world.project, world.project.ledger.experiment(orphan), world.project.plan()
    )
    assert comparison is not None
    assert (comparison["against"], comparison["comparisons"]) == (TRIVIAL, 1)


def test_without_a_trivial_score_a_parent_of_another_version_is_inconclusive_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script's score may have no trivial one beside it."""
    append = type(world.project.ledger).append

    def bare(ledger: Any, fact: Any) -> Any:
        return append(
            ledger, replace(fact, baseline=None) if isinstance(fact, EvaluationRecorded) else fact
        )

    parent = kept_parent(world)
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    approve_plan(world.project, world.root / "plan.md", by="a person")
    monkeypatch.setattr(type(world.project.ledger), "append", bare)
    child = world.open("Another cut", parent).id
    world.train(child, (0.2, 0.21, 0.22))
    evaluate(world, child)
    world.result(child)
    verdict = check_gate(world.project, child, VALIDATION)
    assert (verdict.verdict, codes(verdict)) == (Verdict.INCONCLUSIVE, {"reference_seeds_fewer"})


def test_a_repeat_of_a_parent_with_its_code_and_seeds_may_leave_its_bytes(world: World) -> None:
    """What `reference_seeds_fewer` asks for, where training is deterministic."""
    parent = kept_parent(world)
    repeat = world.open("The same again", parent).id
    world.train(repeat)
    evaluate(world, repeat)
    world.result(repeat)
    assert "checkpoint_copied" not in codes(check_gate(world.project, repeat, VALIDATION))
    copy = world.open_another(repeat)
    (world.root / "train.py").write_text("print('copy')\n")
    world.train(copy)
    evaluate(world, copy)
    world.result(copy)
    verdict = check_gate(world.project, copy, VALIDATION)
    assert (verdict.verdict, "checkpoint_copied" in codes(verdict)) == (Verdict.FAIL, True)


def test_rows_are_compared_in_pairs_from_predictions_in_the_vault(world: World) -> None:
    parent = kept_parent(world)
    found = tried(world, parent, (0.3, 0.31, 0.32))["paired"]
    assert found["test"] == "signs of the rows"  # the mean over seeds is no whole number
    assert found["n"] == 200
    assert (found["candidate_ahead"], found["reference_ahead"]) == (4, 35)
    assert found["p"] <= 1 / 5000  # the least of 4,999 tosses
    for item in world.project.ledger.evaluations(parent, Split.VALIDATION):
        assert (world.project.layout.objects / str(item.predictions)).is_file()
    for item in world.project.ledger.evaluations(parent, Split.HELD_OUT):
        assert not (world.project.layout.objects / str(item.predictions)).exists()


def test_without_kept_predictions_seeds_alone_are_compared(world: World) -> None:
    parent = kept_parent(world)
    for item in world.project.ledger.evaluations(parent, Split.VALIDATION):
        (world.project.layout.objects / str(item.predictions)).unlink(missing_ok=True)
    comparison = tried(world, parent, (0.3, 0.31, 0.32))
    assert comparison["paired"] is None
    assert comparison["better"] is False


def test_a_parent_of_another_version_of_the_plan_must_be_scored_again(world: World) -> None:
    parent = kept_parent(world)
    (world.root / "plan.md").write_text(PLAN.replace("python predict", "python ./predict"))
    approve_plan(world.project, world.root / "plan.md", by="a person")
    child = world.open("Another cut", parent).id
    world.train(child, (0.2, 0.21, 0.22))
    evaluate(world, child)
    world.result(child)
    verdict = check_gate(world.project, child, VALIDATION)
    assert (verdict.verdict, codes(verdict)) == (Verdict.INCONCLUSIVE, {"reference_seeds_fewer"})
    assert verdict.comparison is not None
    assert verdict.comparison["better"] is None
    assert "exp-0001 has no score since plan version 2, which began this comparison." in explain(
        verdict.comparison
    )
    evaluate(world, parent)
    assert check_gate(world.project, child, VALIDATION).verdict is Verdict.PASS


def test_a_change_of_predict_alone_may_leave_the_same_weights(world: World) -> None:
    """By training again; where training draws nothing at random, each seed leaves them."""
    parent = passed(world)
    again = world.open_another(parent)
    predict = world.root / "predict.py"
    predict.write_text(predict.read_text("utf-8") + "# otherwise\n", "utf-8")
    world.train(again)
    evaluate(world, again)
    world.result(again)
    verdict = check_gate(world.project, again, VALIDATION)
    assert (verdict.verdict, codes(verdict)) == (Verdict.PASS, set())
