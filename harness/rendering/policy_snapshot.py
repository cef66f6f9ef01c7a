"""The policy snapshot of a project, by which hooks decide; its form: guard/policy/snapshot.py."""

import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from harness.contract.artifacts import ARTIFACTS, BY_NAME, EXPERIMENTS, HUMAN, PLANS, Scope
from harness.contract.installation import AGENTS, COMMANDS, LOCAL_SETTINGS, SETTINGS
from harness.contract.roles import HUMAN_VERBS, ROLE_BY_NAME, ROLES, Role, project_path
from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus, RunStatus
from harness.files import atomic_write, pretty_json
from harness.gates.alarms import undiagnosed_runs
from harness.guard.accepted import control_paths
from harness.guard.agent_files import hooks_mode
from harness.guard.control_files import control_names
from harness.guard.policy.snapshot import SCHEMA
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.rendering.vendored_hooks import policy_digest
from harness.settings import CONFIG, in_main_worktree

NAME = "harness"


@cache
def executable() -> str | None:
    """The absolute path of `harness`; None when the package was installed without it."""
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    folders.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    for path in (folder / NAME for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    return None


COMMAND = "harness"
MAIN = "main"
"""The main session in interactive use: any tool, the files of the role below."""
_MAIN_ROLE = "model-builder"


def policy_snapshot(project: Project, role: str | None = None) -> dict[str, Any]:
    """What the policy knows now, for a driver's session of `role`, or for interactive use."""
    approved = project.ledger.plan()
    plans = {plan.path: plan.sha256 for plan in project.ledger.plans()}
    current = _open_experiment(project)
    layout = project.layout
    return {
        "schema": SCHEMA,
        "root": str(layout.root),
        "state": str(layout.state),
        "scratch": [str(layout.sessions / "*" / "in")],
        "mode": "interactive" if role is None else "driver",
        "role": role,
        "roles": _roles(current, _drafts(project, plans)),
        "experiments": EXPERIMENTS,
        "artifacts": [
            {
                "name": artifact.name,
                "glob": project_path(artifact, experiment="*", run="*"),
                "writer": artifact.writer,
            }
            for artifact in ARTIFACTS
        ],
        "protected": _protected(project, plans),
        "plans": plans,
        "frozen": _frozen(approved),
        "hidden": [] if approved is None else [approved.content["data"]["held_out"]["path"]],
        "entry": [] if approved is None else shlex.split(approved.content["training"]["entry"]),
        "harness": [COMMAND],
        "human_verbs": [list(verb) for verb in HUMAN_VERBS],
        "open_experiment": _described(project, current),
        "open_gate": _open_gate(project, current),
        "command": executable(),
        "briefing": layout.relative(layout.briefing),
        "receipts": layout.relative(layout.project("receipts")),
        "memory": layout.relative(layout.project("memory")),
        "policy": policy_digest(),
        "hooks": hooks_mode(project.settings).value,
        "control": _control(project, plans),
    }


def write_policy_snapshot(project: Project) -> Path:
    """Write `.harness/policy.json` if it differs; returns its path."""
    # From a linked worktree also the main one's: hooks read that one, and both share a ledger.
    path, root = project.layout.project("policy"), project.layout.root
    snapshot = policy_snapshot(project)
    main = in_main_worktree(root)
    for place in [root] if main is None else [root, main]:
        text = pretty_json({**snapshot, "root": str(place)})
        target = place / path.relative_to(root)
        if not target.is_file() or target.read_bytes() != text.encode("utf-8"):
            atomic_write(target, text)
    return path


def _roles(current: Experiment | None, drafts: list[str]) -> dict[str, dict[str, Any]]:
    rights = {role.name: _rights(role, current, drafts) for role in ROLES}
    rights[MAIN] = {**_rights(ROLE_BY_NAME[_MAIN_ROLE], current, drafts), "tools": None}
    return rights


def _rights(role: Role, current: Experiment | None, drafts: list[str]) -> dict[str, Any]:
    own = [
        artifact
        for artifact in role.owns
        if artifact.scope is Scope.EXPERIMENT and current is not None
    ]
    writes = [project_path(artifact, experiment=current.id) for artifact in own] if current else []
    writes += drafts if role.writes_code else []
    return {"tools": list(role.allowed_tools), "writes": writes, "code": role.writes_code}


_INNER_PLAN = f"{PurePosixPath(CONFIG).parent}/{BY_NAME['plan'].path}"
"""`init --hooks plugin` puts the form of a plan here."""


def _drafts(project: Project, plans: Mapping[str, str]) -> list[str]:
    """Plans in a protected folder that nobody approved yet."""
    there = (project.layout.root / _INNER_PLAN).is_file()
    return [_INNER_PLAN] if there and not plans else []


def _plans(plans: Mapping[str, str]) -> list[str]:
    """Of approved plans, and where the first one usually is; a draft decides nothing."""
    return [*plans, BY_NAME["plan"].path, _INNER_PLAN] if plans else []


def _protected(project: Project, plans: Mapping[str, str]) -> list[str]:
    """The harness's folder, artifacts of the project, settings, hooks, approved plans."""
    shown = [artifact for artifact in ARTIFACTS if artifact.scope is Scope.PROJECT]
    paths = [str(PurePosixPath(CONFIG).parent)]
    paths += [artifact.path for artifact in shown if artifact.name not in PLANS]
    paths += [
        project.layout.relative(project.layout.project(name)) for name in ("memory", "priors")
    ]
    paths += [*control_names(project.layout.root), *_plans(plans)]
    return list(dict.fromkeys(paths))


def _control(project: Project, plans: Mapping[str, str]) -> list[str]:
    """What a person accepts, and approved plans; parts of .claude singly, so that a change is
    named."""
    by_people = [artifact for artifact in ARTIFACTS if artifact.writer == HUMAN]
    paths = [SETTINGS, LOCAL_SETTINGS, AGENTS, str(PurePosixPath(COMMANDS).parent)]
    paths += [*control_paths(project.layout.root)]
    paths += [artifact.path for artifact in by_people if artifact.name not in PLANS]
    return list(dict.fromkeys([*paths, *_plans(plans)]))


def _frozen(approved: ApprovedPlan | None) -> list[str]:
    if approved is None:
        return []
    data = [split["path"] for split in approved.splits.values() if "path" in split]
    return list(
        dict.fromkeys([approved.content["data"]["train"], *data, *approved.scorer["files"]])
    )


def _open_experiment(project: Project) -> Experiment | None:
    statuses = [status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS]
    undecided = project.ledger.experiments(newest=1, statuses=statuses)
    return undecided[-1] if undecided else None


def _described(project: Project, current: Experiment | None) -> dict[str, Any] | None:
    if current is None:
        return None
    runs = project.ledger.runs(current.id)
    ended = sum(run.status not in (RunStatus.PENDING, RunStatus.RUNNING) for run in runs)
    described = {
        "id": current.id,
        "hypothesis": current.hypothesis,
        "status": current.status.value,
    }
    undiagnosed = undiagnosed_runs(project, current.id)
    return {**described, "runs": len(runs), "ended": ended, "undiagnosed": undiagnosed}


def _open_gate(project: Project, current: Experiment | None) -> str | None:
    if current is None or current.status is not ExperimentStatus.JUDGED:
        return None
    verdict = project.ledger.latest_verdict(current.id)
    return None if verdict is None else verdict.gate
