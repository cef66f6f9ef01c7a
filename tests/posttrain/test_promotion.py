"""Evaluations decide, promotion is earned step by step, and can be undone."""

from pathlib import Path

import pytest

from harness.domain.models import ModelState
from harness.errors import NotFoundError, RefusedError
from harness.ledger.project import Project
from harness.posttrain import promotion
from harness.posttrain.program import TrainingProgram
from harness.posttrain.promotion_checks import observe
from harness.posttrain.vocabulary import EvaluationMode
from tests.posttrain import programs

READER = "local-reader"


def promote(project: Project, model: str) -> promotion.Promotion:
    return promotion.promote(project, model, by="human:ada", reason="it is better")


def refused(made: promotion.Promotion) -> set[str]:
    assert not made.moved
    assert made.decision is None
    return {item.constraint for item in made.checks if not item.passed}


@pytest.fixture
def model(execute, project) -> str:
    found = execute().model
    assert found is not None
    return found


def to_shadow(project: Project, program: TrainingProgram, model: str) -> None:
    assert program.attach_evaluation(model).verdict == "PASS"
    assert promote(project, model).after is ModelState.CANDIDATE
    assert promote(project, model).after is ModelState.SHADOW


def deploy(project: Project, program: TrainingProgram, model: str, clock) -> None:
    to_shadow(project, program, model)
    for _ in range(5):
        observe(project, model, "accepted", by="arbiter")
    clock.ahead += 3600
    assert promote(project, model).after is ModelState.PROMOTABLE
    assert promote(project, model).after is ModelState.DEPLOYED


def test_the_whole_way_rollback_and_revocation(
    execute, project, program, model, clock, root
) -> None:
    with pytest.raises(NotFoundError, match="No model is deployed"):
        promotion.serve_path(project, READER)
    to_shadow(project, program, model)
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
    second = execute(seed=2).model
    deploy(project, program, second, clock)
    assert project.ledger.model(model).state is ModelState.RETIRED
    served = promotion.rollback(project, READER, by="human:ada", reason="worse in use")
    assert (served.model, served.before) == (model, second)
    assert promotion.serve_path(project, READER) == first_path
    with pytest.raises(
        NotFoundError, match="No earlier good"
    ):  # it does not toggle back to what it left
        promotion.rollback(project, READER, by="human:ada", reason="again")
    programs.write_evaluator(root, base=0.9, candidate=0.4)
    assert program.attach_evaluation(model).verdict == "FAIL"
    assert project.ledger.model(model).state is ModelState.REVOKED
    with pytest.raises(NotFoundError):
        promotion.serve_path(project, READER)
    assert "evaluations" in refused(promote(project, model))
    programs.write_evaluator(root)
    program.attach_evaluation(model)
    assert promote(project, model).after is ModelState.CANDIDATE
    tree = program.lineage(model)
    assert [item["verdict"] for item in tree["runs"][0]["models"][0]["evaluations"]] == [
        "PASS",
        "FAIL",
        "PASS",
    ]
    assert [item["how"] for item in tree["served"]] == ["deploy", "deploy", "rollback", "clear"]
    assert [item.kind for item in project.ledger.decisions()].count("ROLLBACK") == 1
    before = project.ledger.models()
    project.ledger.rebuild()
    assert project.ledger.models() == before


def test_changed_bytes_are_not_served_or_promoted(project, program, model, clock) -> None:
    deploy(project, program, model, clock)
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
        (0.3, 0.6, "PASS", "me-0001 quality"),
    ],
)
def test_worse_equal_or_poor_models_stay(
    project, program, model, root, base, candidate, verdict, constraint
) -> None:
    programs.write_evaluator(root, base=base, candidate=candidate)
    assert program.attach_evaluation(model).verdict == verdict
    assert constraint in refused(promote(project, model))


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
    made = program.attach_evaluation(model)
    assert (made.verdict, made.candidate, made.delta) == ("INCONCLUSIVE", None, None)
    assert refused(promote(project, model)) == {"evaluations"}


def test_the_modes_differ_by_the_guidance(project, program, model, root: Path) -> None:
    programs.write_evaluator(
        root, change='answer["scores"] = [{**s, "margin": len(data)} for s in answer["scores"]]'
    )
    plain = program.attach_evaluation(model, EvaluationMode.REDUCED_PROMPT)
    assisted = program.attach_evaluation(model, EvaluationMode.PROMPT_ASSISTED)
    assert assisted.margin > plain.margin
    assert assisted.evidence["rows"] != plain.evidence["rows"]
