"""The scenario that docs/formats.md shows is checked and played as it stands there."""

import re
from pathlib import Path

from toy_project import play

from harness.domain.statuses import SandboxKind
from harness.driver.scenario_check import check_scenario, reached
from harness.ledger.project import Project
from tests.centroids import PREDICT, TRAIN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"


def example() -> str:
    section = PAGE.read_text("utf-8").partition("## A scenario\n")[2]
    found = re.search(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_it_is_right_and_is_played_to_a_kept_experiment(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    root = project.layout.root
    (root / "train.py").write_text(TRAIN, "utf-8")
    (root / "predict.py").write_text(PREDICT, "utf-8")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(example(), "utf-8")
    found = check_scenario(scenario, reached(project))
    assert (found.problems, found.notes) == ((), ())
    played = play(project, scenario, sandbox=sandbox)
    assert played.ended.reason == "target", played.told
    assert [item.outcome for item in project.ledger.sessions()] == ["finished"] * 2
