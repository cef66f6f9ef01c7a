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
    made = f'may_read = {may_read}\nadapter(out / "adapter", [1.0, 2.0])\n'
    programs.write_trainer(root, made + LOOK)
    report = program.execute(program.create(programs.request(), by="me").experiment)
    assert report.model is not None, report.run.reason
    assert program.attach_evaluation(report.model).verdict == "PASS"
