"""Training in a plan with a hidden validation: it is told of the train table alone, and there is
no other table in its workspace."""

import json
from pathlib import Path

from runs_support import GOOD, Trainer

from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from tests.blobs import hide_validation


def test_training_is_given_the_train_table_alone(
    project: Project, run_training: Trainer, root: Path
) -> None:
    hide_validation(root)
    approve_plan(project, root / "plan.md", by="tester")
    code = (
        "import json, os\n"
        + GOOD
        + '    seen = {**os.environ, "data": sorted(os.listdir("data"))}\n'
        + '    (log.checkpoint_dir / "seen.json").write_text(json.dumps(seen))\n'
    )
    assert run_training(code, seeds=[1]).ok
    kept = project.layout.run("exp-0001", "run-01", "checkpoints") / "seen.json"
    seen = json.loads(kept.read_text())
    assert seen["HARNESS_TRAIN"] == f"{seen['HARNESS_PROJECT']}/data/train.npz"
    assert "HARNESS_VALIDATION" not in seen
    assert seen["data"] == ["train.npz"]
