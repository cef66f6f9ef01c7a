from pathlib import Path

from harness.plans.parse import parse_plan
from harness.plans.scaffold import PLAN_FORM, scaffold
from harness.settings import load_settings

FILLED = {
    "name: TODO": "name: mine",
    "workflow: TODO": "workflow: research",
    "objective: TODO": "objective: Learn",
    "train: TODO": "train: data/a.csv",
    "path: TODO, inputs: [TODO], label: TODO, id: TODO": (
        "path: data/b.csv, inputs: [x], label: y, id: row"
    ),
    "metric: TODO": "metric: mae",
    "direction: TODO": "direction: minimize",
    "scorer: TODO": "scorer: mae",
    "predict: TODO": "predict: python predict.py",
    "must: TODO, should: TODO, could: TODO": "must: 3, should: 2, could: 1",
    "entry: TODO": "entry: python train.py",
}


def test_the_form_filled_in_is_a_plan() -> None:
    text = PLAN_FORM
    for before, after in FILLED.items():
        assert before in text
        text = text.replace(before, after)
    assert parse_plan(text, where="plan.md").name == "mine"


def test_init_writes_once_and_leaves_what_is_there(tmp_path: Path) -> None:
    root = tmp_path / "Some Repo"
    root.mkdir()
    (root / "plan.md").write_text("mine")
    written = scaffold(root)
    assert [path.relative_to(root).as_posix() for path in written] == [
        ".harness/config.toml",
        ".harness/.gitignore",
    ]
    assert (root / "plan.md").read_text() == "mine"
    settings = load_settings(root, {"HOME": str(tmp_path)})
    assert settings.project_id.startswith("some-repo-")
    assert scaffold(root) == []
    assert load_settings(root, {"HOME": str(tmp_path)}) == settings
