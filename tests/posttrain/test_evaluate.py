"""What an evaluation asks before it records a score, and what it does to a model that somebody
decided on meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.domain.models import ModelState
from harness.errors import RefusedError
from harness.ledger.chain import seal
from harness.ledger.facts import ModelMoved, apply, fact_from
from harness.ledger.project import Project
from harness.plans import judge
from harness.plans.changes import Changes
from harness.posttrain import model_evaluation
from harness.posttrain.benchmark_approval import Bar, approve_benchmark
from harness.posttrain.evaluator_process import Scores
from harness.posttrain.program import TrainingProgram
from harness.posttrain.promotion import promote, reject_model, rollback
from tests.conformance.imported import Imports
from tests.memory_state import MemoryState
from tests.posttrain import programs


@pytest.fixture
def models(project: Project, tmp_path: Path) -> list[str]:
    """One of each seed that a person asks for."""
    programs.approve(project)
    imports = Imports(project, tmp_path)
    return [imports.model(seed) for seed in (1, 2, 3)]


@pytest.fixture
def model(models: list[str]) -> str:
    return models[0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Evaluators answer without a process: `candidate` of the rows are right, the baseline's half,
    after `first`."""

    def answer(candidate: float, first: Callable[[], Any] = lambda: None) -> None:
        def ask(
            project: Project,
            approved: Any,
            spec: Any,
            mode: Any,
            folder: Path,
            who: str,
            *rest: Any,
        ) -> Any:
            first()
            names = [f"r{n}" for n in range(100, 140)]
            right = candidate * len(names) if who == "candidate" else 20
            return Scores(
                values={name: float(n < right) for n, name in enumerate(names)}, margins={}
            ), []

        monkeypatch.setattr(model_evaluation, "ask_evaluator", ask)

    return answer


def step(project: Project, model: str) -> Any:
    return promote(project, model, by="human:ada", reason="better")


def latest(project: Project, model: str) -> Any:
    return project.ledger.model_history(model).evaluations[-1]


def test_what_nobody_approved_is_not_judged(
    project, program: TrainingProgram, tmp_path, asked
) -> None:
    asked(0.9)
    model = Imports(project, tmp_path).model()
    with pytest.raises(RefusedError, match="held_out") as refused:
        program.attach_evaluation(model)
    assert refused.value.code == "benchmark_not_approved"
    programs.approve(project, evaluator="preference")
    with pytest.raises(RefusedError, match=r"judge\.py") as refused:
        program.attach_evaluation(model)
    assert refused.value.code == "evaluator_not_approved"
    assert project.ledger.model_history(model).evaluations == ()


def test_an_evaluator_that_the_agent_changed_is_not_the_approved_one(
    project, program: TrainingProgram, models, asked, root, tmp_path
) -> None:
    asked(0.9)
    kept = (root / "judge.py").read_text()
    (root / "judge.py").write_text(f"{kept}\n# everything is right")
    with pytest.raises(RefusedError) as refused:
        program.attach_evaluation(Imports(project, tmp_path).model(4))
    assert refused.value.code == "evaluator_not_approved"
    made = program.attach_evaluation(models[0])
    approved = project.ledger.approved_benchmarks()[-1]
    assert made.evidence["evaluator"] == approved.evaluator["code_hash"]
    assert made.evidence["approval"] == approved.sha256


def test_a_mended_evaluator_withdraws_the_flawed_one(
    project, program: TrainingProgram, models, asked, root
) -> None:
    asked(0.9)
    for one in models:
        program.attach_evaluation(one)
    flawed = project.ledger.approved_benchmarks()[-1]
    (root / "judge.py").write_text(f"{(root / 'judge.py').read_text()}\n# counts ties")
    told: list[Changes] = []
    bar = Bar(benchmark="held_out.jsonl", evaluator=["python", "judge.py"])
    mended = approve_benchmark(project, bar, by="human:ada", on_changes=told.append)
    assert [len(one.follows) for one in told] == [1]
    refused = step(project, models[0])
    assert not refused.moved
    assert {one.constraint.split()[-1] for one in refused.checks if not one.passed} == {
        "approval",
        "evaluator",
    }
    for one in models:
        made = program.attach_evaluation(one)
        assert made.evidence["approval"] == mended.sha256 != flawed.sha256
        assert made.evidence["evaluator"] == mended.evaluator["code_hash"]
    assert step(project, models[0]).moved
    bar = Bar(benchmark="held_out.jsonl", evaluator="preference")
    approve_benchmark(project, bar, by="human:ada", on_changes=told.append)
    assert "still judged by `python judge.py`" in told[-1].follows[-1]
    again = program.attach_evaluation(models[0])
    assert again.evidence["approval"] == mended.sha256, "another evaluator withdraws none"


def test_the_rows_are_those_of_the_vault_whatever_became_of_the_file(
    program: TrainingProgram, model, asked, root
) -> None:
    asked(0.9)
    (root / "held_out.jsonl").write_text("{")
    assert program.attach_evaluation(model).n == 40


def test_another_judge_judges_nothing(project, program, models, asked, monkeypatch) -> None:
    asked(0.9)
    for one in models:
        program.attach_evaluation(one)
    assert step(project, models[0]).moved
    changed_judge(monkeypatch)
    for forbidden in (
        lambda: program.attach_evaluation(models[0]),
        lambda: step(project, models[0]),
        lambda: program.execute("exp-0001"),
        lambda: rollback(project, "local-reader", by="human:ada", reason="x"),
    ):
        with pytest.raises(RefusedError) as refused:
            forbidden()
        assert refused.value.code == "judge_changed"
    programs.approve(project)
    assert step(project, models[0]).moved


def changed_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that judge are others from now on."""
    real = judge.judge_files
    monkeypatch.setattr(judge, "judge_files", lambda seen: replace(real(seen), sha256="0" * 64))


def test_a_pass_needs_every_seed_that_was_approved(
    project, program: TrainingProgram, models, asked, tmp_path
) -> None:
    asked(0.9)
    alone = program.attach_evaluation(models[0])
    assert (alone.verdict, alone.delta) == ("INCONCLUSIVE", 0.4)
    assert "not scored yet: 2, 3" in alone.reason
    assert program.attach_evaluation(models[1]).verdict == "INCONCLUSIVE"
    last = program.attach_evaluation(models[2])
    assert last.verdict == "PASS", last.reason
    assert last.joint["models"] == dict(zip("123", models, strict=True))
    assert [latest(project, one).verdict for one in models] == ["PASS"] * 3
    assert latest(project, models[0]).evidence == alone.evidence
    imports = Imports(project, tmp_path)
    assert "seed 4 is none" in program.attach_evaluation(imports.model(4)).reason
    assert [one.passed for one in imports.checks(models[0], "approval")] == [True]
    programs.approve(project, delta=0.5)
    assert [one.passed for one in imports.checks(models[0], "approval")] == [False]
    assert not step(project, models[0]).moved


def test_the_same_seed_again_is_no_second_chance(
    project, program: TrainingProgram, models, asked, tmp_path
) -> None:
    asked(0.9)
    again = Imports(project, tmp_path).bring(1, weights=(9.0, 9.0)).model
    assert again not in (None, models[0])
    assert "came first" in program.attach_evaluation(again).reason


def test_one_good_seed_passes_nothing(project, program: TrainingProgram, models, asked) -> None:
    for one, share in zip(models, (0.9, 0.56, 0.55), strict=True):
        asked(share)
        made = program.attach_evaluation(one)
    assert made.verdict == "INCONCLUSIVE", made.reason
    assert "within what seeds, rows and tries make" in made.reason
    assert not step(project, models[0]).moved


def test_each_recipe_that_is_scored_is_a_try(
    project, program: TrainingProgram, models, asked, tmp_path
) -> None:
    imports = Imports(project, tmp_path)
    asked(0.75)
    for number in range(2):
        more = {"hyperparameters": {"max_steps": number + 5}}
        other = imports.bring(1, more, weights=(number + 20.0, 1.0)).model
        assert program.attach_evaluation(other).joint["tries"] == number + 1
    for one in models:
        made = program.attach_evaluation(one)
    assert made.joint["tries"] == 3
    assert made.joint["p_corrected"] == pytest.approx(6 * made.joint["p"])
    assert program.attach_evaluation(other).joint["tries"] == 2


def test_what_scored_and_how_it_was_kept_is_told_before_a_promotion(
    project, program, models, asked
) -> None:
    asked(0.9)
    for one in models:
        made = program.attach_evaluation(one)
    lacks = made.reason.partition(";")[0]
    assert (made.sandbox, lacks) == ("none", "training not isolated, predict not isolated")
    (check,) = (
        item
        for item in step(project, models[2]).checks
        if item.constraint == f"{made.id} evaluator"
    )
    assert check.passed
    assert check.actual == f"{made.evidence['evaluator'][:12]}, not isolated"


def test_a_score_of_unknown_code_promotes_nothing(project, model, tmp_path) -> None:
    benchmark = {
        "sha256": "b" * 64,
        "evaluator": {"command": ["python", "judge.py"], "code_hash": "c" * 64},
        "path": "x",
        "rows": 40,
    }
    Imports(project, tmp_path).evaluated(model, benchmark=benchmark)
    made = step(project, model)
    assert [check.constraint for check in made.checks if not check.passed] == ["me-0001 evaluator"]


def test_a_model_that_is_rejected_while_it_is_scored_stays_rejected(
    project, program, models, asked
) -> None:
    asked(0.9)
    for one in models:
        program.attach_evaluation(one)
    model = models[0]
    assert step(project, model).moved

    def reject() -> None:
        if project.ledger.model(model).state is not ModelState.REJECTED:
            reject_model(project, model, by="human:ada", reason="it insults people")

    asked(0.1, reject)
    assert program.attach_evaluation(model).verdict == "FAIL"
    assert project.ledger.model(model).state is ModelState.REJECTED


def test_steps_of_another_clone_do_not_bring_a_rejected_one_back(model: str) -> None:
    state = MemoryState()
    state.insert(
        "models", {"id": model, "profile": "p", "record": {}, "state": "candidate", "since": "1"}
    )
    for seq, after in enumerate(("rejected", "revoked", "candidate"), 1):
        given = {"why": "", "by": "me", "checks": [], "evidence": {}, "decision": None}
        body = ModelMoved(model=model, before="candidate", after=after, **given).body()
        fact = seal(writer="w", seq=seq, prev="0" * 64, at=str(seq), kind="model_moved", body=body)
        apply(state, fact)
    row = state.get("models", model)
    assert row is not None
    assert row["state"] == "rejected"
    assert len(state.tables["model_records"]) == 3


def test_evaluations_from_before_the_sandbox_was_recorded_are_read(
    project, model, tmp_path
) -> None:
    made = Imports(project, tmp_path).evaluated(model)  # says nothing of a sandbox
    (stored,) = (item for item in project.ledger.facts() if item.kind == "model_evaluated")
    old = {name: value for name, value in stored.body().items() if name != "sandbox"}
    assert fact_from("model_evaluated", old).sandbox is made.sandbox is None
