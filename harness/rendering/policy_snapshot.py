"""The policy snapshot of a project, by which hooks decide; its
form: guard/policy/snapshot.py."""

import json
import os
import shlex
import sys
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from harness.artifacts.locate import Layout
from harness.artifacts.trees import linked_roots
from harness.contract.artifacts import (
    ARTIFACTS,
    BY_NAME,
    EXPERIMENTS,
    HUMAN,
    INNER_PLAN,
    PLANS,
    Scope,
)
from harness.contract.installation import (
    AGENTS,
    COMMANDS,
    LOCAL_SETTINGS,
    SETTINGS,
)
from harness.contract.roles import (
    ASKED_VERBS,
    HUMAN_VERBS,
    ROLE_BY_NAME,
    ROLES,
    Role,
    project_path,
)
from harness.domain.records import Experiment
from harness.domain.rules import read_rule
from harness.domain.statuses import ExperimentStatus, RunStatus
from harness.errors import HarnessError
from harness.files import atomic_write, pretty_json
from harness.gates.alarms import undiagnosed_runs
from harness.guard.accepted import control_paths
from harness.guard.agent_files import hooks_mode
from harness.guard.control_files import control_names
from harness.guard.policy.snapshot import SCHEMA
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.rendering.standing import standing
from harness.rendering.vendored_hooks import policy_digest
from harness.settings import CONFIG, load_settings, main_root

NAME = "harness"


@cache
def executable() -> str | None:
    """The absolute path of `harness`; None when the package was
    installed without it."""
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    folders.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    for path in (folder / NAME for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    return None


COMMAND = "harness"
MAIN = "main"
"""The main session in interactive use: any tool, the files of
the role below."""
_MAIN_ROLE = "model-builder"


def policy_snapshot(
    project: Project, role: str | None = None, own: Collection[str | None] | None = None
) -> dict[str, Any]:
    """What the policy knows now, for a driver's session of `role`, or for interactive use.

    The latter is one for all working trees of a repository: of the main one, and in `trees` what
    each linked one has in work. `own`: the open experiments that count here; by default all.
    """
    if role is None:
        project = _of_main_tree(project)
    approved = project.ledger.plan()
    plans = {plan.path: plan.sha256 for plan in project.ledger.plans()}
    drafts = _drafts(project, plans)
    layout = project.layout
    root = layout.root
    return {
        "schema": SCHEMA,
        "root": str(root),
        "state": str(layout.state),
        "scratch": [str(layout.sessions / "*" / "in")],
        "mode": "interactive" if role is None else "driver",
        "role": role,
        **_in_work(project, root, drafts, own),
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
        "asked_verbs": [list(verb) for verb in ASKED_VERBS],
        "taught": _taught(project),
        "command": executable(),
        "briefing": layout.relative(layout.briefing),
        "receipts": BY_NAME["receipts"].path,
        "memory": layout.relative(layout.project("memory")),
        "policy": policy_digest(),
        "hooks": hooks_mode(project.settings).value,
        "control": _control(project, plans),
        "trees": {} if role is not None else _trees(project, root, drafts),
    }


def write_policy_snapshot(project: Project) -> Path:
    """Write `.harness/policy.json` of the main tree if it differs; returns its path. Hooks of
    linked worktrees read that one, and all share a ledger; see `other_state`."""
    path = project.layout.shared("policy")
    if other_state(project.layout):
        return path
    text = pretty_json(policy_snapshot(project))
    if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
        atomic_write(path, text)
    return path


def other_state(layout: Layout) -> str:
    """The state directory that the main tree's snapshot is of, where that of this linked tree is
    another one: from here the main tree's hooks are not turned to another ledger. Else empty."""
    if main_root(layout.root) == layout.root:
        return ""
    try:
        said = json.loads(layout.shared("policy").read_bytes())
    except (OSError, ValueError):
        return ""
    state = said.get("state") if isinstance(said, dict) else None
    return state if isinstance(state, str) and state != str(layout.state) else ""


def _of_main_tree(project: Project) -> Project:
    """With the settings and files of the main tree, whose config.toml may say something else."""
    root = main_root(project.layout.root)
    if root == project.layout.root:
        return project
    try:
        own = load_settings(root, os.environ)
    except HarnessError:  # whoever works there is told
        return project.at(root)
    settings = replace(own, state=project.layout.state)
    return replace(project, settings=settings, layout=Layout(settings))


def _trees(project: Project, main: Path, drafts: list[str]) -> dict[str, dict[str, Any]]:
    """Root of the project in a linked worktree -> what is in work there, if anything is."""
    places = [place for place in linked_roots(main) if (place / CONFIG).is_file()]
    in_work = {str(place): _in_work(project, place, drafts) for place in places}
    return {place: own for place, own in in_work.items() if own["open_experiment"]}


def _in_work(
    project: Project, root: Path, drafts: list[str], own: Collection[str | None] | None = None
) -> dict[str, Any]:
    """What rules know of the tree's open experiment, the newest of several."""
    there = project.at(root)
    undecided = [one for one in there.undecided() if own is None or one.id in own]
    current = undecided[-1] if undecided else None
    return {
        "roles": _roles(undecided, drafts),
        "open_experiment": _described(there, current),
        "open_gate": _open_gate(there, current),
        "standing": standing(there, current),
    }


def _taught(project: Project) -> list[dict[str, str]]:
    """What priors deny that a person activated."""
    rules = [
        (prior, read_rule(prior.enforces))
        for prior in project.ledger.priors(standing=True)
        if prior.enforces is not None
    ]
    return [
        {"prior": prior.id, "form": rule.form, "pattern": rule.subject, "rule": prior.rule}
        for prior, rule in rules
        if rule.form.denies
    ]


def _roles(undecided: Sequence[Experiment], drafts: list[str]) -> dict[str, dict[str, Any]]:
    rights = {role.name: _rights(role, undecided, drafts) for role in ROLES}
    rights[MAIN] = {**_rights(ROLE_BY_NAME[_MAIN_ROLE], undecided, drafts), "tools": None}
    return rights


def _rights(role: Role, undecided: Sequence[Experiment], drafts: list[str]) -> dict[str, Any]:
    own = [artifact for artifact in role.owns if artifact.scope is Scope.EXPERIMENT]
    writes = [project_path(artifact, experiment=one.id) for one in undecided for artifact in own]
    writes += drafts if role.writes_code else []
    return {"tools": list(role.allowed_tools), "writes": writes, "code": role.writes_code}


def _drafts(project: Project, plans: Mapping[str, str]) -> list[str]:
    """Plans in a protected folder that nobody approved yet."""
    there = (project.layout.root / INNER_PLAN).is_file()
    return [INNER_PLAN] if there and not plans else []


def _plans(plans: Mapping[str, str]) -> list[str]:
    """Of approved plans, and where the first one usually is; a draft decides nothing."""
    return [*plans, BY_NAME["plan"].path, INNER_PLAN] if plans else []


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
