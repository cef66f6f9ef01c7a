"""Trainer and evaluator in the strongest sandbox that works here."""

import os
from pathlib import Path

import pytest

from harness.domain.grade import PERSON
from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError
from harness.ledger.project import Project, open_project
from harness.posttrain.base_models import add_base_model
from harness.posttrain.program import TrainingProgram
from harness.sandbox import reach
from harness.sandbox.select import choose
from tests.blobs import own_environment
from tests.posttrain import programs

LOOK = """
try:
    print(json.dumps(result()) if Path(spec["benchmark"]["path"]).read_bytes() and may_read else "")
except OSError:
    print(json.dumps(result()))
"""


def test_a_sandboxed_trainer_makes_a_model_that_is_evaluated_sandboxed(
    project: Project, root: Path
) -> None:
    box = choose(None, required=False)
    program = TrainingProgram(
        project, sandbox=box, inherited={"PATH": os.environ["PATH"]}, grace_s=0.5
    )
    may_read = box.kind is SandboxKind.NONE
    made = f'may_read = {may_read}\nadapter(out / "adapter", [spec["seed"] + 0.5, 2.0])\n'
    programs.write_trainer(root, made + LOOK)
    programs.approve(project)
    models = []
    for seed in (1, 2, 3):
        report = program.execute(program.create(programs.request(seed=seed), by="me").experiment)
        assert report.model is not None, report.run.reason
        models.append(report.model)
    verdicts = [program.attach_evaluation(model).verdict for model in models]
    assert verdicts == ["INCONCLUSIVE", "INCONCLUSIVE", "PASS"]


def test_a_base_model_in_the_state_directory_opens_nothing_else_of_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the state directory lies in a folder of the system, say in /opt."""
    box = choose(None, required=False)
    if box.kind is not SandboxKind.BWRAP:
        pytest.skip("landlock hides nothing below a readable folder, and says so")
    monkeypatch.setattr(reach, "SYSTEM", (*reach.SYSTEM, str(tmp_path)))
    with open_project(root, own_environment(tmp_path), caller=PERSON) as project:
        state = project.layout.state
        (secret := state / "vault" / "labels.csv").parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("1,0\n")
        (weights := state / "models" / "weights").mkdir(parents=True)
        (weights / "w.bin").write_text("w")
        add_base_model(project, programs.MODEL, weights=weights, gguf=None, inherited={})
        seen = (
            f"assert not Path({str(secret)!r}).exists()\n"
            f"assert [one.name for one in Path({str(weights)!r}).iterdir()] == ['w.bin']\n"
        )
        programs.write_trainer(root, seen + programs.GOOD)
        programs.write_evaluator(root, change=seen)
        programs.approve(project)
        program = TrainingProgram(
            project, sandbox=box, inherited={"PATH": os.environ["PATH"]}, grace_s=0.5
        )
        made = program.execute(program.create(programs.request(), by="me").experiment)
        assert made.model is not None, made.run.reason
        scored = program.attach_evaluation(made.model)
        assert scored.candidate == 0.9, scored.reason


def test_code_outside_of_the_project_that_changes_while_it_scores_scores_nothing(
    root: Path, tmp_path: Path
) -> None:
    config = root / ".harness/config.toml"
    config.write_text(f"{config.read_text()}readable = ['{tmp_path / 'lib'}']\n")
    outside = tmp_path / "lib" / "outside.py"
    outside.parent.mkdir()
    outside.write_text(programs.EVALUATOR)
    again = f"Path({str(outside)!r}).write_text('print()') if request['adapter'] else None"
    programs.write_evaluator(root, change=again)
    with open_project(root, own_environment(tmp_path), caller=PERSON) as project:
        box = choose(SandboxKind.NONE, required=False)
        program = TrainingProgram(project, sandbox=box, inherited={"PATH": os.environ["PATH"]})
        words = ["python", str(outside)]
        programs.approve(project, evaluator=words)
        request = programs.request(evaluator=words)
        made = program.execute(program.create(request, by="me").experiment)
        assert made.model is not None, made.run.reason
        with pytest.raises(RefusedError) as refused:
            program.attach_evaluation(made.model)
        assert refused.value.code == "evaluator_changed"
        assert project.ledger.model_history(made.model).evaluations == ()
