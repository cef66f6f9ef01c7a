"""`harness doctor` starts the CLI that is on the PATH once, and believes only what that says."""

import os
from pathlib import Path

from tests.cli.journey import Answer, Journey
from tests.interactive.place import cli


def doctor(project: Journey, folder: Path) -> Answer:
    (folder / "bin").mkdir()
    (folder / "bin/claude").symlink_to(cli())
    return project.harness(
        "doctor", "--json", PATH=f"{folder}/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
    )


def test_the_guards_of_a_fresh_project_are_alive(fresh: Journey, tmp_path: Path) -> None:
    answer = doctor(fresh, tmp_path)
    checks = {check["name"]: check for check in answer.document["checks"]}
    assert answer.exit_code == 0, answer.stdout
    assert checks["cli_denies"]["ok"] is True, checks["cli_denies"]
