"""The policy snapshot: everything that a rule may know, as one JSON object.

`rendering.policy_snapshot` writes it to `.harness/policy.json`; the driver hands it to `decide`
directly. Unknown keys are ignored, so a newer harness may add some; a changed meaning raises
SCHEMA. Paths are relative to `root`, with `/`, unless they are said to be absolute.

    schema            int         SCHEMA
    root              str         the project's root, absolute, links resolved
    state             str         the state directory (ledger, vault, anchors), absolute
    scratch           [str]       absolute globs below `state` that the rule leaves out: sessions'
                                  own folders
    mode              str         "driver" (a session of the loop) or "interactive"
    role              str | null  whose calls these are when the payload's agent_type names no role
                                  below
    roles             {name: {
        tools             [str] | null    full tool names that it may use; null: any tool
        writes            [str]           its own artifacts, of the open experiment
        code              bool            may change the project's ordinary files
    }}
    experiments       str         the folder of all experiments
    artifacts         [{name, glob, writer}]  every artifact; `*` stands for one path component
    protected         [str]       control files and folders that no tool call changes
    plans             {str: str}  optional: approved plans, path -> SHA-256 as approved last
    frozen            [str]       the plan's data and scorer files: read freely, changed never
    hidden            [str]       neither read nor written: where held-out rows stood before
                                  approval
    entry             [str]       the plan's training command; empty without a plan
    harness           [str]       names by which the harness's own command is called
    human_verbs       [[str]]     verbs of it that only a person uses
    asked_verbs       [[str]]     optional: those of them that the judge of `harness claude` puts to
                                  the person when a session asks; there hooks let them through
    open_experiment   {id, hypothesis, status, runs, ended, undiagnosed} | null
                                  the one without a decision; ended: runs that ended; undiagnosed:
                                  ids of runs with an open alarm that no diagnosis explains
    taught            [{prior, form, pattern, rule}]  optional: what active priors deny; form is
                                  "deny command" or "deny path"
    open_gate         str | null  the gate of it whose verdict awaits a decision

For hooks, and optional: command (absolute path of the `harness` that wrote it), briefing, receipts
and memory (paths), policy (guard.hooks.self_check.library_digest of that installation), hooks
("project", "plugin" or "none"), control (files and folders that decide what is enforced, the plan
among them: a session is told when they change), trees ({root: {roles, open_experiment, open_gate,
standing}}: of each linked worktree with an open experiment of its own; see `in_tree`), standing
(texts for the person: plan, best, next and command, where each may be empty).

They add `elsewhere` in a call that meets several projects: the roots of the others, whose own
snapshots judge what lies there; `worktrees`, those of them that are this project's own;
`off_limits`, Claude Code's own folder, and `notes`, globs of what it has the model write there.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA = 1
HINT = (
    "A person runs `harness render` in the project, which writes the snapshot again, then repeats"
    " the step."
)
_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("root", (str,)),
    ("state", (str,)),
    ("scratch", (list,)),
    ("mode", (str,)),
    ("role", (str, type(None))),
    ("roles", (dict,)),
    ("experiments", (str,)),
    ("artifacts", (list,)),
    ("protected", (list,)),
    ("frozen", (list,)),
    ("hidden", (list,)),
    ("entry", (list,)),
    ("harness", (list,)),
    ("human_verbs", (list,)),
    ("open_experiment", (dict, type(None))),
    ("open_gate", (str, type(None))),
)
MISSING = "snapshot_missing"
_TEXTS = ("scratch", "protected", "frozen", "hidden", "entry", "harness")


def problem(snapshot: Any) -> tuple[str, str] | None:
    """(rule, reason) when nothing can be decided from `snapshot`; None when it has the form
    above."""
    if snapshot is None:
        return MISSING, "The policy snapshot is missing, so no rule can be checked."
    if not isinstance(snapshot, dict):
        return (
            "snapshot_damaged",
            f"The policy snapshot is {type(snapshot).__name__}; expected one JSON object.",
        )
    schema = snapshot.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        return (
            "snapshot_damaged",
            f"The policy snapshot's schema is {schema!r}; expected {SCHEMA}.",
        )
    if schema != SCHEMA:
        age = "older" if schema < SCHEMA else "newer"
        return (
            f"snapshot_{age}",
            f"The policy snapshot has schema {schema}, {age} than this policy's {SCHEMA}.",
        )
    damaged = _damage(snapshot)
    return ("snapshot_damaged", f"The policy snapshot is damaged: {damaged}.") if damaged else None


IN_WORK = ("roles", "open_experiment", "open_gate", "standing")
"""What each working tree has of its own."""


def in_tree(snapshot: Mapping[str, Any], root: str) -> dict[str, Any]:
    """What the tree at `root` has in work, by the main tree's snapshot. A linked worktree that it
    does not name has nothing; a subagent in one may write the files of the main tree's."""
    trees = snapshot.get("trees")
    own = trees.get(root) if isinstance(trees, dict) else None
    if root == snapshot["root"]:
        own = snapshot
    if not isinstance(own, dict):
        own = {"roles": snapshot["roles"]}
    return {key: own.get(key) for key in IN_WORK}


def differs(written: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys in which two snapshots of one project say different things; which installation wrote
    them is none."""
    return sorted(
        key for key in {*written, *now} - {"command"} if written.get(key) != now.get(key)
    )


def _damage(snapshot: dict[str, Any]) -> str:
    for key, types in _TYPES:
        if key not in snapshot or not isinstance(snapshot[key], types):
            return f"{key} is {'missing' if key not in snapshot else 'not of the right type'}"
    for key in ("root", "state"):
        if not os.path.isabs(snapshot[key]):
            return f"{key} is not an absolute path"
    for key in _TEXTS:
        if not _texts(snapshot[key]):
            return f"{key} must hold text only"
    if not all(_texts(verb) and verb for verb in snapshot["human_verbs"]):
        return "human_verbs must hold lists of text"
    for artifact in snapshot["artifacts"]:
        if not isinstance(artifact, dict) or not all(
            isinstance(artifact.get(k), str) for k in ("name", "glob", "writer")
        ):
            return "an artifact lacks name, glob or writer"
    for name, role in snapshot["roles"].items():
        if (
            not isinstance(role, dict)
            or not _texts(role.get("writes"))
            or not isinstance(role.get("code"), bool)
        ):
            return f"role {name} lacks writes or code"
        if role.get("tools") is not None and not _texts(role["tools"]):
            return f"role {name} has tools that are not text"
    for one in snapshot.get("taught", ()):
        keys = ("prior", "form", "pattern", "rule")
        if not isinstance(one, dict) or not all(isinstance(one.get(k), str) for k in keys):
            return "an entry of taught lacks prior, form, pattern or rule"
    experiment = snapshot["open_experiment"]
    if experiment is not None and not all(
        isinstance(experiment.get(key), str) for key in ("id", "hypothesis", "status")
    ):
        return "open_experiment lacks id, hypothesis or status"
    return ""


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
