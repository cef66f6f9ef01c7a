"""Checking and approving plans: from approval on, plan, scorer and data are what their hashes say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.objects import copy_file, store_bytes
from harness.artifacts.plan import Plan, parse_plan
from harness.artifacts.text import MAX_TEXT_BYTES, decode, read_bytes
from harness.domain.facts import PlanApproved
from harness.domain.findings import Finding
from harness.domain.records import ApprovedPlan
from harness.errors import NotFoundError, PlanError, RefusedError
from harness.files import sha256_bytes
from harness.project.context import Project, approve_config
from harness.project.frozen import frozen_changes
from harness.project.held_out import InVault, find_in_vault, move_to_vault, require_movable
from harness.project.scorer import freeze_scorer, scorer_warnings
from harness.project.splits import Split, described, load_split, make_split, overlap_warnings, split_paths
from harness.settings import find_root

__all__ = ["approve_plan", "check_plan", "data_hashes", "data_paths", "frozen_changes", "require_approved"]

_SEEDS_TO_COMPARE = 3


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """A plan that was read and is not yet approved."""

    path: Path
    relative: str
    data: bytes
    plan: Plan


def check_plan(start: Path, path: Path) -> list[Finding]:
    """Warnings about the plan at `path`, for the project that contains `start`; nothing is changed.

    Raises PlanError for everything that approval would refuse in the plan, its scorer and its tables. Whether the
    held-out file may be moved is asked at approval.
    """
    root = find_root(start)
    draft = _read(root, path)
    plan, columns = draft.plan, draft.plan.data.held_out
    findings = scorer_warnings(root, plan)
    if plan.oracle.seeds < _SEEDS_TO_COMPARE:
        findings.append(
            Finding(
                "seeds_too_few",
                f"oracle.seeds is {plan.oracle.seeds}: with fewer than {_SEEDS_TO_COMPARE} no experiment can be told "
                "from its parent, so none is kept without a person.",
                f"Set oracle.seeds to {_SEEDS_TO_COMPARE} or more.",
            )
        )
    splits = {"train": load_split(root, plan.data.train, "data.train", columns, ids=plan.data.validation is None)}
    if plan.data.validation is not None:
        splits["validation"] = load_split(root, plan.data.validation, "data.validation", columns, ids=True)
    if (root / columns.path).exists():
        splits["held_out"] = load_split(root, columns.path, "data.held_out.path", columns, ids=True)
    else:
        findings.append(
            Finding(
                "held_out_not_in_place",
                f"The held-out file {columns.path} is not in the project: approval will look for it in the vault.",
                "If no plan with it was approved yet, put the file in place.",
            )
        )
    return findings + overlap_warnings(splits, columns)


def approve_plan(project: Project, path: Path, *, by: str) -> ApprovedPlan:
    """Freeze the plan, its scorer and its data, and move held-out rows to the vault.

    The same plan with the same scorer and data again is the approval that stands; anything else is its next version.
    A call that was killed is finished by the next one. Everything that can be refused is refused before anything is
    moved. Raises PlanError for a plan that is not valid, RefusedError when held-out rows would stay readable
    (codes held_out_tracked, held_out_copied, held_out_is_link).
    """
    if not by.strip():
        raise RefusedError("An approval needs the name of the person who gives it.", mend="Pass it as `by`.")
    root, layout = project.layout.root, project.layout
    with project.ledger.transaction():
        pass  # a ledger that cannot be written says so before anything is moved
    draft = _read(root, path)
    plan, columns = draft.plan, draft.plan.data.held_out
    in_place = (root / columns.path).exists() or (root / columns.path).is_symlink()
    if in_place:
        require_movable(root, columns.path)
    earlier = None if in_place else _in_vault(project, columns.path)
    held_out = load_split(
        root, columns.path, "data.held_out.path", columns, ids=True, at=earlier.path if earlier else None
    )
    splits = _freeze_splits(project, plan)
    scorer = freeze_scorer(root, plan, layout.objects)
    sha256 = store_bytes(draft.data, layout.objects)
    moved = earlier or move_to_vault(root, columns.path, layout.held_out, project.clock)
    splits["held_out"] = _described_held_out(project, held_out, moved, plan)
    approve_config(layout)
    return _record(project, draft, sha256=sha256, splits=splits, scorer=scorer, by=by)


def require_approved(project: Project, path: Path | None = None) -> ApprovedPlan:
    """The approved plan; with `path`, only if that file is the approved one and unchanged. Raises RefusedError."""
    approved = project.plan()
    if path is None:
        return approved
    draft = _read(project.layout.root, path)
    if sha256_bytes(draft.data) != approved.sha256:
        raise RefusedError(
            f"{draft.relative} is not the approved plan: {approved.name} version {approved.version} is {approved.path} "
            f"with SHA-256 {approved.sha256[:12]}.",
            mend=f"A person approves it with `harness plan approve {draft.relative}`.",
            code="plan_changed",
        )
    return approved


def data_paths(approved: ApprovedPlan) -> tuple[str, ...]:
    """The tables of the plan, relative to the root: data, so no part of a code snapshot."""
    content = approved.content["data"]
    paths = {content["train"], content["held_out"]["path"]}
    paths |= {split["path"] for split in approved.splits.values() if "path" in split}
    return tuple(sorted(paths))


def data_hashes(approved: ApprovedPlan) -> dict[str, str]:
    """Split name -> hash of its file, as frozen."""
    return {name: split["sha256"] for name, split in approved.splits.items()}


def _read(root: Path, path: Path) -> _Draft:
    found = path if path.is_absolute() or path.exists() else root / path
    resolved = found.resolve()
    if not resolved.is_relative_to(root):
        raise PlanError(f"{path} is outside the project {root}.", mend="Keep plans in the project.")
    relative = resolved.relative_to(root).as_posix()
    try:
        data = read_bytes(resolved, limit=MAX_TEXT_BYTES)
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no plan at {found}.", mend="Write one, or begin with `harness init`.", code="no_plan_file"
        ) from error
    return _Draft(
        path=resolved, relative=relative, data=data, plan=parse_plan(decode(data, where=relative), where=relative)
    )


def _in_vault(project: Project, relative: str) -> InVault:
    approved = [plan.splits["held_out"]["sha256"] for plan in project.ledger.plans() if "held_out" in plan.splits]
    return find_in_vault(relative, project.layout.held_out, approved=approved)


def _freeze_splits(project: Project, plan: Plan) -> dict[str, Any]:
    """Train and validation as they are; validation also as the harness's own copy, which evaluations read."""
    root, columns = project.layout.root, plan.data.held_out
    if plan.data.validation is None:
        make_split(root, plan)
    train, validation = split_paths(plan)
    splits = {
        "train": described(load_split(root, train, "data.train", columns, ids=False), root, columns),
        "validation": described(load_split(root, validation, "data.validation", columns, ids=True), root, columns),
    }
    sha256, suffix = splits["validation"]["sha256"], Path(validation).suffix
    copy = copy_file(root / validation, project.layout.validation, sha256, suffix=suffix)
    splits["validation"]["vault"] = copy.relative_to(project.layout.state).as_posix()
    return splits


def _described_held_out(project: Project, held_out: Split, moved: InVault, plan: Plan) -> dict[str, Any]:
    columns = plan.data.held_out
    return {
        "vault": moved.path.relative_to(project.layout.state).as_posix(),
        "sha256": moved.sha256,
        "rows": held_out.table.n,
        "inputs": list(columns.inputs),
        "label": columns.label,
        "id": columns.id,
    }


def _record(
    project: Project, draft: _Draft, *, sha256: str, splits: dict[str, Any], scorer: dict[str, Any], by: str
) -> ApprovedPlan:
    standing = project.ledger.plan()
    name = draft.plan.name
    if standing is not None and (standing.name, standing.sha256, standing.splits, standing.scorer) == (
        name,
        sha256,
        splits,
        scorer,
    ):
        return standing
    versions = [plan.version for plan in project.ledger.plans() if plan.name == name]
    project.ledger.append(
        PlanApproved(
            name=name,
            version=max(versions, default=0) + 1,
            path=draft.relative,
            sha256=sha256,
            content=draft.plan.plain(),
            splits=splits,
            scorer=scorer,
            by=by,
        )
    )
    return project.plan()
