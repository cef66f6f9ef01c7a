"""What the hooks of a tool call cost, and the status line, against a Python that only imports json.

The whole program is measured, as Claude Code starts it in a project with hooks of its own: git, a
plan approved, one experiment open. `python3 -I -S .claude/hooks/harness/run.py EVENT` with the
payload on stdin, from the interpreter's start to its end, modules compiled before. Each start has a
start of `python3 -I -S -c "import json"` beside it, before or after it in turn; a ratio is that of
the two medians. Exits 1 above the ratio that is promised.

    python bench/guard.py [--record]     # with --record it writes docs/evidence/guard.json
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _record import record, wants_record

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from tests.cli.journey import Journey, make_project  # noqa: E402  it needs the line above

ROUNDS, WARM_UP, PROMISED = 80, 5, 1.25
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
START = [PYTHON, "-I", "-S"]
HOOK = ".claude/hooks/harness/run.py"
BASELINE = "import json"
LINE = "StatusLine"
LARGE = "write_1mb"
"""Reading a megabyte of payload is no start-up: it is measured, and nothing is promised for it."""
BASH = (
    'cd src && for f in *.py; do grep -n def "$f" | sed "s/x/y/" >> /dev/null; done && python -m'
    " pytest -q 2>&1 | tail"
)


@dataclass(frozen=True)
class Measured:
    """One program, and the seconds of it and of the baseline beside it."""

    command: list[str]
    payload: bytes
    taken: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return statistics.median(self.taken) / statistics.median(self.beside)


def made(base: Path) -> Journey:
    """A project as people have it."""
    journey = make_project(base / "project", base / "home")
    git = ["git", "-C", str(journey.root), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "A project"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    for steps in (("init",), ("plan", "approve"), ("experiment", "new", "--hypothesis", "blobs")):
        answer = journey.harness(*steps)
        if answer.exit_code:
            raise SystemExit(f"harness {steps}: {answer.stdout}{answer.stderr}")
    return journey


def payloads(root: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name -> event and payload, as Claude Code sends it; no hook has an objection."""
    bash = {"tool_name": "Bash", "tool_input": {"command": BASH}, "tool_use_id": "toolu_1"}
    ended = {**bash, "tool_response": {"stdout": "3 passed\n" * 20, "stderr": ""}}

    def write(size: int) -> dict[str, Any]:
        given = {"file_path": f"{root}/model.py", "content": "x = 1\n" * (size // 6)}
        return {"tool_name": "Write", "tool_input": given, "tool_use_id": "toolu_2"}

    return {
        "write_1kb": ("PreToolUse", write(1_000)),
        LARGE: ("PreToolUse", write(1_000_000)),
        "bash": ("PreToolUse", bash),
        "after_tool": ("PostToolUse", ended),
        "after_batch": ("PostToolBatch", {"tool_calls": [ended]}),
        "status_line": (LINE, {"workspace": {"project_dir": root}}),
    }


def seconds(command: Sequence[str], payload: bytes, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    ended = subprocess.run(command, input=payload, env=environment, capture_output=True)
    took = time.perf_counter() - start
    if ended.returncode or ended.stderr or bool(ended.stdout) != (command[-1] == LINE):
        raise SystemExit(f"{command} answered {ended.returncode}: {ended.stderr.decode()}")
    return took


def measured(journey: Journey) -> dict[str, Measured]:
    """Each program once a round, so that a busy moment meets all of them."""
    root = str(journey.root)
    environment = {**journey.environment(), "CLAUDE_PROJECT_DIR": root}
    plain = [*START, "-c", BASELINE]
    common = {"session_id": "bench", "cwd": root, "permission_mode": "default"}
    programs = {
        name: Measured(
            [*START, f"{root}/{HOOK}", event],
            json.dumps({**common, "hook_event_name": event, **call}).encode(),
        )
        for name, (event, call) in payloads(root).items()
    }
    for turn in range(WARM_UP + ROUNDS):
        for program in programs.values():
            first = seconds(plain, b"", environment) if turn % 2 else 0.0
            took = seconds(program.command, program.payload, environment)
            beside = first or seconds(plain, b"", environment)
            if turn >= WARM_UP:
                program.taken.append(took)
                program.beside.append(beside)
    return programs


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        programs = measured(made(Path(folder).resolve()))
    print(f"baseline: {' '.join(START)} -c '{BASELINE}', medians of {ROUNDS} pairs")
    ratios = {name: program.ratio for name, program in programs.items()}
    for name, ratio in ratios.items():
        print(f"{name:16} {ratio:6.2f}x baseline")
    worst = max(ratio for name, ratio in ratios.items() if name != LARGE)
    if wants_record():
        figures = {f"{name}_ratio": round(ratio, 2) for name, ratio in ratios.items()}
        figures |= {"worst_call_ratio": round(worst, 2)}
        record("guard", "python bench/guard.py --record", figures)
    print(f"promised: at most {PROMISED}x for a hook of an ordinary call; worst {worst:.2f}x")
    return int(worst > PROMISED)


if __name__ == "__main__":
    sys.exit(main())
