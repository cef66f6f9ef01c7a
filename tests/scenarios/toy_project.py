"""A project that trains in a moment, and the sessions of agents that work on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from harness.clock import Clock
from harness.contract.profiles import PROFILES
from harness.domain.grade import PERSON
from harness.domain.statuses import SandboxKind
from harness.driver.loop_runner import open_gateway, run_loop
from harness.ledger.facts import LoopEnded
from harness.ledger.project import Project, open_project
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.wire import RecordedRequest
from harness.plans.approval import approve_plan
from harness.plans.scaffold import scaffold
from harness.sandbox.select import choose
from tests.centroids import PREDICT, TRAIN
from tests.model_gateway.kept import keep
from tests.plan_text import plan_text
from tests.vault_key import give_key

PLAN = plan_text(
    "toy",
    "Tell two clouds of points apart",
    tiers="must: 0.90, should: 0.95",
    budget="experiments: 3, run_minutes: 1, total_minutes: 5",
    queries=5,
)

BYPASSING = """\
import json

json.dump({"accuracy": 0.99}, open("results.json", "w"))
print("SUCCESS: accuracy 0.99")
"""


@dataclass
class Played:
    """What a loop left: its end, its gateway, what that was asked, and what the loop told."""

    ended: LoopEnded
    gateway: Gateway
    requests: list[RecordedRequest]
    events: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def told(self) -> str:
        return "\n".join(event["text"] for event in self.events)


def make_project(root: Path) -> Path:
    """Data, plan and configuration, not approved yet."""
    (root / "data").mkdir(parents=True)
    for seed, (name, rows) in enumerate(
        {"train": 200, "validation": 100, "held_out": 100}.items()
    ):
        random = np.random.default_rng(seed)
        y = np.arange(rows) % 2
        x = (y[:, None] * 4.0 + random.normal(size=(rows, 2))).astype(np.float32)
        np.savez(root / "data" / f"{name}.npz", x=x, y=y, id=np.arange(rows))
    (root / "plan.md").write_text(PLAN, "utf-8")
    scaffold(root)
    return root


def approved(root: Path, environment: Mapping[str, str]) -> Project:
    """With one vault key for all, so that seeds are the same whenever it is made."""
    project = open_project(root, environment, caller=PERSON)
    give_key(project.layout.state / "vault")
    approve_plan(project, root / "plan.md", by="human:test")
    return project


def play(
    project: Project,
    scenario: Path,
    *,
    sandbox: SandboxKind,
    gateway: Gateway | None = None,
    waiting: Clock | None = None,
    profile: str | None = None,
) -> Played:
    used = gateway or open_gateway(project, project.plan(), {}, scenario=scenario)
    requests = keep(used)
    events: list[Mapping[str, Any]] = []
    ended = run_loop(
        project,
        used,
        choose(sandbox, required=False),
        on_progress=events.append,
        waiting=waiting,
        profile=None if profile is None else PROFILES[profile],
    )
    return Played(ended, used, requests, events)


def write_scenario(path: Path, *sessions: dict[str, Any]) -> Path:
    whole = json.loads(json.dumps({"sessions": sessions}))  # without aliases
    path.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")
    return path


def tool(identifier: str, name: str, **given: Any) -> dict[str, Any]:
    return {"id": identifier, "name": name, "input": given}


def builder(
    experiment: int,
    *,
    train: str = TRAIN,
    hypothesis: str = "Nearest centres tell the clouds apart",
    expect: str | None = None,
    before: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """Opens, reads, writes, does `before`, trains and waits."""
    files = {
        "train": ("${open.project}/train.py", train),
        "predict": ("${open.project}/predict.py", PREDICT),
    }
    files["config"] = (
        "${open.folder}/config.yaml",
        f"model: {{kind: centres}}\nnumber: {experiment}\n",
    )
    opening: dict[str, Any] = {
        "tools": [
            tool(
                "open",
                "mcp__harness__open_experiment",
                hypothesis=hypothesis,
                rationale="They are far apart.",
            ),
        ]
    }
    if expect is not None:
        opening["expect"] = expect
    turns = [
        opening,
        {
            "tools": [
                tool(f"read_{name}", "Read", file_path=path) for name, (path, _) in files.items()
            ]
        },
        {
            "tools": [
                tool(f"write_{name}", "Write", file_path=path, content=text)
                for name, (path, text) in files.items()
            ]
        },
        *({"tools": [call]} for call in before),
        {"tools": [tool("start", "mcp__harness__start_run")]},
        {"tools": [tool("status", "mcp__harness__run_status", wait_seconds=120)]},
        {"text": "Trained."},
    ]
    return {"role": "model-builder", "experiment": experiment, "attempt": 1, "turns": turns}


def oracle(experiment: int, *, claim: str | None = None) -> dict[str, Any]:
    """Claims the recomputed number, or `claim` without having looked."""
    turns: list[dict[str, Any]] = []
    if claim is None:
        turns.append({"tools": [tool("report", "mcp__harness__evaluation_report")]})
    claims = {"accuracy": claim if claim is not None else "${report.claim}"}
    turns.append(
        {
            "tools": [
                tool(
                    "record", "mcp__harness__record_result", claims=claims, summary="As measured."
                )
            ]
        }
    )
    turns.append({"text": "Recorded."})
    return {"role": "oracle", "experiment": experiment, "attempt": 1, "turns": turns}
