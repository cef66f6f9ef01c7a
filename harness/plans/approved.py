"""What an approved plan says, by its recorded content, and whether what it froze is unchanged."""

import hashlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.artifacts.trees import (
    is_known,
    own_trees,
    place_of,
)
from harness.artifacts.vault_key import VaultKey, key_of
from harness.domain.findings import Finding
from harness.domain.records import (
    CLASSICAL,
    Experiment,
    Objective,
    Tree,
)
from harness.domain.statuses import Direction, Tier
from harness.errors import RefusedError, UsageError
from harness.guard.control_files import MISSING
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.scorer_packages import standing


def plan_of(project: Project, experiment: Experiment) -> ApprovedPlan:
    """The newest version of the experiment's plan. Raises RefusedError (no_plan)."""
    versions = [plan for plan in project.ledger.plans() if plan.name == experiment.plan]
    if not versions:
        raise RefusedError(
            f"{experiment.id} was opened without an approved plan: nothing says how to judge it.",
            hint=(
                "A person approves a plan with `harness plan approve plan.md`; then open a new"
                " experiment."
            ),
            code="no_plan",
        )
    return versions[-1]


def objective_of(approved: ApprovedPlan) -> Objective:
    """What scores are judged by."""
    oracle = approved.content["oracle"]
    tiers = {tier: oracle["tiers"].get(tier.value) for tier in Tier}
    return Objective(
        metric=oracle["metric"],
        direction=Direction(oracle["direction"]),
        tiers={tier: value for tier, value in tiers.items() if value is not None},
        seeds=oracle["seeds"],
        queries=oracle["queries"],
    )


def checkpoint_cadence(approved: ApprovedPlan) -> int | None:
    """training.checkpoint_every; None for classical-ml, whose rows are folds or trials."""
    content = approved.content
    if content["workflow"] == CLASSICAL:
        return None
    cadence: int = content["training"]["checkpoint_every"]
    return cadence


def deterministic(approved: ApprovedPlan) -> bool:
    """training.deterministic, which older approvals do not have."""
    return bool(approved.content["training"].get("deterministic", False))


def data_paths(approved: ApprovedPlan) -> tuple[str, ...]:
    """The tables of the plan, relative to the root: data, so no part of a code snapshot."""
    content = approved.content["data"]
    paths = {content["train"], content["held_out"]["path"]}
    for split in approved.splits.values():
        paths |= {split[key] for key in ("path", "moved_from") if key in split}
    return tuple(sorted(paths))


def declared(approved: ApprovedPlan) -> dict[str, str]:
    """What training may read of the plan's data: path -> hash as frozen; nothing of held-out or of
    a hidden validation."""
    return {
        split["path"]: split["sha256"] for split in approved.splits.values() if "path" in split
    }


def training_tables(approved: ApprovedPlan) -> dict[str, str]:
    """Split -> path of the tables that training reads: "train", and "validation" unless it is
    hidden."""
    return {
        name: approved.splits[name]["path"]
        for name in ("train", "validation")
        if "path" in approved.splits.get(name, ())
    }


def data_told(approved: ApprovedPlan) -> str:
    """Where the rows to train and to validate with are, in words."""
    splits, content = approved.splits, approved.content["data"]
    paths = training_tables(approved)
    told = [f"{name} {path} ({splits[name]['rows']} rows)" for name, path in paths.items()]
    words = ", ".join(told)
    if splits.get("validation", {}).get("hidden"):
        rows = splits["validation"]["rows"]
        words += f"; validation ({rows} rows) is hidden: training holds out rows of its own"
    elif "train" in paths and paths["train"] != content["train"]:
        words += f"; the harness made both from {content['train']}"
    return words


def secret(approved: ApprovedPlan, split: str) -> bool:
    """Whether the split lies in the vault alone: held-out, and a hidden validation."""
    entry = approved.splits.get(split, {})
    return "vault" in entry and "path" not in entry


def data_hashes(approved: ApprovedPlan) -> dict[str, str]:
    """Split name -> hash of its file, as frozen; keyed where the split is secret."""
    return {name: split["sha256"] for name, split in approved.splits.items()}


def plan_seeds(approved: ApprovedPlan, experiment: Experiment | None = None) -> list[int]:
    """The plan's seeds: the same for every experiment of a comparison. A baseline that was opened
    with more has those that come next, too."""
    planned: int = approved.content["oracle"]["seeds"]
    asked = (experiment and experiment.seeds) or 0
    return seeds_for(approved.basis, max(planned, asked))


def seeds_for(basis: str, count: int) -> list[int]:
    """`count` distinct seeds of 31 bits."""
    # From a hash of data and oracle: nobody chooses lucky ones, and experiments are compared seed
    # by seed.
    seeds: list[int] = []
    for seed in _stream(basis):
        if len(seeds) == count:
            break
        if seed not in seeds:
            seeds.append(seed)
    return seeds


def seeds_of(project: Project, experiment: Experiment) -> frozenset[int]:
    """Every seed that a version of its plan asked for; of a baseline that was opened with more,
    those that come next, too."""
    return frozenset(
        seed
        for plan in project.ledger.plans()
        if plan.name == experiment.plan
        for seed in plan_seeds(plan, experiment)
    )


def _stream(text: str) -> Iterator[int]:
    number = 0
    while True:
        digest = hashlib.sha256(f"{text}/{number}".encode()).digest()
        yield int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
        number += 1


def frozen_changes(project: Project, approved: ApprovedPlan) -> list[Finding]:
    """Findings plan_changed, scorer_changed, split_changed and data_not_here, of the project's
    files and of the vault's copies."""
    root, state = project.layout.root, project.layout.state
    findings = [
        *_compare(
            "plan_changed", root / approved.path, approved.path, approved.sha256, "The plan"
        ),
        *_scorer(project, approved),
    ]
    for name, split in approved.splits.items():
        if "path" in split:
            what = f"The {name} split"
            findings += _not_here(project, approved, what, split["path"]) or _compare(
                "split_changed", root / split["path"], split["path"], split["sha256"], what
            )
        if "vault" in split:
            path = state / split["vault"]
            what = f"The vault's {name} split"
            if not path.exists() and _approved_on_another_machine(project, approved):
                findings.append(_no_vault(what, project, path, secret(approved, name)))
                continue
            key = key_of(project.layout.vault, path) if secret(approved, name) else None
            findings += _compare("split_changed", path, str(path), split["sha256"], what, key=key)
    return findings


def require_unchanged(
    project: Project, approved: ApprovedPlan, *, without_secret: bool = False
) -> None:
    """Raises RefusedError with the first kind of `frozen_changes`. `without_secret`: what needs no
    secret rows, as a training, can do without those that lie on another machine."""
    changes = frozen_changes(project, approved)
    if without_secret:
        changes = [change for change in changes if not change.data.get("secret")]
    if changes:
        code = changes[0].code
        message = " ".join(finding.message for finding in changes)
        hints = dict.fromkeys(finding.hint for finding in changes if finding.code == code)
        raise RefusedError(message, hint=" ".join(hints), code=code)


NOT_HERE = "data_not_here"


def _not_here(project: Project, approved: ApprovedPlan, what: str, path: str) -> list[Finding]:
    """The finding of data that never was in this tree: git does not carry what it ignores."""
    layout, tree = project.layout, approved.tree
    if tree is None or os.path.lexists(layout.root / path) or tree["id"] in own_trees(layout):
        return []
    there = place_of(layout, tree["id"])
    if there is not None and (there / path).is_file():
        source, target = shlex.quote(str(there / path)), shlex.quote(str(layout.root / path))
        folder = shlex.quote(str((layout.root / path).parent))
        hint = f"A person links it: `mkdir -p {folder} && ln -s {source} {target}`."
    else:
        hint = f"A person copies {path} from where the plan was approved."
    return [
        Finding(
            NOT_HERE,
            f"{what} {path} is not in this working tree: the plan was approved in"
            f" {Tree(**tree).words}, and git does not carry data that it ignores.",
            hint,
            {"path": path},
        )
    ]


def _approved_on_another_machine(project: Project, approved: ApprovedPlan) -> bool:
    return approved.tree is not None and not is_known(project.layout, approved.tree["id"])


def _no_vault(what: str, project: Project, path: Path, nobodys: bool) -> Finding:
    return Finding(
        NOT_HERE,
        f"{what} is not on this machine: the plan was approved on another one.",
        f"A person copies the folder vault of the state directory there to {project.layout.vault}.",
        {"path": str(path), "secret": nobodys},
    )


def _scorer(project: Project, approved: ApprovedPlan) -> list[Finding]:
    findings = []
    for relative, expected in approved.scorer["files"].items():
        path = project.layout.root / relative
        findings += _compare("scorer_changed", path, relative, expected, "The scorer's file")
        frozen = project.layout.objects / expected
        findings += _compare(
            "scorer_changed", frozen, str(frozen), expected, f"The vault's copy of {relative}"
        )
    if (packages := approved.scorer.get("environment")) is not None:
        folder = project.layout.scorers / packages["folder"]
        now = standing(folder)
        actual = MISSING if now is None else now.sha256
        what = "The scorer's environment"
        findings += _differs("scorer_changed", str(folder), actual, packages["sha256"], what)
    return findings


def _compare(
    code: str, path: Path, name: str, expected: str, what: str, *, key: VaultKey | None = None
) -> list[Finding]:
    try:
        actual = hash_file(path) if key is None else key.of_file(path)
    except UsageError:  # missing, unreadable or no file
        actual = MISSING
    return _differs(code, name, actual, expected, what)


def _differs(code: str, name: str, actual: str, expected: str, what: str) -> list[Finding]:
    if actual == expected:
        return []
    state = "is missing" if actual == MISSING else f"has SHA-256 {actual[:12]}"
    return [
        Finding(
            code,
            f"{what} {name} {state}; {expected[:12]} was approved.",
            "Restore it, or let a person run `harness plan approve`: it shows what changed, and"
            " makes a new version.",
            {"path": name, "expected": expected, "actual": actual},
        )
    ]
