"""What an evaluation asks before it records a score, and what it does to a model that somebody
decided on meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.domain.models import ModelState
from harness.errors import RefusedError
from harness.ledger.chain import seal
from harness.ledger.facts import ModelMoved, apply, fact_from
from harness.ledger.project import Project
from harness.ledger.state import MemoryState
from harness.posttrain import model_evaluation
from harness.posttrain.evaluator_process import Scores
from harness.posttrain.program import TrainingProgram
from harness.posttrain.promotion import promote, reject_model
from tests.conformance.imported import Imports


@pytest.fixture
def model(project: Project, tmp_path: Path) -> str:
    return Imports(project, tmp_path).model()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Evaluators answer without a process: `candidate` of the rows are right, the baseline's none,
    after `first`."""

    def answer(candidate: float, first: Callable[[], Any] = lambda: None) -> None:
        def ask(project: Project, spec: Any, mode: Any, folder: Path, who: str, *rest: Any) -> Any:
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


def test_another_evaluator_than_was_specified_is_refused(
    project, program: TrainingProgram, model, asked, root
) -> None:
    asked(0.9)
    judge = root / "judge.py"
    kept = judge.read_text()
    judge.write_text(f"{kept}\n# everything is right")
    with pytest.raises(RefusedError, match=r"judge\.py") as refused:
        program.attach_evaluation(model)
    assert refused.value.code == "evaluator_changed"
    assert project.ledger.model_history(model).evaluations == ()
    judge.write_text(kept)
    made = program.attach_evaluation(model)
    spec = project.ledger.program("exp-0001").spec
    assert made.evidence["evaluator"] == spec["benchmark"]["evaluator"]["code_hash"]


def test_a_benchmark_that_is_not_rows_any_more_has_changed(
    program: TrainingProgram, model, root
) -> None:
    (root / "held_out.jsonl").write_text("{")
    with pytest.raises(RefusedError) as refused:
        program.attach_evaluation(model)
    assert refused.value.code == "benchmark_changed"


def test_one_that_changes_while_it_scores_gives_no_score(
    program: TrainingProgram, model, asked, root
) -> None:
    asked(0.9, lambda: (root / "judge.py").write_text("print()"))
    made = program.attach_evaluation(model)
    assert (made.verdict, made.candidate) == ("INCONCLUSIVE", None)
    assert "its code changed" in made.reason


def test_what_scored_and_how_it_was_kept_is_told_before_a_promotion(
    project, program, model, asked
) -> None:
    asked(0.9)
    made = program.attach_evaluation(model)
    lacks = made.reason.partition(";")[0]
    assert (made.sandbox, lacks) == ("none", "training not isolated, predict not isolated")
    (check,) = (
        item for item in step(project, model).checks if item.constraint == "me-0001 evaluator"
    )
    assert check.passed
    assert check.actual == f"{made.evidence['evaluator'][:12]}, not isolated"


def test_a_score_of_unknown_code_promotes_nothing(project, model, tmp_path) -> None:
    benchmark = {
        "sha256": "b" * 64,
        "evaluator": {"command": ["python", "judge.py"]},
        "path": "x",
        "rows": 40,
    }
    Imports(project, tmp_path).evaluated(model, benchmark=benchmark)
    made = step(project, model)
    assert [check.constraint for check in made.checks if not check.passed] == ["me-0001 evaluator"]


def test_a_model_that_is_rejected_while_it_is_scored_stays_rejected(
    project, program, model, asked
) -> None:
    asked(0.9)
    program.attach_evaluation(model)
    step(project, model)

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
