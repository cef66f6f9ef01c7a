"""What an evaluation's scores come to, by the model itself and with the other seeds of its recipe;
and its record."""

from collections.abc import (
    Collection,
    Mapping,
    Sequence,
)
from dataclasses import (
    asdict,
    dataclass,
    replace,
)
from typing import Any

import numpy as np
import orjson

from harness.artifacts.objects import (
    ObjectDamagedError,
    load_object,
)
from harness.domain.grade import (
    Caller,
    grade_of,
)
from harness.domain.models import ModelState
from harness.domain.statuses import (
    SandboxKind,
    Verdict,
)
from harness.evaluation.intervals import mean_interval
from harness.ledger.facts import (
    BenchmarkApproved,
    Model,
    ModelEvaluation,
)
from harness.ledger.project import Project
from harness.posttrain.evaluator_process import Scores, withheld
from harness.posttrain.field_problems import FieldProblem, FieldProblems
from harness.posttrain.joint_verdict import (
    Family,
    Joint,
    RowScores,
    compare_seeds,
    hindrance_of,
    recipe_of,
    verdict_of,
)
from harness.posttrain.promotion import revocation
from harness.posttrain.specification import Specification

_WITHHELD = (
    ". Details are withheld, because they could carry rows: a person reads them from"
    " `harness posttrain evaluate`."
)
_FALLEN = frozenset({ModelState.REJECTED, ModelState.REVOKED})


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at the benchmark: by what, how, and from where."""

    approved: BenchmarkApproved
    spec: Specification
    mode: str
    against: str
    sandbox: SandboxKind
    caller: Caller


def record(
    project: Project,
    look: Look,
    model: Model,
    *,
    scores: Mapping[str, Scores],
    problems: FieldProblems,
    evidence: dict[str, str],
) -> ModelEvaluation:
    """Record the evaluation of `model`, and anew those of its recipe's other models whose verdict
    changes with it. A FAIL revokes the model in the same step."""
    program = project.ledger.program(model.experiment)
    told = None if program is None else program.contamination
    with project.ledger.transaction() as writer:
        # Read again: scoring took minutes, and a person may have rejected the model meanwhile.
        model = project.ledger.model(model.id)
        paired, family, joint = None, None, None
        verdict = Verdict.INCONCLUSIVE
        reason = failed([withheld(each) for each in problems]) + _WITHHELD
        if len(scores) == 2 and not problems:
            rows = clean(scores, _left_out(told))
            paired = compare(rows, scores["candidate"].margins)
            family = _family(project, look, model, rows)
            hindrance = hindrance_of(family, model.id, look.spec.seed, told)
            if hindrance is None:
                joint = _joint(look, family)
            verdict, reason = _judged(look, paired.delta, paired.n, joint, family, hindrance)
            reason = f"{paired.words}: {reason}"
        recorded = _append(
            project,
            look,
            model,
            (verdict, reason),
            numbers=_numbers(paired),
            evidence=evidence,
            joint=None if family is None else _plain(family, joint),
            problems=FieldProblems(map(withheld, problems)),
        )
        if verdict is Verdict.FAIL and model.state not in _FALLEN:
            for fact in revocation(
                project, model, ModelState.REVOKED, f"{recorded.id} failed: {reason}", by="harness"
            ):
                writer.append(fact)
        if family is not None and joint is not None:
            _record_others(project, look, model, family, joint)
    return recorded


def failed(problems: Sequence[FieldProblem]) -> str:
    return "the evaluator failed: " + "; ".join(map(str, problems))


def in_its_words(recorded: ModelEvaluation, problems: Sequence[FieldProblem]) -> ModelEvaluation:
    """For a person: what the evaluator itself said. The ledger does not have it."""
    kept = failed([withheld(each) for each in problems]) + _WITHHELD
    return replace(
        recorded,
        reason=recorded.reason.replace(kept, failed(problems)),
        problems=tuple(problem.plain() for problem in problems),
    )


def _left_out(told: Mapping[str, Any] | None) -> Collection[str]:
    """Ids of rows that the training rows hold; where they are too many nothing counts anyway."""
    return () if told is None or told["blocks"] else told["found"]


def clean(scores: Mapping[str, Scores], left_out: Collection[str]) -> RowScores:
    """Without the rows that the training rows hold."""
    kept = {
        who: {name: value for name, value in scored.values.items() if name not in left_out}
        for who, scored in scores.items()
    }
    return RowScores(baseline=kept["baseline"], candidate=kept["candidate"])


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Candidate against baseline on the same rows: means over the rows, in the evaluator's unit."""

    baseline: float
    candidate: float
    delta: float
    interval: tuple[float, float]
    """95% interval of delta."""
    margin: float | None
    """The candidate's mean margin; None where the evaluator gives none."""
    n: int

    @property
    def words(self) -> str:
        low, high = self.interval
        return f"delta {self.delta:+.3f}, interval [{low:+.3f}, {high:+.3f}]"


def compare(rows: RowScores, margins: Mapping[str, float]) -> PairedComparison:
    """Compare the rows in pairs."""
    ids = sorted(rows.candidate)
    pairs = np.array([[one[name] for name in ids] for one in (rows.baseline, rows.candidate)])
    # Of differences, not of scores: what makes a row hard for both models is then no part of the
    # interval.
    differences = pairs[1] - pairs[0]
    delta = float(differences.mean())
    own = [margins[name] for name in ids if name in margins]
    return PairedComparison(
        baseline=float(pairs[0].mean()),
        candidate=float(pairs[1].mean()),
        delta=delta,
        interval=mean_interval(differences) or (delta, delta),
        margin=float(np.mean(own)) if own else None,
        n=len(ids),
    )


def _family(project: Project, look: Look, model: Model, rows: RowScores) -> Family:
    """The models of the recipe, with the scores that stand beside those of `model`."""
    ledger = project.ledger
    recipes = {one.experiment: recipe_of(one.spec) for one in ledger.programs()}
    seeds = {one.experiment: int(one.spec["seed"]) for one in ledger.programs()}
    recipe = recipes[model.experiment]
    models: dict[int, str] = {}
    first: dict[str, str] = {}
    scored: dict[int, RowScores] = {}
    for one in ledger.models():  # oldest first
        evaluations = ledger.model_history(one.id).evaluations
        for evaluation in evaluations:
            same = evaluation.benchmark["sha256"] == look.approved.benchmark["sha256"]
            if same and evaluation.candidate is not None:
                known = first.get(recipes[one.experiment], evaluation.id)
                first[recipes[one.experiment]] = min(known, evaluation.id, key=_order)
        seed = seeds[one.experiment]
        if recipes[one.experiment] != recipe or models.setdefault(seed, one.id) != one.id:
            continue
        latest = [evaluation for evaluation in evaluations if _is_beside(look, evaluation)]
        kept = rows if one.id == model.id else _kept(project, latest[-1:], rows)
        if kept is not None:
            scored[seed] = kept
    mine = _order(first[recipe]) if recipe in first else None
    before = [name for name, each in first.items() if mine is None or _order(each) < mine]
    return Family(
        seeds=list(look.approved.seeds),
        models=models,
        scored=scored,
        tries=len([name for name in before if name != recipe]) + 1,
    )


def _order(identifier: str) -> int:
    return int(identifier.rpartition("-")[2])


def _is_beside(look: Look, evaluation: ModelEvaluation) -> bool:
    """Whether it was made as the present one is: by one approval, in one mode, with one
    baseline."""
    subject = look.approved.benchmark["sha256"], look.mode, look.against
    return (
        evaluation.subject == subject
        and evaluation.evidence.get("approval") == look.approved.sha256
        and evaluation.candidate is not None
    )


def _kept(project: Project, latest: list[ModelEvaluation], like: RowScores) -> RowScores | None:
    """Row scores of an earlier evaluation, of the rows that count now; None where they are not
    known."""
    if not latest:
        return None
    evidence, objects = latest[0].evidence, project.layout.objects
    try:
        baseline, candidate = (
            orjson.loads(load_object(objects, evidence[f"{who}_scores"]))
            for who in ("baseline", "candidate")
        )
    except (ObjectDamagedError, KeyError):  # of another clone
        return None
    if not set(like.candidate) <= set(candidate):
        return None
    return RowScores(
        baseline={name: baseline[name] for name in like.candidate},
        candidate={name: candidate[name] for name in like.candidate},
    )


def _joint(look: Look, family: Family) -> Joint:
    return compare_seeds(
        [family.scored[seed] for seed in family.seeds], tries=family.tries, seed=family.seeds[0]
    )


def _judged(
    look: Look, own: float, n: int, joint: Joint | None, family: Family, hindrance: str | None
) -> tuple[Verdict, str]:
    return verdict_of(own, n, look.approved.thresholds, joint, family.tries, hindrance=hindrance)


def _record_others(
    project: Project, look: Look, model: Model, family: Family, joint: Joint
) -> None:
    """The verdicts of the recipe's other models, where they are others now."""
    for seed in family.seeds:
        other = project.ledger.model(family.models[seed])
        if other.id == model.id:
            continue
        evaluations = project.ledger.model_history(other.id).evaluations
        before = [one for one in evaluations if _is_beside(look, one)][-1]
        verdict, reason = _judged(look, before.delta or 0.0, before.n, joint, family, None)
        if verdict.value == before.verdict:
            continue
        names = ("baseline", "candidate", "delta", "interval", "margin", "n")
        _append(
            project,
            look,
            other,
            (verdict, f"delta {before.delta or 0.0:+.3f}: {reason}"),
            numbers={name: getattr(before, name) for name in names},
            evidence=dict(before.evidence),
            joint=_plain(family, joint),
            problems=FieldProblems(),
            before=before,
        )


def _plain(family: Family, joint: Joint | None) -> dict[str, Any]:
    numbers = dict.fromkeys(("delta", "interval", "p", "p_corrected"))
    told = numbers if joint is None else asdict(joint) | {"interval": list(joint.interval)}
    models = {str(seed): name for seed, name in sorted(family.models.items())}
    outstanding = family.outstanding
    return {**told, "models": models, "outstanding": outstanding, "tries": family.tries}


def _numbers(paired: PairedComparison | None) -> dict[str, Any]:
    if paired is None:
        names = ("baseline", "candidate", "delta", "interval", "margin")
        return {**dict.fromkeys(names), "n": 0}
    return asdict(paired) | {"interval": list(paired.interval)}


def _append(
    project: Project,
    look: Look,
    model: Model,
    judged: tuple[Verdict, str],
    *,
    numbers: Mapping[str, Any],
    evidence: dict[str, str],
    joint: dict[str, Any] | None,
    problems: FieldProblems,
    before: ModelEvaluation | None = None,
) -> ModelEvaluation:
    """`before`: the evaluation whose scores these are, when no evaluator was started."""
    verdict, reason = judged
    run = project.ledger.run(model.experiment, model.run)
    caller, sandbox = str(look.caller), look.sandbox.value
    if before is not None:
        caller, sandbox = str(before.caller), str(before.sandbox)
    grade = grade_of(
        [Caller.read(run.caller), Caller.read(caller)], [run.sandbox], [SandboxKind(sandbox)]
    )
    if grade.not_isolated:
        reason = f"{grade.lacks}; {reason}"
    return project.ledger.record_model_evaluation(
        model=model.id,
        against=look.against,
        benchmark={**look.approved.benchmark, "evaluator": look.approved.evaluator},
        mode=look.mode,
        verdict=verdict.value,
        reason=reason[:2000],
        seed=int(look.spec.seed) if before is None else before.seed,
        evidence=evidence,
        sandbox=sandbox,
        caller=caller,
        problems=[problem.plain() for problem in problems],
        joint=joint,
        **numbers,
    )
