"""The score of an experiment: which runs and evaluations count, their mean and spread."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from harness.domain.findings import Finding
from harness.domain.grade import Grade
from harness.domain.records import Run
from harness.domain.statuses import RunStatus, Split
from harness.evaluation.sealed import unsealed
from harness.ledger.facts import ApprovedPlan, Evaluation
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project

_NO_ANSWER = frozenset({RunStatus.LOST, RunStatus.CANCELLED})


@dataclass(frozen=True, kw_only=True)
class Score:
    metric: str
    split: Split
    mean: float
    spread: float | None
    """Sample standard deviation over seeds; None with one seed."""
    n_seeds: int
    values: tuple[float, ...]
    """One a seed, in the order of seeds."""
    interval: tuple[float, float] | None
    """Mean of the seeds' intervals: the uncertainty of the rows, which all seeds share."""
    baseline: float | None
    """The trivial predictor's score on the same rows."""
    grade: Grade
    """The weakest of all the evaluations."""

    def plain(self) -> dict[str, Any]:
        """Codes and numbers: the grade is `not_isolated`, the names of its links."""
        plain = asdict(self) | {"not_isolated": self.grade.codes}
        del plain["grade"]
        return plain | {
            "values": list(self.values),
            "interval": list(self.interval) if self.interval else None,
        }

    def shown(self) -> dict[str, Any]:
        """`plain` with the grade in words, for a reader."""
        return {**self.plain(), "evidence": self.grade.words}


def summarise(evaluations: Sequence[Evaluation]) -> Score | None:
    """The score of one experiment's evaluations on one split; of several of one seed the last
    counts. None without a value. Raises ValueError for several experiments, splits, metrics or plan
    versions."""
    kinds = {
        (evaluation.experiment, evaluation.split, evaluation.metric, evaluation.plan_version)
        for evaluation in evaluations
    }
    if len(kinds) > 1:
        raise ValueError(
            "expected evaluations of one experiment, split, metric and plan version, got"
            f" {sorted(kinds)}"
        )
    newest = {evaluation.seed: evaluation for evaluation in evaluations}
    usable = [newest[seed] for seed in sorted(newest) if newest[seed].value is not None]
    if not usable:
        return None
    values = tuple(
        float(evaluation.value) for evaluation in usable if evaluation.value is not None
    )
    return Score(
        metric=usable[0].metric,
        split=usable[0].split,
        mean=fmean(values),
        spread=stdev(values) if len(values) > 1 else None,
        n_seeds=len(values),
        values=values,
        interval=_joined([evaluation.interval for evaluation in usable]),
        baseline=usable[-1].baseline,
        grade=Grade.lowered(link for one in usable for link in one.grade.not_isolated),
    )


def row_noise(*scores: Score) -> float:
    """Half width of the 95% interval over rows of a difference of these scores; 0 when one has no
    interval."""
    # As if the rows were independent. The same rows are in both, so the true width is smaller: this
    # stands in only where no paired test is possible.
    widths = [
        (score.interval[1] - score.interval[0]) / 2
        for score in scores
        if score.interval is not None
    ]
    return math.hypot(*widths) if len(widths) == len(scores) else 0.0


def seed_findings(
    evaluations: Sequence[Evaluation], *, deterministic: bool = False
) -> list[Finding]:
    """For each checkpoint that two different seeds share `seed_ignored`, or the note
    `seeds_are_one` where the plan says that training draws nothing at random. For seeds with other
    weights that answer all rows alike the note `seeds_answer_alike`, unless the plan says so, or
    one of them answers otherwise."""
    seeds: defaultdict[str, set[int]] = defaultdict(set)
    answers: defaultdict[str, dict[str, Evaluation]] = defaultdict(dict)
    for evaluation in evaluations:
        seeds[evaluation.checkpoint].add(evaluation.seed)
        if evaluation.scored and evaluation.predictions is not None and not deterministic:
            answers[evaluation.predictions].setdefault(evaluation.checkpoint, evaluation)
    shared = [
        _alike(checkpoint, sorted(several), deterministic)
        for checkpoint, several in sorted(seeds.items())
        if len(several) > 1
    ]
    # Two good ones agree by luck, on an easy task often: not all of them.
    found = [_answered(list(same.values())) for same in answers.values() if len(answers) == 1]
    return shared + [note for note in found if note is not None]


def _answered(same: Sequence[Evaluation]) -> Finding | None:
    """Of evaluations with other weights and equal answers; None where the weights themselves, or
    numbers that they answer with, were found alike."""
    named: set[int] = set()
    for one in same:
        for found in one.findings:
            named.update(found.data.get("alike", ()))
    seeds = sorted({one.seed for one in same})
    if named >= set(seeds) or len(seeds) < 2:
        return None
    return Finding(
        "seeds_answer_alike",
        f"Seeds {', '.join(map(str, seeds))} answer all {same[0].n} rows alike, with other weights:"
        " one model in several files does that too, and their spread says nothing.",
        "Look at what differs in their weights. On an easy task, or where training comes to the"
        " same model from any seed, nothing is wrong: a person may set training.deterministic:"
        " true in the plan.",
        {"seeds": seeds},
    )


def _alike(checkpoint: str, seeds: list[int], deterministic: bool) -> Finding:
    alike = f"Seeds {', '.join(map(str, seeds))} gave the same checkpoint {checkpoint[:12]}"
    data = {"checkpoint": checkpoint, "seeds": seeds}
    if deterministic:
        return Finding(
            "seeds_are_one",
            f"{alike}, as the plan says: they count as one, and only the rows tell how sure the"
            " score is.",
            "Nothing to do.",
            data,
        )
    return Finding(
        "seed_ignored",
        f"{alike}: their runs count as one, and the spread over seeds means nothing.",
        "Seed every random generator of the training with HARNESS_SEED, then train again. Where"
        " training draws nothing at random (nearest neighbours, a closed form), a person sets"
        " training.deterministic: true in the plan and approves it again.",
        data,
    )


def _joined(intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [interval for interval in intervals if interval is not None]
    if not known or len(known) < len(intervals):
        return None
    return fmean(low for low, _ in known), fmean(high for _, high in known)


def started(runs: Sequence[Run]) -> list[Run]:
    """Without those whose command never started, a typo for instance: they try nothing, so they
    neither stand for a seed nor are they the newest command. All, when none did."""
    return [run for run in runs if not run.never_started] or list(runs)


def counted_runs(runs: Sequence[Run]) -> list[Run]:
    """One run a seed, in the order in which seeds were first registered: the seed's newest run that
    was neither lost nor cancelled, else its newest. `runs` is oldest first.

    An experiment is one code snapshot and one command: only runs of the newest run's pair count.
    """
    chosen: dict[int, Run] = {}
    tried = started(runs)
    for run in tried:
        if (run.code, run.argv) != (tried[-1].code, tried[-1].argv):
            continue
        # A lost or cancelled run says nothing about the training, so it replaces no other. A failed
        # one does: an older, luckier run of its seed must not stand in for it.
        before = chosen.get(run.seed)
        if before is None or run.status not in _NO_ANSWER or before.status in _NO_ANSWER:
            chosen[run.seed] = run
    return list(chosen.values())


def recorded_evaluations(
    project: Project,
    experiment: str,
    approved: ApprovedPlan,
    split: Split,
    runs: Sequence[Run] | None = None,
) -> list[Evaluation]:
    """One evaluation a counted run: the newest of its final checkpoint in this comparison. As
    the ledger holds them: of a split whose labels are nobody's without values."""
    ledger = project.ledger
    counted = counted_runs(ledger.runs(experiment)) if runs is None else runs
    finals = {point.run: point.id for point in ledger.checkpoints(experiment) if point.final}
    newest = {
        made.run: made
        for made in ledger.evaluations(experiment, split)
        if made.plan_version == approved.comparison and finals.get(made.run) == made.checkpoint
    }
    return [newest[run.id] for run in counted if run.id in newest]


def counted_evaluations(
    project: Project,
    experiment: str,
    approved: ApprovedPlan,
    split: Split,
    runs: Sequence[Run] | None = None,
) -> list[Evaluation]:
    """`recorded_evaluations` with their exact values, for the judge alone: what agents may see of a
    sealed split is what `evaluation.release` tells."""
    recorded = recorded_evaluations(project, experiment, approved, split, runs)
    return [unsealed(project.layout, evaluation) for evaluation in recorded]


def trained_seconds(ledger: Ledger, run: Run) -> float:
    """Of the run, or of the runs that trained the weights that it took."""
    trained = [ledger.run(*name.split("/")) for name in run.taken_from] or [run]
    return sum(one.seconds or 0.0 for one in trained)
