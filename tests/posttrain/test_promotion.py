"""Evaluations decide, promotion is earned step by step, and can be undone."""

from pathlib import Path

import pytest

from harness.domain.models import ModelState
from harness.errors import NotFoundError, RefusedError
from harness.ledger.facts import ModelEvaluation
from harness.ledger.project import Project
from harness.posttrain import promotion
from harness.posttrain.program import TrainingProgram
from harness.posttrain.promotion_checks import observe
from harness.posttrain.vocabulary import EvaluationMode
from tests.conformance.imported import Imports
from tests.posttrain import programs

READER = "local-reader"


def promote(project: Project, model: str) -> promotion.Promotion:
    return promotion.promote(project, model, by="human:ada", reason="it is better")


def refused(made: promotion.Promotion) -> set[str]:
    assert not made.moved
    assert made.decision is None
    return {item.constraint for item in made.checks if not item.passed}


@pytest.fixture
def models(execute, project, tmp_path: Path) -> list[str]:
    """Of each seed that a person asks for; the first was trained here."""
    programs.approve(project)
    first = execute().model
    assert first is not None
    imports = Imports(project, tmp_path)
    return [first, *(imports.model(seed) for seed in (2, 3))]


@pytest.fixture
def model(models: list[str]) -> str:
    return models[0]


def evaluate(program: TrainingProgram, models: list[str]) -> ModelEvaluation:
    """The last one's evaluation: the verdict of them all."""
    return [program.attach_evaluation(model) for model in models][-1]


def to_shadow(project: Project, model: str) -> None:
    assert promote(project, model).after is ModelState.CANDIDATE
    assert promote(project, model).after is ModelState.SHADOW


def deploy(project: Project, model: str, clock) -> None:
    to_shadow(project, model)
    for _ in range(5):
        observe(project, model, "accepted", by="arbiter")
    clock.ahead += 3600
    assert promote(project, model).after is ModelState.PROMOTABLE
    assert promote(project, model).after is ModelState.DEPLOYED


def test_the_whole_way_rollback_and_revocation(project, program, models, clock, root) -> None:
    model, second, _ = models
    with pytest.raises(NotFoundError, match="No model is deployed"):
        promotion.serve_path(project, READER)
    assert evaluate(program, models).verdict == "PASS"
    to_shadow(project, model)
    assert refused(promote(project, model)) == {
        "shadow observations",
        "shadow seconds",
        "arbiter rejection",
        "execution rejection",
    }
    for outcome in ("accepted", "accepted", "accepted", "accepted", "rejected"):
        observe(project, model, outcome, by="arbiter")
    assert refused(promote(project, model)) == {"shadow seconds"}
    clock.ahead += 3600
    assert promote(project, model).after is ModelState.PROMOTABLE
    assert promote(project, model).after is ModelState.DEPLOYED
    first_path = promotion.serve_path(project, READER)
    with pytest.raises(RefusedError, match="no next step"):
        promote(project, model)
    deploy(project, second, clock)
    assert project.ledger.model(model).state is ModelState.RETIRED
    served = promotion.rollback(project, READER, by="human:ada", reason="worse in use")
    assert (served.model, served.before) == (model, second)
    assert promotion.serve_path(project, READER) == first_path
    with pytest.raises(
        NotFoundError, match="No earlier good"
    ):  # it does not toggle back to what it left
        promotion.rollback(project, READER, by="human:ada", reason="again")
    programs.write_evaluator(root, base=0.9, candidate=0.4)
    programs.approve(project)
    assert program.attach_evaluation(model).verdict == "FAIL"
    assert project.ledger.model(model).state is ModelState.REVOKED
    with pytest.raises(NotFoundError):
        promotion.serve_path(project, READER)
    assert "evaluations" in refused(promote(project, model))
    programs.write_evaluator(root)
    programs.approve(project)
    evaluate(program, models)
    assert promote(project, model).after is ModelState.CANDIDATE
    tree = program.lineage(model)
    assert [item["verdict"] for item in tree["runs"][0]["models"][0]["evaluations"]] == [
        "INCONCLUSIVE",
        "PASS",
        "FAIL",
        "PASS",
    ]
    assert [item["how"] for item in tree["served"]] == ["deploy", "deploy", "rollback", "clear"]
    assert [item.kind for item in project.ledger.decisions()].count("ROLLBACK") == 1
    before = project.ledger.models()
    project.ledger.rebuild()
    assert project.ledger.models() == before


def test_changed_bytes_are_not_served_or_promoted(project, program, models, clock) -> None:
    model = models[0]
    evaluate(program, models)
    deploy(project, model, clock)
    path = promotion.serve_path(project, READER)
    (path / "adapter_config.json").write_text('{"peft_type": "OTHER"}')
    with pytest.raises(RefusedError, match="no longer model"):
        promotion.serve_path(project, READER)
    with pytest.raises(RefusedError, match="no longer model"):
        program.attach_evaluation(model)


@pytest.mark.parametrize(
    ("base", "candidate", "verdict", "constraint"),
    [
        (0.5, 0.5, "FAIL", "evaluations"),
        (0.6, 0.4, "FAIL", "evaluations"),
        (0.3, 0.6, "PASS", "me-0003 quality"),
    ],
)
def test_worse_equal_or_poor_models_stay(
    project, program, models, root, base, candidate, verdict, constraint
) -> None:
    programs.write_evaluator(root, base=base, candidate=candidate)
    programs.approve(project)
    assert evaluate(program, models).verdict == verdict
    assert constraint in refused(promote(project, models[-1]))


@pytest.mark.parametrize(
    "change",
    [
        'answer |= {"status": "failed", "failure": "out of memory"}',
        pytest.param("raise SystemExit(1)", marks=pytest.mark.slow),
        pytest.param('answer["scores"] = answer["scores"][1:]', marks=pytest.mark.slow),
        pytest.param('answer["scores"][0]["value"] = float("nan")', marks=pytest.mark.slow),
        'answer["adapter_sha256"] = "0" * 64',
        'if request["adapter"] is None: answer["scores"] = []',
        'answer["scores"][0]["value"] = 10**400',
    ],
)
def test_an_evaluator_that_fails_is_inconclusive_never_a_score(
    project, program, model, root: Path, change
) -> None:
    programs.write_evaluator(root, change=change)
    programs.approve(project)
    made = program.attach_evaluation(model)
    assert (made.verdict, made.candidate, made.delta) == ("INCONCLUSIVE", None, None)
    assert refused(promote(project, model)) == {"evaluations"}


@pytest.mark.parametrize(
    "change",
    [
        'answer["failure"] = "row 7 has \\x1b[31mno\\nend"; end = 1',
        "raise SystemExit('warned\\nrow 7 has no end')",
    ],
)
def test_why_an_evaluator_failed_is_said_in_its_words(
    project, program, model, root: Path, change
) -> None:
    programs.write_evaluator(root, change=change)
    path = root / "judge.py"
    path.write_text(f"end = 0\n{path.read_text()}\nraise SystemExit(end)\n")
    programs.approve(project)
    made = program.attach_evaluation(model)
    assert made.verdict == "INCONCLUSIVE"
    assert "the evaluator failed: row 7 has no end" in made.reason
    assert "withheld" not in made.reason
    (kept,) = project.ledger.model_history(model).evaluations
    assert "row 7" not in str(kept)
    assert "withheld" in kept.reason


def test_the_modes_differ_by_the_guidance(project, program, model, root: Path) -> None:
    programs.write_evaluator(
        root, change='answer["scores"] = [{**s, "margin": len(data)} for s in answer["scores"]]'
    )
    programs.approve(project)
    plain = program.attach_evaluation(model, EvaluationMode.REDUCED_PROMPT)
    assisted = program.attach_evaluation(model, EvaluationMode.PROMPT_ASSISTED)
    assert assisted.margin > plain.margin
    assert assisted.evidence["rows"] != plain.evidence["rows"]


def test_an_evaluator_runs_in_a_copy_of_what_was_approved(
    project, program, model, root: Path
) -> None:
    programs.write_evaluator(root, change="Path('judge.py').write_text('print()')")
    programs.approve(project)
    kept = (root / "judge.py").read_text()
    (root / "judge.json").write_text('{"base": 0.0, "candidate": 1.0, "change": ""}')
    made = program.attach_evaluation(model)
    assert (made.baseline, made.candidate) == (0.4, 0.9), "by what lay there at the approval"
    assert (root / "judge.py").read_text() == kept
    assert list(project.layout.workspaces.glob("*")) == []
