"""What counts as the judge, whatever folder a command is called in."""

import json
import subprocess
import sys
from pathlib import Path

LOOKS = """
import json, pathlib, sys
from harness.guard.judge_files import judge_files
seen = judge_files(pathlib.Path(sys.argv[1]))
print(json.dumps([seen.sha256, seen.count]))
"""


def test_what_a_build_left_in_a_folder_makes_no_other_judge(tmp_path: Path) -> None:
    checkout, project = tmp_path / "checkout", tmp_path / "project"
    left = checkout / "experiment_harness.egg-info"
    left.mkdir(parents=True)
    project.mkdir()
    (left / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: experiment-harness\n\n", "utf-8")

    assert judge_seen_in(checkout) == judge_seen_in(project)


def test_the_packages_that_judging_imports_count(tmp_path: Path) -> None:
    _, count = judge_seen_in(tmp_path)
    assert count > 1000  # numpy alone


def judge_seen_in(folder: Path) -> tuple[str, int]:
    command = [sys.executable, "-c", LOOKS, str(folder / "seen.json")]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    sha256, count = json.loads(done.stdout)
    return sha256, count
