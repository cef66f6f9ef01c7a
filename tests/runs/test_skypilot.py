"""SkyPilot's task file: written, checked, and nothing else."""

from pathlib import Path

import jsonschema
import pytest
import yaml
from placed_support import placing

CONFIG = """[launchers.skypilot]
cloud = "aws"
accelerators = "A100:1"
use_spot = true
setup = ["pip install ./harness", "harness doctor"]
"""

# What of SkyPilot's own schema (sky/utils/schemas.py, 0.14) a task of ours may have.
_TEXT = {"type": "string", "minLength": 1}
_RESOURCES = ("cloud", "region", "accelerators", "cpus", "memory", "image_id", "use_spot")
TASK_SCHEMA = {
    "type": "object",
    "required": ["name", "workdir", "resources", "setup", "run"],
    "additionalProperties": False,
    "properties": {
        "name": {**_TEXT, "pattern": "^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$"},
        "workdir": _TEXT,
        "num_nodes": {"const": 1},
        "resources": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                **dict.fromkeys(_RESOURCES, _TEXT),
                "use_spot": {"type": "boolean"},
            },
        },
        "setup": _TEXT,
        "run": _TEXT,
    },
}


def test_the_task_says_what_config_says_and_nothing_is_trained(tmp_path: Path) -> None:
    placed = placing(tmp_path, CONFIG)
    path = tmp_path / "task.yaml"
    words = ("exp-0001", "--launcher", "skypilot", "--write", str(path))
    said = placed.train(*words, "--", "python", "train.py", "--name", "a b")
    assert said["written"] == str(path)
    task = yaml.safe_load(path.read_text())
    assert task == {
        "name": "exp-0001",
        "workdir": ".",
        "num_nodes": 1,
        "resources": {"cloud": "aws", "accelerators": "A100:1", "use_spot": True},
        "setup": "pip install ./harness\nharness doctor\n",
        "run": "harness train exp-0001 -- python train.py --name 'a b'\n",
    }
    jsonschema.validate(task, TASK_SCHEMA)
    with placed.project(read_only=True) as project:
        assert project.ledger.runs("exp-0001") == []
    again = placed.train(*words)
    assert (again["error"]["code"], again["exit"]) == ("file_exists", 2)
    nowhere = placed.train(*words[:-1], "/proc/task.yaml")
    assert (nowhere["error"]["code"], nowhere["exit"]) == ("not_written", 2)
    alone = placed.train("exp-0001", "--launcher", "skypilot")
    assert "--write FILE go together" in alone["error"]["message"]
    schemas = pytest.importorskip(
        "sky.utils.schemas", reason="SkyPilot is not installed: its own schema was not asked"
    )
    jsonschema.validate(task, schemas.get_task_schema())
    jsonschema.validate(task["resources"], schemas.get_resources_schema())
