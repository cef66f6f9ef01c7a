"""`harness plan check | approve`: the plan, which anybody drafts and a person approves."""

import sys
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from harness.cli.changing import changing
from harness.cli.output import (
    CommandGroup,
    copy_option,
    emit,
    environment,
    json_option,
    project_option,
    tell,
)
from harness.cli.person import (
    AGENT,
    ASK,
    caller,
    caller_of,
    require_person,
    require_yes,
    stdin_is_terminal,
)
from harness.contract.artifacts import BY_NAME, DRAFT, INNER_PLAN
from harness.contract.roles import HOW_TO_DECIDE
from harness.domain.findings import Finding, as_text
from harness.domain.grade import CallerKind
from harness.domain.ids import names_experiment
from harness.domain.prices import model_of
from harness.domain.statuses import SandboxKind
from harness.errors import NotFoundError, UsageError
from harness.evaluation.power import Power, few_rows, power_of
from harness.evaluation.released import bits_limit, bits_told
from harness.evaluation.scorer_probes import prober
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import open_layout, open_project
from harness.plans.approval import PlanCheck, approve_plan, check_plan
from harness.plans.approved import data_told, frozen_changes
from harness.plans.changes import Changes, require_seen
from harness.plans.prediction_form import predictions_told
from harness.plans.review import as_one_error
from harness.plans.scorer import ScorerProbe
from harness.rendering.standing import next_step
from harness.sandbox.select import choose
from harness.settings import find_root

PLAN_FILE = BY_NAME["plan"].path
CHANGES = click.option(
    "--changes",
    metavar="DIGEST",
    default=None,
    help="Of the changes that were shown: confirms these and no others.",
)
PLAN = click.argument("plan", type=click.Path(dir_okay=False, path_type=Path), default=PLAN_FILE)


@click.group("plan", cls=CommandGroup)
def command() -> None:
    """Check a plan, or approve it: approval freezes it and moves held-out data to the vault."""


@command.command("check")
@PLAN
@copy_option
@project_option
@json_option
def check(plan: Path, copy: Path | None, project: Path, as_json: bool) -> None:
    """List every problem of PLAN; exit 2 when it cannot be approved. Changes nothing."""
    _require_name(plan)
    plan = _there(project, plan)
    asked_by = caller_of(environment(), open_layout(project, environment()).state)
    by_person = asked_by.kind is CallerKind.PERSON
    checked = check_plan(
        project,
        plan,
        environment(),
        by_person=by_person,
        at_terminal=by_person and stdin_is_terminal(),
        probe=_probe(),
        copy=copy,
    )
    power = _power(checked)
    findings = [*checked.findings, *small_told(checked)]
    document = {
        "plan": str(plan),
        "valid": not checked.problems,
        "problems": [
            {"code": problem.code, "message": problem.message, "hint": problem.hint}
            for problem in checked.problems
        ],
        "findings": [finding.plain() for finding in findings],
    }
    form = "" if checked.plan is None else predictions_told(checked.plan, checked.splits)
    document["predictions"] = form
    if power is not None:
        document["power"] = asdict(power)
    if checked.problems:
        error = as_one_error(str(plan), checked.problems)
        plain = {"code": error.code, "message": error.message, "hint": error.hint}
        if as_json:
            emit({**document, "error": plain}, as_json=True)
            sys.exit(error.exit_code)
        if findings:
            tell(as_text(findings))
        raise error
    in_force = _in_force(project, checked)
    head, then = (
        f"{plan} can be approved.",
        f"next: a person approves it: `harness plan approve {plan}`. {HOW_TO_DECIDE}",
    )
    if in_force is not None:
        head, then = f"{plan} is approved as version {in_force.version}, unchanged.", ""
    lines = [
        head,
        form,
        "" if power is None else power.words,
        as_text(findings),
        then,
    ]
    emit(document, *filter(None, lines), as_json=as_json)


def _there(start: Path, plan: Path) -> Path:
    """Where nothing is at plan.md, the plan that `harness init --hooks none` puts into .harness."""
    if str(plan) != PLAN_FILE or plan.exists():
        return plan
    root = find_root(start)
    inner = not (root / plan).exists() and (root / INNER_PLAN).is_file()
    return Path(INNER_PLAN) if inner else plan


def _require_name(plan: Path) -> None:
    if names_experiment(str(plan)):
        raise UsageError(
            f"{plan} is the id of an experiment, and no plan; expected a file, e.g. plan.md.",
            hint=f"`harness gate check {plan}` judges it, `harness keep {plan}` keeps it.",
        )
    if plan.suffix != ".md":
        raise UsageError(
            f"{plan} is no plan; expected plan.md or plans/NAME.md.",
            hint="`harness plan check` looks at plan.md; `harness init` writes one.",
        )


def _in_force(start: Path, checked: PlanCheck) -> ApprovedPlan | None:
    """The approval that stands, where the plan, its scorer and its tables are as it froze them."""
    try:
        with open_project(start, environment(), read_only=True) as opened:
            approved = opened.ledger.plan()
            if approved is None or approved.path != checked.path:
                return None
            return None if frozen_changes(opened, approved) else approved
    except NotFoundError:
        return None


def _power(checked: PlanCheck) -> Power | None:
    """Of the comparison on validation, as far as the tables could be read."""
    plan, splits = checked.plan, checked.splits
    if plan is None or not {"train", "validation"} <= splits.keys() or plan.scorer_script:
        return None
    data, rows = plan.data, splits["validation"].table
    groups = None if data.group is None else len(np.unique(rows.columns[data.group].astype(str)))
    labels = splits["train"].table.columns[data.held_out.label]
    return power_of(
        plan.oracle.scorer,
        rows=rows.n,
        seeds=plan.oracle.seeds,
        groups=groups,
        labels=labels.astype(float).tolist() if labels.dtype.kind in "biuf" else None,
    )


def small_told(checked: PlanCheck) -> list[Finding]:
    """A note, where validation has few rows."""
    if checked.plan is None or "validation" not in checked.splits:
        return []
    rows = checked.splits["validation"].table.n
    return few_rows(checked.plan.oracle.scorer, rows, _power(checked))


def _probe() -> ScorerProbe | None:
    """In the strongest sandbox; without one a script of an agent runs for a person only."""
    sandbox = choose(None, required=False)
    if sandbox.kind is SandboxKind.NONE and caller(environment()) == AGENT:
        return None
    return prober(sandbox)


@command.command("approve")
@PLAN
@CHANGES
@ASK
@project_option
@json_option
def approve(plan: Path, changes: str | None, ask: bool, project: Path, as_json: bool) -> None:
    """Freeze PLAN and its scorer by hash and move held-out data to the vault.

    A draft (plans/NAME.draft.md) is put in the place of the plan NAME, which is plan.md or
    plans/NAME.md, and removed from its own.
    Over an approved plan: shows what would change and exits 2; --changes with the digest that it
    names confirms these changes and no others, --ask asks at once. Must be run by a person.
    """
    if ask and changes is not None:
        raise click.UsageError("--ask and --changes do not go together.")
    _require_name(plan)
    plan = _there(project, plan)
    by = require_person("plan approve", environment())
    seen: list[Changes] = []

    def confirm(found: Changes) -> None:
        seen.append(found)
        if ask:
            require_yes(f"This would approve {found.what}:\n{found.text}", "Approve it?")
        else:
            require_seen(found, changes, f"harness plan approve {plan}")

    with changing(project, new_config=True) as opened:
        findings: list[Finding] = []
        approved = approve_plan(
            opened,
            plan,
            by=by,
            on_findings=findings.extend,
            on_changes=confirm,
            first_too=ask,
            probe=_probe(),
            model=model_of(environment()),
            environment=environment(),
        )
        judge = opened.ledger.recorded_judge(opened.ledger.writer)
        told, limit = bits_told(opened, approved), bits_limit(approved)
        step = next_step(opened)
    assert judge is not None  # the approval recorded it
    document = {
        "plan": approved.name,
        "version": approved.version,
        "sha256": approved.sha256,
        "splits": approved.splits,
        "bits": limit,
        "bits_told": round(told, 1),
        "judge": {"sha256": judge.sha256, "files": judge.files, "python": judge.python},
        "changes": seen[0].plain() if seen else None,
        "findings": [finding.plain() for finding in findings],
    }
    head = f"approved {approved.name} version {approved.version} ({approved.sha256[:12]})"
    judges = f"judge: {judge.files} files ({judge.sha256[:12]}), Python {judge.python}"
    then = f"{step.line}, or with agents `harness run {approved.path}`"
    bits = f"secret labels: {told:.1f} of {limit:g} bits may be told to agents so far"
    follows = seen[0].follows if seen else ()
    lines = [head, *_data_lines(approved), _taken(plan, approved.path), *follows, bits, judges]
    lines += [as_text(findings), then]
    emit(document, *filter(None, lines), as_json=as_json)


def _data_lines(approved: ApprovedPlan) -> list[str]:
    held_out, lines = approved.splits.get("held_out"), [f"data: {data_told(approved)}"]
    if held_out:
        rows = held_out["rows"]
        lines.append(f"held-out: {rows} rows, moved to the vault; agents cannot read them")
    return lines


def _taken(plan: Path, place: str) -> str:
    """What became of a draft."""
    return f"{plan} is now {place}" if plan.name.endswith(DRAFT) else ""
