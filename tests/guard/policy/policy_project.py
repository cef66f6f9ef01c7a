"""A project on disk with one decided and one open experiment, and the snapshot that describes
it."""

import os
from pathlib import Path
from typing import Any

from harness.guard.policy.decide import decide
from harness.guard.policy.snapshot import SCHEMA

EXPERIMENTS = ".harness/experiments"
OPEN = f"{EXPERIMENTS}/exp-0002"
OLD = f"{EXPERIMENTS}/exp-0001"
CONTROL = (
    ".harness/policy.json",
    ".harness/config.toml",
    ".harness/receipts/s.jsonl",
    ".claude/settings.json",
    ".git/hooks/pre-commit",
    ".git/config",
    "plan.md",
    f"{OLD}/result.md",
    f"{OPEN}/score.json",
    f"{OLD}/runs/run-01/metrics.jsonl",
)
FROZEN = ("data/train.npz", "data/validation.npz")
ORDINARY = ("train.py", "predict.py", "model.py", "notes.txt", "sub/helper.py", "patch.diff")
OWN = f"{OPEN}/hypothesis.md"


class SampleProject:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "pro ject"
        self.state = folder / "state"
        for name in (*CONTROL, *FROZEN, *ORDINARY, OWN):
            self.write(name)
        for name in ("ledger.db", "vault/held_out/rows.npz", "sessions/s1/in/tmp/note.txt"):
            (self.state / name).parent.mkdir(parents=True, exist_ok=True)
            (self.state / name).write_text("secret")
        self.snapshot = snapshot(self.root, self.state)

    def write(self, name: str, text: str = "before\n") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def ask(
        self, tool: str, given: Any, *, cwd: str | Path | None = None, **changes: Any
    ) -> dict[str, Any]:
        call = {"tool_name": tool, "tool_input": given, "cwd": str(cwd or self.root)}
        return decide(call, {**self.snapshot, **changes})

    def bash(self, command: str, **more: Any) -> dict[str, Any]:
        return self.ask("Bash", {"command": command}, **more)


def snapshot(root: Path, state: Path) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "root": os.path.realpath(root),
        "state": os.path.realpath(state),
        "scratch": [os.path.realpath(state) + "/sessions/*/in"],
        "mode": "driver",
        "role": "model-builder",
        "roles": {
            "model-builder": {
                "tools": [
                    "Bash",
                    "Read",
                    "Edit",
                    "Write",
                    "NotebookEdit",
                    "mcp__harness__open_experiment",
                ],
                "writes": [OWN, f"{OPEN}/config.yaml", f"{OPEN}/next.md"],
                "code": True,
            },
            "oracle": {
                "tools": ["Read", "Write", "mcp__harness__record_result"],
                "writes": [f"{OPEN}/result.md"],
                "code": False,
            },
            "main": {"tools": None, "writes": [OWN], "code": True},
        },
        "experiments": EXPERIMENTS,
        "artifacts": [
            {"name": "plan", "glob": "plan.md", "writer": "human"},
            {
                "name": "hypothesis",
                "glob": f"{EXPERIMENTS}/*/hypothesis.md",
                "writer": "model-builder",
            },
            {"name": "config", "glob": f"{EXPERIMENTS}/*/config.yaml", "writer": "model-builder"},
            {"name": "result", "glob": f"{EXPERIMENTS}/*/result.md", "writer": "oracle"},
            {"name": "score", "glob": f"{EXPERIMENTS}/*/score.json", "writer": "harness"},
            {
                "name": "metrics",
                "glob": f"{EXPERIMENTS}/*/runs/*/metrics.jsonl",
                "writer": "harness",
            },
        ],
        "protected": [".harness", "plan.md", "plans", ".claude", ".git/hooks", ".git/config"],
        "frozen": list(FROZEN),
        "hidden": ["data/held_out.npz"],
        "entry": ["python", "train.py"],
        "harness": ["harness"],
        "human_verbs": [
            ["gate", "approve"],
            ["gate", "reject"],
            ["plan", "approve"],
            ["ledger", "import"],
            ["init"],
        ],
        "asked_verbs": [["gate", "approve"], ["gate", "reject"], ["plan", "approve"]],
        "open_experiment": {
            "id": "exp-0002",
            "hypothesis": "wider is better",
            "status": "open",
            "runs": 0,
        },
        "open_gate": None,
    }
