"""The guard before every tool call and the status line, against a Python that only imports json,
interleaved in this run.

The whole program is measured, as Claude Code starts it: `python3 -I -S hooks/run.py PreToolUse`
with the payload on stdin, from the interpreter's start to its end, modules compiled before. Exits 1
above the ratio that is promised.

    python bench/guard.py [--record]     # with --record it writes docs/evidence/guard.json
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _record import record, wants_record

ROUNDS, WARM_UP, PROMISED = 80, 5, 1.25
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
START = [PYTHON, "-I", "-S"]
HOOK = Path(__file__).parents[1] / "hooks" / "run.py"
BASELINE = "import json"
LINE = "StatusLine"
BASH = (
    'cd src && for f in *.py; do grep -n def "$f" | sed "s/x/y/" >> /dev/null; done && python -m'
    " pytest -q 2>&1 | tail"
)


def calls(root: str) -> dict[str, dict[str, Any]]:
    """Payloads as Claude Code sends them; the guard has no opinion on each."""
    common = {
        "session_id": "bench",
        "cwd": root,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
    }
    inputs = {
        "Write of 1 kB": ("Write", {"file_path": f"{root}/model.py", "content": "x = 1\n" * 170}),
        "Write of 1 MB": (
            "Write",
            {"file_path": f"{root}/model.py", "content": "x = 1\n" * 175_000},
        ),
        "Bash": ("Bash", {"command": BASH, "description": "tests"}),
    }
    return {
        name: {**common, "tool_name": tool, "tool_input": given, "tool_use_id": "toolu_1"}
        for name, (tool, given) in inputs.items()
    }


def seconds(command: list[str], payload: bytes, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    ended = subprocess.run(command, input=payload, env=environment, capture_output=True)
    took = time.perf_counter() - start
    if ended.returncode or ended.stderr or bool(ended.stdout) != (command[-1] == LINE):
        raise SystemExit(f"{command} answered {ended.returncode}: {ended.stderr.decode()}")
    return took


def measured(root: str, environment: dict[str, str]) -> dict[str, list[float]]:
    """Seconds of each program, one of each a round, so that a busy moment meets all of them."""
    plain = [*START, "-c", BASELINE]
    programs = {BASELINE: (plain, b"")}
    programs |= {
        name: ([*START, str(HOOK), "PreToolUse"], json.dumps(call).encode())
        for name, call in calls(root).items()
    }
    line = {"session_id": "bench", "cwd": root, "workspace": {"project_dir": root}}
    programs["status line"] = ([*START, str(HOOK), LINE], json.dumps(line).encode())
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(WARM_UP + ROUNDS):
        for name, (command, payload) in programs.items():
            took = seconds(command, payload, environment)
            if turn >= WARM_UP:
                taken[name].append(took)
    return taken


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / "project"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "XDG_STATE_HOME": str(Path(folder) / "state"),
        }
        harness = [sys.executable, "-m", "harness"]
        subprocess.run(
            [*harness, "init", str(project)], check=True, capture_output=True, env=environment
        )
        rendered = [*harness, "render", "--project", str(project)]
        subprocess.run(rendered, check=True, capture_output=True, env=environment)
        environment |= {
            "CLAUDE_PROJECT_DIR": str(project),
            "CLAUDE_PLUGIN_ROOT": str(HOOK.parents[1]),
        }
        taken = measured(str(project), environment)
    baseline = statistics.median(taken.pop(BASELINE))
    print(f"baseline: {' '.join(START)} -c '{BASELINE}', median of {ROUNDS}")
    ratios = {name: statistics.median(times) / baseline for name, times in taken.items()}
    for name, ratio in ratios.items():
        print(f"{name:16} {ratio:6.2f}x baseline")
    if wants_record():
        names = {
            "Write of 1 kB": "write_1kb_ratio",
            "Write of 1 MB": "write_1mb_ratio",
            "Bash": "bash_ratio",
            "status line": "status_line_ratio",
        }
        figures = {names[name]: round(ratio, 2) for name, ratio in ratios.items()}
        record("guard", "python bench/guard.py --record", figures)
    print(f"promised: at most {PROMISED}x for an ordinary call")
    return int(max(ratio for name, ratio in ratios.items() if "MB" not in name) > PROMISED)


if __name__ == "__main__":
    sys.exit(main())
