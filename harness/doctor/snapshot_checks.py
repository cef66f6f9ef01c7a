"""Checks of `.harness/policy.json`, from which every hook decides: there, sound, and what the
ledger says now."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.doctor.report import Check, dead, good, note
from harness.doctor.scene import Scene
from harness.errors import HarnessError
from harness.guard.hooks.place import Projects
from harness.guard.policy.snapshot import differs
from harness.ledger.project import open_project
from harness.rendering.snapshot import policy_snapshot

RENDER = "`harness render` writes it again; run it in your own terminal."


def snapshot_sound(scene: Scene) -> Check:
    """Whether the hooks can decide from the snapshot: what they say of it themselves."""
    project = Projects().at(str(scene.folder))
    if project is None:
        return dead(
            "snapshot_sound",
            f"{scene.folder} has no .harness/config.toml; hooks deny every call.",
            "`harness init`",
        )
    if project.trouble:
        rule, reason, _ = project.trouble
        return dead("snapshot_sound", f"{reason} ({rule}) The hooks deny every call.", RENDER)
    return good("snapshot_sound", "the policy snapshot can be read")


def snapshot_fresh(scene: Scene) -> Check:
    """Whether the snapshot is what the ledger and the contract say now."""
    try:
        with open_project(scene.root, scene.environment, read_only=True) as project:
            now = policy_snapshot(project)
            path = project.layout.project("policy")
    except HarnessError as error:
        return note("snapshot_fresh", f"The ledger cannot be asked: {error.message}", error.hint)
    except OSError as error:
        return note(
            "snapshot_fresh", f"The project cannot be read to compare it with the snapshot: {error}"
        )
    written = _read(path)
    if written is None:
        return note("snapshot_fresh", "There is no snapshot to compare with the ledger.")
    differing = differs(written, now)
    if differing:
        return dead(
            "snapshot_fresh",
            f"{path} is stale: {', '.join(differing)} is not what the ledger and this harness say"
            " now, so hooks judge by old rules.",
            RENDER,
        )
    return good("snapshot_fresh", "the policy snapshot is what the ledger says now")


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
