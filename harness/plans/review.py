"""Everything that approval would refuse in a plan, found without changing anything: what `harness
plan check` shows, `harness plan approve` refuses."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from harness.artifacts.content import MAX_TEXT_BYTES, decode, read_bytes
from harness.artifacts.locate import Layout
from harness.artifacts.vault_key import existing_key
from harness.contract.profiles import PROFILES
from harness.domain.findings import Finding
from harness.domain.prices import DEFAULT_MODEL
from harness.domain.records import LEAST_SEEDS
from harness.errors import HarnessError, NotFoundError, PlanError
from harness.plans.data_review import data_findings, hidden_labels
from harness.plans.groups import group_notes, group_problems
from harness.plans.held_out import (
    HELD_OUT,
    HIDDEN_VALIDATION,
    InVault,
    find_in_vault,
    require_no_copies,
    require_not_replaced,
    unmovable,
)
from harness.plans.labels import class_problems, label_problems
from harness.plans.metric_names import metric_notes, require_metric_spelled
from harness.plans.model_budget import budget_problems
from harness.plans.parse import Plan, parse_plan
from harness.plans.row_search import Found, Secret, search
from harness.plans.schema import Data
from harness.plans.scorer import (
    Closure,
    ScorerProbe,
    import_closure,
    not_tried,
    scorer_warnings,
    with_packages,
)
from harness.plans.splits import SplitTable, load_split, planned_split, secret_paths, split_paths
from harness.plans.tables import Table
from harness.settings import granted, require_interpreter

_SCRIPTS = (".py", ".sh")
_FIRST_BITS, _NEXT_BITS = 8.0, 1.6
"""About what the first answer on hidden labels costs, and each further one at the least."""
_SECRET = {
    "held_out": (HELD_OUT, "data.held_out.path"),
    "validation": (HIDDEN_VALIDATION, "data.validation"),
}
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A plan that was read and is not yet approved."""

    path: Path
    relative: str
    """To the project's root."""
    data: bytes
    plan: Plan


@dataclass(kw_only=True)
class Review:
    """`splits` holds the tables that could be read, `closure` the scorer when it is a sound
    script."""

    problems: list[HarnessError] = field(default_factory=list)
    splits: dict[str, SplitTable] = field(default_factory=dict)
    closure: Closure | None = None
    probed: bool = False
    """Whether the script was tried."""
    in_vault: dict[str, InVault] = field(default_factory=dict)
    """Split -> its file, of those that are no longer in the project."""
    found: Found | None = None
    """Rows of secret splits elsewhere, where they were looked for."""

    def collect(self, check: Callable[[], ResultT]) -> ResultT | None:
        """What `check` returns; None, and a problem more, when it raises."""
        try:
            return check()
        except HarnessError as error:
            self.problems.append(error)
            return None


def read_draft(root: Path, path: Path, copy: Path | None = None) -> Draft:
    """The plan at `path`, its text from `copy` where one was made. Raises NotFoundError, or
    PlanError when it is no plan of the project."""
    place = path if path.is_absolute() or path.exists() else root / path
    resolved = place.resolve()
    if not resolved.is_relative_to(root):
        raise PlanError(
            f"{path} is outside the project {root}.", hint="Keep plans in the project."
        )
    relative = resolved.relative_to(root).as_posix()
    try:
        data = read_bytes(copy or resolved, limit=MAX_TEXT_BYTES)
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no plan at {place}.",
            hint="Write one, or begin with `harness init`.",
            code="no_plan_file",
        ) from error
    return Draft(
        path=resolved,
        relative=relative,
        data=data,
        plan=parse_plan(decode(data, where=relative), where=relative),
    )


def review_plan(
    layout: Layout,
    plan: Plan,
    *,
    approved: Mapping[str, Sequence[str]],
    by_person: bool = False,
    probe: ScorerProbe | None = None,
    model: str = DEFAULT_MODEL,
    installing: Mapping[str, str] | None = None,
) -> Review:
    """Check interpreter, scorer, tables, and whether held-out and a hidden validation can be moved.
    `approved` are the hashes of these files of all approvals so far, oldest first; `probe` tries a
    script that scores; `model` is what sessions ask where the plan's profile names none;
    `installing`: the environment variables of a person for whom packages of the scorer are
    installed where they are not.

    Rows that lie in the vault already are looked for elsewhere only `by_person`: whoever may ask as
    often as he likes whether a file holds them would be told what they are. So it is with groups,
    and with labels that the metric cannot read.
    """
    root, review = layout.root, Review()
    review.collect(lambda: require_interpreter(layout.settings))
    asked = PROFILES[plan.agents.profile].model or model
    review.problems += budget_problems(plan.budget, asked)
    script = plan.scorer_script
    if script is not None:
        review.closure = review.collect(lambda: import_closure(root, script))
    packages, plain = plan.oracle.packages, review.closure
    if plain is not None and packages:
        installed = review.collect(
            lambda: with_packages(plain, layout.scorers, packages, installing)
        )
        review.closure = installed or replace(plain, packages=packages)
    review.collect(lambda: require_metric_spelled(plan))
    _train_and_validation(review, root, plan)
    for split, relative in secret_paths(plan).items():
        _secret(review, layout, plan.data, split, relative, list(approved.get(split, ())))
    train = review.splits.get("train")
    ready = review.closure is not None and review.closure.ready
    if probe is not None and review.closure is not None and ready and train is not None:
        labels = train.table.columns[plan.data.held_out.label]
        review.problems += probe(review.closure, plan.objective(), labels)
        review.probed = True
    in_vault = frozenset(review.in_vault)
    told = {
        name: split for name, split in review.splits.items() if by_person or name not in in_vault
    }
    review.problems += group_problems(told, plan.data.group, secret=in_vault)
    review.problems += [*label_problems(told, plan), *class_problems(told, plan)]
    columns = plan.data.held_out
    tables = {
        name: one.table.columns for name, one in review.splits.items() if name not in in_vault
    }
    review.problems += hidden_labels(tables, columns.inputs, columns.label)
    # A copy of the whole file was named already: what else there is comes when it is gone.
    named = any(problem.code.startswith("held_out_") for problem in review.problems)
    if not named:
        _look_elsewhere(review, layout, plan, by_person=by_person)
    return review


def _secret(
    review: Review, layout: Layout, data: Data, split: str, relative: str, approved: list[str]
) -> None:
    root, place = layout.root, layout.root / relative
    (what, name), vault = _SECRET[split], secret_folder(layout, split)
    key = existing_key(layout.vault)
    if place.exists() or place.is_symlink():
        review.problems += review.collect(lambda: unmovable(root, relative, what)) or []
        review.collect(lambda: require_not_replaced(root, relative, vault, key=key, what=what))
        at = place
    else:
        found = review.collect(
            lambda: find_in_vault(relative, vault, key=key, approved=approved, what=what)
        )
        if found is None:
            return
        review.in_vault[split], at = found, found.path
        review.collect(lambda: require_no_copies(root, relative, at, what))
    _load(review, split, lambda: load_split(root, relative, name, data, ids=True, at=at))


def secret_folder(layout: Layout, split: str) -> Path:
    """Where in the vault the file of held-out, or of a hidden validation, lies."""
    return layout.validation if split == "validation" else layout.held_out


def _look_elsewhere(review: Review, layout: Layout, plan: Plan, *, by_person: bool) -> None:
    columns, root, paths = plan.data.held_out, layout.root, secret_paths(plan)
    known = [split.table.columns for name, split in review.splits.items() if name not in paths]
    secrets = [
        Secret(
            name=_SECRET[name][0],
            columns=review.splits[name].table.columns,
            inputs=columns.inputs,
            label=columns.label,
            id=columns.id,
            known=known,
        )
        for name in paths
        if name in review.splits and (by_person or name not in review.in_vault)
    ]
    if not secrets or not known:
        return
    own = frozenset({plan.data.train, *split_paths(plan)} - set(paths.values()))
    skip = frozenset({layout.state, *(root / path for path in paths.values())})
    readable = granted(layout.settings)
    review.found = review.collect(
        lambda: search(root, secrets, skip=skip, own=own, readable=readable)
    )
    if review.found is not None:
        review.problems += review.found.refusals()


def _train_and_validation(review: Review, root: Path, plan: Plan) -> None:
    data, validation = plan.data, plan.data.validation
    _load(
        review,
        "train",
        lambda: load_split(root, data.train, "data.train", data, ids=validation is None),
    )
    if validation is not None and not plan.hidden_validation:
        _load(
            review,
            "validation",
            lambda: load_split(root, validation, "data.validation", data, ids=True),
        )
    elif validation is None and "train" in review.splits:
        whole = review.splits["train"]
        parts = review.collect(lambda: planned_split(root, plan, whole)) or {}
        for name, (path, table) in zip(("train", "validation"), parts.items(), strict=False):
            review.splits[name] = SplitTable(
                path=path, table=Table(columns=table, n=len(table[data.held_out.label]))
            )


def _load(review: Review, name: str, load: Callable[[], SplitTable]) -> None:
    split = review.collect(load)
    if split is not None:
        review.splits[name] = split


def notes(root: Path, plan: Plan, review: Review, *, by_person: bool) -> list[Finding]:
    """What does not forbid an approval, but a person will want to know before; `by_person` as for
    `shown_splits`."""
    findings = [] if review.closure is None else scorer_warnings(review.closure)
    if review.closure is not None and not review.probed:
        findings.append(not_tried(review.closure))
    if plan.oracle.seeds < LEAST_SEEDS:
        findings.append(
            Finding(
                "seeds_too_few",
                f"oracle.seeds is {plan.oracle.seeds}: with fewer than {LEAST_SEEDS} no experiment"
                " can be told from its parent, so none is kept without a person.",
                f"Set oracle.seeds to {LEAST_SEEDS} or more.",
            )
        )
    shown = shown_splits(review, by_person=by_person)
    findings += metric_notes(plan) + group_notes(shown, plan.data.group) + _bits_note(plan)
    findings += _tree_note(plan)
    findings += _script_notes(
        root, {"training.entry": plan.training.entry, "oracle.predict": plan.oracle.predict}
    )
    findings += _reference_notes(root, plan)
    findings += review.found.notes() if review.found is not None else []
    return findings + _data_notes(plan, review, shown)


def shown_splits(review: Review, *, by_person: bool) -> dict[str, SplitTable]:
    """What may be told of. Where no person asks, nothing of what lies in the vault: whoever drafts
    a plan chooses its training rows and its inputs, and each answer about them would tell of the
    labels, counted by nobody."""
    secret = frozenset() if by_person else frozenset(review.in_vault)
    return {name: split for name, split in review.splits.items() if name not in secret}


def _bits_note(plan: Plan) -> list[Finding]:
    """For a hidden validation: how far the bits reach."""
    bits, experiments = plan.oracle.bits, plan.budget.experiments
    reach = 1 + max(0, int((bits - _FIRST_BITS) // _NEXT_BITS))
    if not plan.hidden_validation or reach >= experiments:
        return []
    return [
        Finding(
            "bits_few",
            f"oracle.bits is {bits:g}: it is enough for about {reach} answers, and"
            f" budget.experiments is {experiments}. When the bits are spent, `harness"
            " evaluate` refuses further looks.",
            "Set oracle.bits higher, now or later: each bit more doubles what answers may tell of"
            " the hidden labels.",
            {"bits": bits, "experiments": experiments, "reach": reach},
        )
    ]


def _tree_note(plan: Plan) -> list[Finding]:
    """Scores on hidden labels are told to no loop, so it has no branches to rank."""
    if not plan.hidden_validation or plan.loop.search != "tree":
        return []
    return [
        Finding(
            "tree_without_scores",
            "loop.search is tree, and validation is hidden: its scores are not told, so each"
            " experiment builds on the last kept one, as with line.",
            "Name a validation table of yours in data.validation, or leave search out.",
        )
    ]


def _data_notes(plan: Plan, review: Review, shown: Mapping[str, SplitTable]) -> list[Finding]:
    columns = plan.data.held_out
    tables = {name: split.table.columns for name, split in shown.items()}
    secret = frozenset(review.in_vault)
    findings = data_findings(
        tables, columns.inputs, columns.label, secret=secret, id_column=columns.id
    )
    if kept := sorted(review.splits.keys() - shown.keys()):
        findings.append(
            Finding(
                "splits_not_compared",
                f"{' and '.join(kept)} lies in the vault: whether its rows stand in other splits is"
                " told to a person only.",
                "A person runs `harness plan check`.",
                {"splits": kept},
            )
        )
    return findings


def _script_notes(root: Path, commands: dict[str, str]) -> list[Finding]:
    # No problem, only a note: a program that is not there yet may be for an agent to write.
    scripts = {where: script_of(shlex.split(command)) for where, command in commands.items()}
    return [
        Finding(
            "script_not_in_place",
            f"{where} runs {script}, which is not in the project.",
            f"Correct {where} unless the agents are to write {script}.",
            {"field": where, "path": script},
        )
        for where, script in scripts.items()
        # Not by Path: a name that is too long for a file raises there.
        if script is not None and not os.path.isfile(root / script)
    ]


def _reference_notes(root: Path, plan: Plan) -> list[Finding]:
    return [
        Finding(
            "reference_not_in_place",
            f"references names {path}, which is not in the project.",
            "Put the paper or baseline there, correct the path, or take it out of references.",
            {"field": "references", "path": path},
        )
        for path in plan.references
        if not os.path.exists(root / path)
    ]


def script_of(words: Sequence[str]) -> str | None:
    """The first word that names a script; None for a module (-m), code (-c) and other programs."""
    for word in words:
        if word in ("-m", "-c"):
            return None
        if PurePosixPath(word).suffix in _SCRIPTS:
            return word
    return None


def as_one_error(where: str, problems: Sequence[HarnessError]) -> HarnessError:
    """The only problem as it is, or one PlanError that lists all of them."""
    if len(problems) == 1:
        return problems[0]
    lines = "\n".join(f"  - {problem.message.rstrip()} {problem.hint}" for problem in problems)
    error = PlanError(
        f"{where} cannot be approved: {len(problems)} problems:\n{lines}\n",
        hint="Correct all of them, then run `harness plan check`.",
    )
    error.problems = tuple(problems)
    return error
