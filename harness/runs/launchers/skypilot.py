"""SkyPilot, by its task file: written and checked here, sent by a person with `sky launch`."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.errors import UsageError
from harness.files import atomic_write
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.plans.parse import plan_from

_RESOURCES = ("cloud", "region", "accelerators", "cpus", "memory", "image_id", "use_spot")
_SETUP = (
    "# The harness, as this machine gets it: a clone of it, or wheels.",
    "harness --version",
)


def task_of(
    project: Project, experiment: str, words: Sequence[str] | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The task that trains `experiment` where SkyPilot finds a machine. Raises NotFoundError."""
    record = project.require_here(experiment)
    plan = plan_from(plan_of(project, record).content)
    command = words or shlex.split(plan.training.entry)
    train = shlex.join(["harness", "train", record.id, "--", *command])
    return {
        "name": record.id,
        "workdir": ".",
        "num_nodes": 1,
        "resources": {name: options[name] for name in _RESOURCES if name in options},
        "setup": "\n".join(options.get("setup") or _SETUP) + "\n",
        "run": train + "\n",
    }


def write_task(path: Path, task: Mapping[str, Any]) -> None:
    """Raises UsageError: file_exists where something is at `path` already, not_written."""
    if path.exists():
        raise UsageError(
            f"{path} is there already.",
            hint="Name a new file: `--write task.yaml`.",
            code="file_exists",
        )
    try:
        atomic_write(path, yaml.safe_dump(dict(task), sort_keys=False))
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.",
            hint="Name a file in a folder that is there: `--write task.yaml`.",
            code="not_written",
        ) from error
