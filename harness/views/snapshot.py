"""The state of a project as plain data: what `status` and `experiment list` show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.artifacts.locate import active_experiment
from harness.artifacts.looked import looking
from harness.artifacts.trees import place_of
from harness.decisions.experiments import undecided_experiment
from harness.domain.findings import Finding
from harness.domain.late import later
from harness.domain.records import Experiment
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    DecisionKind,
    Split,
    Verdict,
    spoken,
)
from harness.errors import HarnessError
from harness.evaluation.outcome import more_bits
from harness.evaluation.released import (
    bits_limit,
    bits_told,
    released_score,
    tier_now,
)
from harness.files import sha256_file
from harness.gates.alarms import open_by_run
from harness.gates.findings import finding
from harness.ledger.facts import ApprovedPlan, RecordedVerdict
from harness.ledger.project import Project
from harness.ledger.travelling import facts_ahead
from harness.plans.approved import plan_of
from harness.rendering.standing import NextStep, next_step
from harness.runs.launchers.launcher import is_alive

if TYPE_CHECKING:
    from harness.gates import collect
    from harness.plans import parse
else:  # many imports, and often no verdict to ask about, and a plan that is approved
    collect = later("harness.gates.collect")
    parse = later("harness.plans.parse")

ELSEWHERE = "checked elsewhere"
FEW_BITS = 10.0
"""About what a look costs when bits are plenty."""
_NAMED = 5
"""Changed files that one message names."""


def snapshot(project: Project, *, sandbox: str, newest: int | None = 20) -> dict[str, Any]:
    """Project, plan, sandbox, paths and the `newest` experiments (None: all), newest last."""
    ledger = project.ledger
    plan = ledger.plan()
    return {
        "project": {"id": project.settings.project_id, "root": str(project.settings.root)},
        "plan": None if plan is None else _plan(project, plan),
        "sandbox": sandbox,
        "paths": {
            "project": str(project.settings.root),
            "state": str(project.settings.state),
            "ledger": str(project.layout.ledger),
            "experiments": str(project.layout.project("checklist").parent),
        },
        "counts": ledger.counts(),
        "facts_wait": ledger.facts_wait(),
        "facts_ahead": [
            {**ahead._asdict(), "came": ahead.came}
            for ahead in facts_ahead(ledger, project.layout)
        ],
        "active": active(project, newest=newest),
        "runs": [
            {
                "experiment": run.experiment,
                "run": run.id,
                "seed": run.seed,
                "status": run.status,
                "alive": is_alive(run),
            }
            for run in ledger.open_runs()
        ],
        "alarms": _standing_alarms(project),
        "next": _next(project),
        "experiments": experiment_rows(project, newest=newest),
    }


_CHECK = "harness plan check"


def _reads(project: Project, step: NextStep) -> bool:
    """Whether the plan that is to be checked says all that a plan says; its approval looks at the
    tables."""
    path = project.layout.root / (step.command.removeprefix(_CHECK).strip() or "plan.md")
    try:
        parse.read_plan(path)
    except HarnessError:
        return False
    return True


def _next(project: Project) -> dict[str, str]:
    step = next_step(project)
    if project.ledger.plan() is None and step.command.startswith(_CHECK) and _reads(project, step):
        command = step.command.replace(_CHECK, "harness plan approve", 1)
        step = NextStep("approve the plan", command, by_person=True)
    return {"words": step.words, "command": step.command, "text": step.text}


def _standing_alarms(project: Project) -> list[dict[str, Any]]:
    """Open alarms of the undecided experiment."""
    current = undecided_experiment(project)
    return [] if current is None else _alarms(project, current)


def active(project: Project, *, newest: int | None = 20) -> str | None:
    """The experiment in work, looked for among the `newest`; None when there is none."""
    ledger = project.ledger
    return active_experiment(
        [
            (experiment, ledger.runs(experiment.id))
            for experiment in project.here(ledger.experiments(newest=newest))
        ],
        is_alive,
    )


def _plan(project: Project, plan: ApprovedPlan) -> dict[str, Any]:
    """`changed`: the file differs from the approved one, or is gone."""
    path = project.layout.root / plan.path
    changed = not path.is_file() or sha256_file(path) != plan.sha256
    return {
        "name": plan.name,
        "version": plan.version,
        "path": plan.path,
        "changed": changed,
        "workflow": plan.content["workflow"],
        "gates": project.ledger.gate_mode(plan)[0],
        "bits_told": round(bits_told(project, plan), 1),
        "bits": bits_limit(plan),
        "more_bits": more_bits(plan.path, bits_limit(plan)) if _few_bits(project, plan) else None,
    }


def _few_bits(project: Project, plan: ApprovedPlan) -> bool:
    """Whether a look may be refused, or answered coarsely; some of it was told."""
    told = bits_told(project, plan)
    return told > 0 and bits_limit(plan) - told < FEW_BITS


def experiment_rows(project: Project, *, newest: int | None = None) -> list[dict[str, Any]]:
    with looking(project.layout.looked):
        return [
            experiment_row(project, experiment)
            for experiment in project.ledger.experiments(newest=newest)
        ]


def experiment_row(project: Project, experiment: Experiment) -> dict[str, Any]:
    """A row of `experiment list`, as docs/cli.md says; `score` is the recomputed mean or None.

    Score, tier, verdict and findings belong to one split: that of the newest verdict. Without a
    verdict it is held-out if it was evaluated, else validation.
    """
    verdicts = project.ledger.verdicts(experiment.id)
    verdict = verdicts[-1] if verdicts else None
    stale = () if verdict is None else _stale(project, experiment, verdict)
    outcome = None if verdict is None else verdict.verdict
    scores = {one.value: split_score(project, experiment, one) for one in Split}
    if checked_elsewhere(project, experiment):
        for one in scores.values():
            one["evidence"] = _elsewhere(one["evidence"])
    shown = Split.VALIDATION if verdict is None else Split(verdict.gate)
    if verdict is None and scores[Split.HELD_OUT.value]["split"] is not None:
        shown = Split.HELD_OUT
    return {
        "experiment": experiment.id,
        "status": experiment.status,
        "overridden": overridden_by(project, experiment.id),
        "hypothesis": experiment.hypothesis,
        "parent": experiment.parent,
        "tree": tree_of(project, experiment),
        "gone": folder_gone(project, experiment),
        **scores[shown.value],
        **scores,
        "tier": tier_now(project, verdict) if verdict else None,
        "verdict": Verdict.STALE if stale else outcome,
        "gate": verdict.gate if verdict else None,
        "findings": [*_findings(verdict, stale), *_alarms(project, experiment)],
    }


def overridden_by(project: Project, experiment: str) -> str | None:
    """The person who kept it although a gate did not pass; for ever, whatever came after."""
    made = [
        one.by for one in project.ledger.decisions(experiment) if one.kind is DecisionKind.OVERRIDE
    ]
    return made[-1] if made else None


def _elsewhere(evidence: str | None) -> str | None:
    return evidence and f"{evidence}, {ELSEWHERE}"


def tree_of(project: Project, experiment: Experiment) -> dict[str, Any] | None:
    """Where its files are: worktree, branch and commit as it was opened, whether that is `here`,
    and the `folder` where this machine has it. None when nobody noted it."""
    tree = experiment.tree
    if tree is None:
        return None
    place = place_of(project.layout, tree.id)
    return {
        "worktree": tree.worktree,
        "branch": tree.branch,
        "commit": tree.commit,
        "words": tree.words,
        "here": project.is_here(experiment),
        "folder": None if place is None else str(place),
    }


def folder_gone(project: Project, experiment: Experiment) -> str | None:
    """The folder that an experiment of this tree should have, where somebody removed it."""
    folder = project.layout.experiment(experiment.id)
    if folder.is_dir() or not project.is_here(experiment):
        return None
    return project.layout.relative(folder)


def _alarms(project: Project, experiment: Experiment) -> list[dict[str, Any]]:
    """The open alarms of an undecided experiment, one finding each."""
    if experiment.status in CLOSED_EXPERIMENTS:
        return []
    return [
        finding(
            "alarm_open",
            f"{experiment.id}/{run}: {alarm.severity} {alarm.code}: {alarm.message}",
            run=run,
        ).plain()
        for run, alarms in open_by_run(project, experiment.id).items()
        for alarm in alarms
    ]


def _stale(project: Project, experiment: Experiment, verdict: RecordedVerdict) -> tuple[str, ...]:
    """The evidence of the verdict that changed since; () for a decided experiment, and for one of
    another tree: what was read is there."""
    if experiment.status in CLOSED_EXPERIMENTS or not project.is_here(experiment):
        return ()
    with looking(project.layout.looked):
        return collect.changed(project, verdict)


def checked_elsewhere(project: Project, experiment: Experiment) -> bool:
    """Whether what its scores rest on is of another tree or, of a decided one, of another machine:
    facts say so, and nothing here can be computed again."""
    return not project.is_here(experiment) or (
        experiment.status in CLOSED_EXPERIMENTS and _lacks_checkpoints(project, experiment)
    )


def _lacks_checkpoints(project: Project, experiment: Experiment) -> bool:
    """Whether all final checkpoints that `harness gc` kept are missing: git does not carry them."""
    removed = {
        (fact.run, fact.checkpoint)
        for fact, _ in project.ledger.removed_checkpoints(experiment.id)
    }
    finals = [
        checkpoint
        for checkpoint in project.ledger.checkpoints(experiment.id)
        if checkpoint.final and (checkpoint.run, checkpoint.id) not in removed
    ]
    return bool(finals) and not any(
        (project.layout.root / checkpoint.path).exists() for checkpoint in finals
    )


def split_score(project: Project, experiment: Experiment, *splits: Split) -> dict[str, Any]:
    """The score of the counted runs on the first of `splits` that has one, and `launches`.

    Keys: metric, score, spread, n_seeds, split, interval, released, evidence; all None without a
    score. Of a sealed split `released` says what was told, and `score` is None or on its grid.
    `launches` counts every registered run.
    """
    launches = len(project.ledger.runs(experiment.id))
    for split in splits if experiment.plan else ():
        score = released_score(project, experiment.id, plan_of(project, experiment), split)
        if score is not None:
            return {
                "metric": score["metric"],
                "score": score["mean"],
                "spread": score["spread"],
                "n_seeds": score["n_seeds"],
                "launches": launches,
                "split": split,
                "interval": score["interval"],
                "released": score.get("released"),
                "evidence": score["evidence"],
            }
    unknown = dict.fromkeys(
        ("metric", "score", "spread", "n_seeds", "split", "interval", "released", "evidence")
    )
    return {**unknown, "launches": launches}


def _findings(verdict: RecordedVerdict | None, stale: Sequence[str]) -> list[dict[str, Any]]:
    """The verdict's findings; of a stale one only what changed: its evidence no longer exists."""
    if verdict is None:
        return []
    if not stale:
        return [finding.plain() for finding in verdict.findings]
    named = ", ".join(stale[:_NAMED]) + (
        f" and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
    )
    stale_finding = Finding(
        "verdict_stale",
        f"{verdict.id} ({verdict.verdict} on {spoken(verdict.gate)}) is STALE; changed since:"
        f" {named}.",
        f"Run `harness gate check {verdict.experiment}` to judge the current evidence.",
        {"verdict": verdict.id, "changed": list(stale)},
    )
    return [stale_finding.plain()]
