"""Checking and approving plans: approval freezes plan, scorer and data by their hashes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_file
from harness.artifacts.locate import Layout
from harness.artifacts.objects import copy_file, store_bytes
from harness.artifacts.trees import this_tree
from harness.artifacts.vault_key import existing_key, vault_key
from harness.clock import SystemClock
from harness.domain.findings import Finding
from harness.domain.prices import DEFAULT_MODEL, model_of
from harness.errors import HarnessError, NotFoundError, RefusedError, UsageError
from harness.files import sha256_bytes
from harness.guard.accepted import accept_on_record, read_accepted
from harness.ledger.creation import require_never_made
from harness.ledger.facts import ApprovedPlan, PlanApproved
from harness.ledger.project import Project, approve_config, open_layout, open_project
from harness.plans.changes import (
    Changes,
    data_now,
    first_approval,
    plan_changes,
    recorded_name,
    with_config,
)
from harness.plans.data_review import contamination
from harness.plans.drafts import in_its_place, remove_taken, take_over
from harness.plans.held_out import move_to_vault, not_as_reviewed
from harness.plans.judge import record_judge
from harness.plans.parse import Plan
from harness.plans.review import (
    Draft,
    Review,
    as_one_error,
    notes,
    read_draft,
    review_plan,
    secret_folder,
    shown_splits,
)
from harness.plans.scorer import ScorerProbe, freeze_scorer
from harness.plans.splits import (
    SplitTable,
    described,
    load_split,
    make_split,
    secret_paths,
    split_paths,
)
from harness.settings import CONFIG


@dataclass(frozen=True, kw_only=True)
class PlanCheck:
    """Problems forbid an approval, findings do not."""

    path: str
    problems: tuple[HarnessError, ...]
    findings: tuple[Finding, ...]
    plan: Plan | None = field(default=None, compare=False)
    splits: Mapping[str, SplitTable] = field(default_factory=dict, compare=False)
    """Those whose tables could be read."""


def check_plan(
    start: Path,
    path: Path,
    environment: Mapping[str, str],
    *,
    by_person: bool,
    at_terminal: bool = False,
    probe: ScorerProbe | None = None,
    copy: Path | None = None,
) -> PlanCheck:
    """All that approval would refuse, and what else a person should know about the plan at `path`;
    `probe` tries a script that scores, `by_person` as for `review.shown_splits`, `copy` as for
    `review.read_draft`. Where rows of the vault stand in the project is said `at_terminal`, as
    surely a person's as an approval is. Changes nothing.
    Raises NotFoundError or ConfigError without a project, LedgerError."""
    layout = open_layout(start, environment)
    try:
        draft = read_draft(layout.root, path, copy)
    except UsageError as error:
        return PlanCheck(path=str(path), problems=(error,), findings=())
    review = review_plan(
        layout,
        draft.plan,
        approved=_approved_before(layout, environment),
        by_person=at_terminal,
        probe=probe,
        model=model_of(environment),
    )
    findings = notes(layout.root, draft.plan, review, by_person=by_person)
    return PlanCheck(
        path=draft.relative,
        problems=tuple(review.problems),
        findings=tuple(findings),
        plan=draft.plan,
        splits=shown_splits(review, by_person=by_person),
    )


def _approved_before(layout: Layout, environment: Mapping[str, str]) -> dict[str, list[str]]:
    try:
        with open_project(layout.root, environment, read_only=True) as project:
            return _secret_hashes(project)
    except NotFoundError:
        require_never_made(layout.ledger, layout.anchors, SystemClock())
        return {}


def approve_plan(
    project: Project,
    path: Path,
    *,
    by: str,
    on_findings: Callable[[list[Finding]], None] = lambda findings: None,
    on_changes: Callable[[Changes], None] = lambda changes: None,
    first_too: bool = False,
    probe: ScorerProbe | None = None,
    model: str = DEFAULT_MODEL,
    environment: Mapping[str, str] | None = None,
) -> ApprovedPlan:
    """Freeze plan, scorer and data; move rows of held-out and a hidden validation to the vault.

    A draft (see plans.drafts) is put in its plan's place, and removed from its own. The same plan,
    scorer and data again give the standing approval; anything else is the next version. A call that
    was killed is finished by the next one. `environment`: the variables with which packages of a
    scorer are installed. Raises the problem that `check_plan` finds, or one
    PlanError for several; `on_findings` gets its findings. `on_changes` gets what is not as the
    plan in force has it, and all of a first plan that an agent may have written, with `first_too`
    of any, before anything is moved or recorded, and may raise.
    """
    if not by.strip():
        raise RefusedError(
            "An approval needs the name of the person who gives it.", hint="Pass it as `by`."
        )
    root, layout = project.layout.root, project.layout
    # All that can be refused is refused before anything is moved: a ledger that cannot be written,
    # a damaged list of accepted files, a plan with problems.
    with project.ledger.transaction():
        pass
    read_accepted(layout)
    draft = read_draft(root, path)
    placed, plan = in_its_place(project, draft), draft.plan
    review = _reviewed(project, draft, probe, model, environment or {})
    on_findings(notes(root, plan, review, by_person=True))
    # From here on by what lies in the vault: nobody exchanges it after it was shown.
    packages = None if review.closure is None else review.closure.environment
    scorer = freeze_scorer(root, plan, layout.objects, packages)
    sha256 = store_bytes(draft.data, layout.objects)
    config = layout.project("config_toml").read_bytes()
    shown = _show_changes(project, draft, sha256, scorer, review, config, on_changes, first_too)
    splits = _freeze_splits(project, plan, review)
    _require_as_shown(splits, shown, review)
    key = vault_key(layout.vault)
    for name, relative in secret_paths(plan).items():
        looked_at, vault = review.splits[name], secret_folder(layout, name)
        moved = review.in_vault.get(name) or move_to_vault(
            root, relative, vault, project.clock, key=key, reviewed=looked_at.sha256
        )
        splits[name] |= described(looked_at, plan.data, moved.sha256)
        splits[name]["vault"] = moved.path.relative_to(layout.state).as_posix()
    # Only now a fact: a killed call leaves no approval whose scorer or data is not frozen yet.
    take_over(project, draft, placed)
    approve_config(layout, config)
    approved = _record(project, placed, sha256=sha256, splits=splits, scorer=scorer, by=by)
    accept_on_record(project, by=by, paths=[CONFIG])
    record_judge(project, by=by)
    remove_taken(draft, placed)
    return approved


def _reviewed(
    project: Project,
    draft: Draft,
    probe: ScorerProbe | None,
    model: str,
    environment: Mapping[str, str],
) -> Review:
    """Raises the problem, or one PlanError for several."""
    review = review_plan(
        project.layout,
        draft.plan,
        approved=_secret_hashes(project),
        by_person=True,
        probe=probe,
        model=model,
        installing=environment,
    )
    if review.problems:
        raise as_one_error(draft.relative, review.problems)
    return review


def _show_changes(
    project: Project,
    draft: Draft,
    sha256: str,
    scorer: dict[str, Any],
    review: Review,
    config: bytes,
    on_changes: Callable[[Changes], None],
    first_too: bool,
) -> dict[str, str]:
    """The hashes of the tables that a person saw or approved before, by split."""
    standing, of_agents = project.ledger.plan(), _agents_worked(project)
    if standing is None and not (of_agents or first_too):
        return {}
    train, validation = split_paths(draft.plan)
    paths = {"train": train}
    if not draft.plan.hidden_validation:
        paths["validation"] = validation
    data = data_now(project.layout.root, paths)
    name, content = draft.plan.name, draft.plan.plain()
    if standing is None:
        on_changes(
            first_approval(
                project,
                draft.relative,
                of_agents=of_agents,
                name=name,
                sha256=sha256,
                content=content,
                scorer=scorer,
                data=data,
            )
        )
        return data
    now = data | _secret_now(project.layout, draft.plan, review)
    changes = plan_changes(
        project,
        standing,
        name=recorded_name(standing, content, now, scorer),
        sha256=sha256,
        content=content,
        scorer=scorer,
        data=now,
    )
    what = f"another configuration beside {standing.name} version {standing.version}"
    changes = with_config(project, config, changes, what)
    if changes is not None:
        on_changes(changes)
    before = {name: split["sha256"] for name, split in standing.splits.items()}
    return {name: data.get(name, before.get(name, "")) for name in paths}


def _secret_now(layout: Layout, plan: Plan, review: Review) -> dict[str, str]:
    """Split -> keyed hash of its file, in the vault or still in the project."""
    hashes = {name: moved.sha256 for name, moved in review.in_vault.items()}
    key = existing_key(layout.vault)
    for name, relative in secret_paths(plan).items():
        if name not in hashes and key is not None:
            hashes[name] = key.of_file(layout.root / relative)
    return hashes


def _agents_worked(project: Project) -> bool:
    """Whether a session began or left a receipt: it may have written what the first approval
    freezes."""
    left = any(project.layout.shared("receipts").glob("*.jsonl"))
    return left or any(True for _ in project.ledger.sessions_began())


def _require_as_shown(splits: dict[str, Any], shown: Mapping[str, str], review: Review) -> None:
    """Raises RefusedError (data_changed) when a table is none of those that were looked at and
    compared."""
    for name, split in splits.items():
        looked_at = {shown.get(name), review.splits[name].sha256} - {None}
        if "path" in split and looked_at - {split["sha256"]}:
            raise not_as_reviewed(split["path"])


def require_approved(project: Project, path: Path | None = None) -> ApprovedPlan:
    """The approved plan. Raises RefusedError without one, or when `path` is not its file."""
    approved = project.plan()
    if path is None:
        return approved
    draft = read_draft(project.layout.root, path)
    if sha256_bytes(draft.data) != approved.sha256:
        raise RefusedError(
            f"{draft.relative} is not the approved plan: {approved.name} version {approved.version}"
            f" is {approved.path} with SHA-256 {approved.sha256[:12]}.",
            hint=f"A person approves it with `harness plan approve {draft.relative}`.",
            code="plan_changed",
        )
    return approved


def _secret_hashes(project: Project) -> dict[str, list[str]]:
    """Of held-out and of hidden validations, as all approvals so far name them, oldest first."""
    hashes: dict[str, list[str]] = {}
    for plan in project.ledger.plans():
        for name, split in plan.splits.items():
            if "vault" in split and "path" not in split:
                hashes.setdefault(name, []).append(split["sha256"])
    return hashes


def _freeze_splits(project: Project, plan: Plan, review: Review) -> dict[str, Any]:
    """Train and an open validation as they are; this also as a copy in the vault, which evaluations
    read. `in_train` of each later split: what of it the training rows hold, for the gates."""
    root, columns, data = project.layout.root, plan.data.held_out, plan.data
    if data.validation is None:
        make_split(root, plan)
    train, validation = split_paths(plan)
    known = load_split(root, train, "data.train", data, ids=False)
    tried = (
        review.splits["validation"]
        if plan.hidden_validation
        else load_split(root, validation, "data.validation", data, ids=True)
    )
    later = {"validation": tried, "held_out": review.splits["held_out"]}
    splits: dict[str, Any] = {
        name: {
            "in_train": contamination(
                known.table.columns, split.table.columns, columns.inputs, columns.label
            )
        }
        for name, split in later.items()
    }
    splits["train"] = {"path": train, **described(known, data, hash_file(root / train))}
    if plan.hidden_validation:
        splits["validation"] |= {"hidden": True, "moved_from": validation}
        return splits
    sha256, suffix = hash_file(root / validation), Path(validation).suffix
    splits["validation"] |= {"path": validation, **described(tried, data, sha256)}
    copy = copy_file(root / validation, project.layout.validation, sha256, suffix=suffix)
    splits["validation"]["vault"] = copy.relative_to(project.layout.state).as_posix()
    return splits


def _record(
    project: Project,
    draft: Draft,
    *,
    sha256: str,
    splits: dict[str, Any],
    scorer: dict[str, Any],
    by: str,
) -> ApprovedPlan:
    standing, content = project.ledger.plan(), draft.plan.plain()
    hashes = {split: entry["sha256"] for split, entry in splits.items()}
    name = recorded_name(standing, content, hashes, scorer)
    now = (name, sha256, splits, scorer)
    if standing and (standing.name, standing.sha256, standing.splits, standing.scorer) == now:
        return standing
    versions = [plan.version for plan in project.ledger.plans() if plan.name == name]
    project.ledger.append(
        PlanApproved(
            name=name,
            version=max(versions, default=0) + 1,
            path=draft.relative,
            sha256=sha256,
            content=content,
            splits=splits,
            scorer=scorer,
            by=by,
            tree=asdict(this_tree(project.layout)),
        )
    )
    return project.plan()
