"""Trainer and evaluator in the strongest sandbox that works here."""

import os
from pathlib import Path

from harness.domain.statuses import SandboxKind
from harness.ledger.project import Project
from harness.posttrain.program import TrainingProgram
from harness.sandbox.select import choose
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
