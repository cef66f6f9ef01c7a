"""What ledger and logs know about the numbers that a text claims."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts.git import in_repository, run_git
from harness.artifacts.locate import Layout
from harness.claims.judge import JudgedClaim, judged
from harness.claims.known_facts import (
    HOLDS,
    ClaimKind,
    KnownExperiment,
    KnownFacts,
    KnownScore,
    RunTally,
    known_files,
)
from harness.claims.sentences import Sentence, sentences
from harness.claims.statements import experiments_named
from harness.detectors.alarm import Alarm, Severity
from harness.detectors.kinds import KINDS
from harness.domain.findings import Finding
from harness.domain.records import Experiment, Run
from harness.domain.statuses import Direction, RunStatus, Split
from harness.errors import RefusedError
from harness.evaluation.released import released_score
from harness.evaluation.scores import counted_runs
from harness.gates.alarms import open_by_run
from harness.gates.findings import finding
from harness.gates.logged_values import logged_values
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import objective_of, plan_of

_FAILED = (RunStatus.FAILED, RunStatus.KILLED, RunStatus.LOST)
_LONGEST = 100_000
"""Characters of a result that a gate reads; a longer one fails, so that it hides no number."""


def known_facts(project: Project, named: Iterable[str] | None = None) -> KnownFacts:
    """The facts about the experiments in `named` and their parents; about all when it is None."""
    every = {experiment.id: experiment for experiment in project.ledger.experiments()}
    wanted = set(every) if named is None else set(named) & set(every)
    wanted |= {parent for name in wanted if (parent := every[name].parent) is not None}
    files = known_files(project.layout.root)
    facts = (_known(project, every[name]) for name in sorted(wanted))
    experiments = {experiment.id: experiment for experiment in facts if experiment is not None}
    return replace(files, experiments=experiments, opened=len(every))


def prose_findings(
    project: Project, experiment: str, body: str, claimed: Iterable[str]
) -> tuple[Finding, ...]:
    """What the body of result.md claims that does not hold; `claimed`: the claims of the front
    matter, which have findings of their own."""
    if len(body) > _LONGEST:
        text = (
            f"The text of result.md has {len(body):,} characters; expected at most {_LONGEST:,}."
        )
        return (
            finding(
                "prose_unsupported", text, "Shorten it; longer reports are files of their own."
            ),
        )
    claiming = sentences(body, experiment=experiment, report=True)
    known = known_facts(project, {experiment, *experiments_named(claiming)})
    front = set(claimed)
    return tuple(
        _finding(claim)
        for claim in judged(claiming, known, file="result.md")
        if claim.kind not in HOLDS and not _said_before(claim, experiment, front)
    )


def _said_before(claim: JudgedClaim, experiment: str, front: set[str]) -> bool:
    return (
        claim.experiment == experiment
        and claim.split in (None, Split.VALIDATION)
        and claim.value in front
    )


def _finding(claim: JudgedClaim) -> Finding:
    contradicted = claim.kind is ClaimKind.CONTRADICTED
    code = (
        ("prose_disagrees" if contradicted else "prose_unsupported")
        if claim.decides
        else "prose_unproven"
    )
    return finding(
        code,
        f'result.md says "{claim.text[:160]}": {claim.metric} {claim.value} is {claim.kind};'
        f" {claim.evidence}.",
        metric=claim.metric,
        claimed=claim.value,
        kind=claim.kind.value,
    )


def text_sentences(project: Project, path: Path, text: str) -> list[Sentence]:
    """The sentences of a file: one in an experiment's folder is a report about it."""
    # The decision log quotes its decisions: there quotations are read too.
    about = experiment_of_path(project.layout, path)
    log = path.resolve() == project.layout.decision_log.resolve()
    return sentences(text, experiment=about, report=about is not None or log, quotes=log)


def experiment_of_path(layout: Layout, path: Path) -> str | None:
    """The experiment in whose folder the file lies."""
    try:
        first = path.resolve().relative_to(layout.experiments.resolve()).parts[0]
    except (ValueError, IndexError):
        return None
    return first if first.startswith("exp-") else None


def commit_messages(project: Project, since: str | None = None) -> list[tuple[str, str]]:
    """(abbreviated commit, message) of HEAD's history, newest first; with `since` from that
    experiment's opening on. Empty outside a repository. Raises NotFoundError."""
    root = project.layout.root
    opened = [] if since is None else [f"--since={project.ledger.experiment(since).opened_at}"]
    if (
        not in_repository(root)
        or run_git(root, "rev-parse", "--verify", "-q", "HEAD", ok=(0, 1, 128))[0]
    ):
        return []
    _, output = run_git(root, "log", "-z", "--format=%h%n%B", *opened, "HEAD")
    records = output.decode("utf-8", errors="replace").split("\0")
    parts = (record.partition("\n") for record in records if record.strip())
    return [(commit.strip(), message) for commit, _, message in parts]


def _known(project: Project, experiment: Experiment) -> KnownExperiment | None:
    try:
        approved = plan_of(project, experiment)
    except RefusedError:  # opened without a plan: it has no metric
        return None
    objective = objective_of(approved)
    released = {
        split.value: score
        for split in (Split.VALIDATION, Split.HELD_OUT)
        if (score := released_score(project, experiment.id, approved, split)) is not None
    }
    runs = project.ledger.runs(experiment.id)
    done = [run.seconds for run in runs if run.status is RunStatus.COMPLETED and run.seconds]
    return KnownExperiment(
        id=experiment.id,
        parent=experiment.parent,
        metric=objective.metric,
        maximize=objective.direction is Direction.MAXIMIZE,
        tiers=tuple(objective.tiers.values()),
        scores=_scores(released, approved),
        scored_seeds={split: score["n_seeds"] for split, score in released.items()},
        answers={
            split: _answer(score["released"])
            for split, score in released.items()
            if "released" in score
        },
        named_tiers={tier.value: least for tier, least in objective.tiers.items()},
        tiers_told={
            split: score["released"]["tier"]
            for split, score in released.items()
            # An answer that names no tier on validation says only that it is no better.
            if "released" in score
            and (score["released"]["tier"] is not None or split == Split.HELD_OUT)
        },
        launches=len(runs),
        seconds=sum(done) / len(done) if done else None,
        logged=logged_values(
            [project.layout.run(run.experiment, run.id, "metrics") for run in counted_runs(runs)]
        ),
        tally=_tally(project, experiment.id, runs),
    )


def _tally(project: Project, experiment: str, runs: Sequence[Run]) -> RunTally:
    alarms = [
        (raised.run, Alarm.from_plain(raised.alarm))
        for raised in project.ledger.alarms(experiment)
    ]
    raised = [(run, one) for run, one in alarms if one.severity is not Severity.NOTE]
    raised = [(run, one) for run, one in raised if not one.recovered]
    ended = Counter(run.status for run in runs)
    return RunTally(
        completed=ended[RunStatus.COMPLETED],
        failed=sum(ended[status] for status in _FAILED),
        failed_by_kind=tuple(ended[status] for status in _FAILED if ended[status]),
        seeds=len({run.seed for run in runs if run.status is RunStatus.COMPLETED}),
        seeds_launched=len({run.seed for run in runs}),
        alarms=tuple(one.code for _, one in raised),
        open_alarms=sum(len(alarms) for alarms in open_by_run(project, experiment).values()),
        fatal_alarms=sum(one.severity is Severity.FATAL for _, one in raised),
        alarmed_runs=len({run for run, _ in raised}),
        known_alarms=frozenset(KINDS),
    )


def _scores(
    released: Mapping[str, dict[str, Any]], approved: ApprovedPlan
) -> dict[str, KnownScore]:
    # Of a sealed split only the number that was told supports a claim, and none about each seed.
    return {
        split: KnownScore(
            mean=score["mean"],
            spread=score["spread"],
            values=tuple(score["values"]),
            rows=approved.splits[split]["rows"],
            interval=score["interval"],
            baseline=score["baseline"],
        )
        for split, score in released.items()
        if score["mean"] is not None
    }


def _answer(told: Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers of an answer on secret labels."""
    return tuple(value for value in (told["best"], told["step"]) if value is not None)
