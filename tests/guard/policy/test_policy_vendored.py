"""The policy is vendored into projects: one folder, standard library only, Python 3.9, no site
packages."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

POLICY = Path(__file__).parents[3] / "harness" / "guard" / "policy"
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from rules.decide import decide
from rules.receipt import append_receipt, receipt
given = json.load(sys.stdin)
said = [decide(call, given["snapshot"]) for call in given["calls"]]
line = receipt(given["calls"][0], said[0], time="t", session="s", role="r", event="PreToolUse")
append_receipt(sys.argv[2], line)
foreign = [name for name in sys.modules if name.split(".")[0] in ("harness", "site")]
print(json.dumps({"said": said, "foreign": foreign}))
"""


def pythons() -> list[str]:
    """This interpreter, and a 3.9 where one is installed."""
    found = [sys.executable]
    older = sorted(Path.home().glob(".pyenv/versions/3.9*/bin/python3.9"))
    older += [
        Path(name) for name in [shutil.which("python3.9") or ""] if name and "shims" not in name
    ]
    return found + [str(path) for path in older[:1]]


@pytest.mark.parametrize("python", pythons())
def test_copied_folder_decides_alone(project, tmp_path, python):
    shutil.copytree(
        POLICY, tmp_path / "vendored" / "rules", ignore=shutil.ignore_patterns("__pycache__")
    )
    calls = [
        {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": str(project.root)}
        for command in (
            "rm plan.md",
            "ls",
            "python train.py",
            "cat <<EOF | tee .harness/policy.json\nx\nEOF",
        )
    ]
    ended = subprocess.run(
        [
            python,
            "-I",
            "-S",
            "-c",
            PROGRAM,
            str(tmp_path / "vendored"),
            str(tmp_path / "receipts"),
        ],
        input=json.dumps({"calls": calls, "snapshot": project.snapshot}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answer = json.loads(ended.stdout)
    assert [said["permission"] for said in answer["said"]] == ["deny", "allow", "deny", "deny"]
    assert answer["foreign"] == []
    assert (
        json.loads((tmp_path / "receipts" / "s.jsonl").read_text())["rule"]
        == answer["said"][0]["rule"]
    )
