"""One policy decision in process, against parsing the same call's JSON, both measured in this run.

The driver decides in process on every tool call; the payload has to be parsed in any case.

    python bench/policy.py [--record]     # with --record it writes docs/evidence/policy.json
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _record import record, wants_record

from harness.guard.policy.decide import decide

REPEATS, CALLS = 9, 300
BASH = (
    "cd src && for f in *.py; do grep -n def \"$f\" | sed 's/x/y/' >> /dev/null; done && git status"
    " --short"
)


def calls(root: str) -> dict[str, dict[str, Any]]:
    """Payloads of a PreToolUse event: an edit, a write of 20 kB, a pipeline, a denied training
    command."""
    common = {
        "session_id": "s",
        "cwd": root,
        "agent_type": "model-builder",
        "hook_event_name": "PreToolUse",
    }
    inputs = {
        "Edit": ("Edit", {"file_path": f"{root}/train.py", "old_string": "a", "new_string": "b"}),
        "Write of 20 kB": (
            "Write",
            {"file_path": f"{root}/model.py", "content": "x = 1\n" * 3400},
        ),
        "Bash pipeline": ("Bash", {"command": BASH}),
        "Bash, denied": ("Bash", {"command": "nohup python train.py --epochs 3 > log.txt 2>&1 &"}),
    }
    return {
        name: {**common, "tool_name": tool, "tool_input": given}
        for name, (tool, given) in inputs.items()
    }


def median_seconds(work: Callable[[], Any]) -> float:
    """Median over REPEATS of the mean of CALLS calls."""
    samples = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            work()
        samples.append((time.perf_counter() - start) / CALLS)
    return statistics.median(samples)


def snapshot_of(folder: Path) -> dict[str, Any]:
    """The snapshot of a new project, as the harness writes it."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    project = folder / "project"
    harness = [sys.executable, "-m", "harness"]
    subprocess.run(
        [*harness, "init", str(project)], check=True, capture_output=True, env=environment
    )
    script = (
        "import os, pathlib; from harness.ledger.project import open_project;"
        "from harness.rendering.policy_snapshot import write_policy_snapshot;"
        f"write_policy_snapshot(open_project(pathlib.Path({str(project)!r}), os.environ))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    snapshot: dict[str, Any] = json.loads(
        (project / ".harness" / "policy.json").read_text("utf-8")
    )
    return snapshot | {"entry": ["python", "train.py"]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        snapshot = snapshot_of(Path(folder).resolve())
        print(f"baseline: json.loads of the same payload, median of {REPEATS}")
        figures: dict[str, float] = {}
        for name, call in calls(snapshot["root"]).items():
            text = json.dumps(call)
            said = decide(call, snapshot)["permission"]
            baseline = median_seconds(lambda text=text: json.loads(text))
            decision = median_seconds(lambda call=call: decide(call, snapshot))
            print(f"{name:16} {decision / baseline:8.1f}x baseline  ({said})")
            figures[f"{name.lower().replace(',', '').replace(' ', '_')}_ratio"] = round(
                decision / baseline, 1
            )
    if wants_record():
        record("policy", "python bench/policy.py --record", figures)


if __name__ == "__main__":
    main()
