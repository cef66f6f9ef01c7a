"""Whether two snapshots train by the same code."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.artifacts.code_snapshot import Snapshot, take_snapshot
from harness.artifacts.training_code import loaded_by_name, same_training

FILES = {
    "train.py": "import numpy\nfrom model import Net\nimport parts.loader as loader\n",
    "model.py": "class Net: ...\n",
    "parts/__init__.py": "",
    "parts/loader.py": "from . import rows\n",
    "parts/rows.py": "",
    "predict.py": "from model import Net\nimport smooth\n",
    "smooth.py": "WIDTH = 3\n",
    "rate.json": "0.5\n",
    "thresholds.json": "0.5\n",
}
ARGV, PREDICT = ("python", "train.py"), ("python", "predict.py", "./thresholds.json")


def snapshot(root: Path, objects: Path, files: Mapping[str, str]) -> Snapshot:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return take_snapshot(root, objects)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("predict.py", True),
        ("smooth.py", True),
        ("new.py", True),
        ("thresholds.json", True),
        ("train.py", False),
        ("model.py", False),
        ("parts/__init__.py", False),
        ("parts/loader.py", False),
        ("parts/rows.py", False),
        ("rate.json", False),
    ],
)
def test_only_what_training_does_not_run_may_change(
    tmp_path: Path, changed: str, same: bool
) -> None:
    root, objects = tmp_path / "root", tmp_path / "objects"
    before = snapshot(root, objects, FILES)
    after = snapshot(root, objects, {changed: FILES.get(changed, "") + "\n# changed\n"})
    assert same_training(before, after, ARGV, PREDICT, objects) is same
    assert same_training(after, before, ARGV, PREDICT, objects) is same


def test_a_module_is_followed_and_a_shell_script_is_not_known(tmp_path: Path) -> None:
    root, objects = tmp_path / "root", tmp_path / "objects"
    before = snapshot(root, objects, {**FILES, "run.sh": "python train.py\n"})
    after = snapshot(root, objects, {"smooth.py": "WIDTH = 5\n"})
    assert same_training(before, after, ("python", "-m", "parts.loader"), PREDICT, objects)
    assert not same_training(before, after, ("sh", "run.sh"), PREDICT, objects)
    assert not same_training(before, after, ("make",), PREDICT, objects)
    assert same_training(before, before, ("make",), PREDICT, objects)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("train.py", 'import importlib\nNet = importlib.import_module("models.mlp").Net\n'),
        ("train.yaml", "_target_: models.mlp.Net\n"),
        ("other.py", "models.mlp"),
    ],
)
def test_a_file_that_training_may_load_by_its_name_is_told(
    tmp_path: Path, file: str, text: str
) -> None:
    root, objects = tmp_path / "root", tmp_path / "objects"
    before = snapshot(root, objects, {**FILES, "models/mlp.py": "WIDTH = 3\n", file: text})
    after = snapshot(root, objects, {"models/mlp.py": "WIDTH = 5\n"})
    named = set() if file == "other.py" else {"models/mlp.py"}
    assert loaded_by_name(before, after, ARGV, objects) == named
    assert loaded_by_name(before, before, ARGV, objects) == set()
    by_command = ("python", "train.py", "--model=mlp")
    assert loaded_by_name(before, after, by_command, objects) == {"models/mlp.py"}
