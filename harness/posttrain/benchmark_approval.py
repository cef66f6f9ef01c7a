"""What models are judged by is a person's decision: benchmark, evaluator, thresholds, seeds.

An approval freezes them like a plan: the rows and the code that scores are kept in the vault, and
what is judged reads them there. An evaluator of the package is part of the judge's own record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.artifacts.code_snapshot import take_snapshot
from harness.artifacts.objects import store_bytes
from harness.domain.records import LEAST_SEEDS
from harness.errors import RefusedError
from harness.files import canonical_json, sha256_bytes
from harness.guard.accepted import accept_on_record, read_accepted
from harness.ledger.facts import BenchmarkApproved
from harness.ledger.project import Project, approve_config
from harness.plans.judge import record_judge
from harness.posttrain.field_problems import (
    FieldProblem,
    FieldProblems,
    SpecificationError,
    field_problem,
)
from harness.posttrain.specification import Specification
from harness.posttrain.specification_checks import evaluator_of, number_of
from harness.posttrain.tables import benchmark_of
from harness.posttrain.vocabulary import SEEDS, THRESHOLDS, Bound
from harness.runs.workspace import readable_below
from harness.settings import CONFIG

DELTA = Bound(default=THRESHOLDS.delta, low=0, high=1_000, open_low=True)
QUALITY = Bound(default=THRESHOLDS.quality, low=0, high=1)
ROWS = Bound(default=THRESHOLDS.rows, low=THRESHOLDS.rows, high=1e9, whole=True)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What a person asks of a model on a benchmark."""

    benchmark: str
    """A path, absolute or relative to the project."""
    evaluator: str | Sequence[str] = "preference"
    seeds: Sequence[Any] = (1, 2, 3)
    delta: Any = DELTA.default
    quality: Any = QUALITY.default
    rows: Any = ROWS.default


def approve_benchmark(project: Project, bar: Bar, *, by: str) -> BenchmarkApproved:
    """Freeze benchmark, evaluator, thresholds and seeds, and record the judge. The same again gives
    the standing approval. Raises SpecificationError with all problems, RefusedError without `by`.
    """
    if not by.strip():
        raise RefusedError(
            "An approval needs the name of the person who gives it.", hint="Pass it as `by`."
        )
    problems, layout = FieldProblems(), project.layout
    evaluator = evaluator_of(problems, layout.root, bar.evaluator)
    table = benchmark_of(problems, project, bar.benchmark, evaluator)
    seeds = [number_of(problems, "seeds", SEEDS, seed) for seed in bar.seeds]
    if len(set(seeds)) != len(seeds) or len(seeds) < LEAST_SEEDS:
        expected = f"{LEAST_SEEDS} or more different ones"
        problems.add("seeds", expected, seeds, "fewer tell no noise")
    bounds = {"delta": DELTA, "quality": QUALITY, "rows": ROWS}
    thresholds = {
        name: number_of(problems, name, bound, getattr(bar, name))
        for name, bound in bounds.items()
    }
    if len(table.rows) < thresholds["rows"] and not problems:
        problems.add("rows", f"at most {len(table.rows)}", bar.rows, "the benchmark has no more")
    if problems:
        raise SpecificationError(problems, what="approval")
    store_bytes(table.data, layout.objects)
    frozen: dict[str, Any] = {
        "benchmark": table.plain(),
        "evaluator": evaluator,
        "snapshot": None if isinstance(evaluator, str) else _snapshot(project, table.path),
        "thresholds": thresholds,
        "seeds": seeds,
    }
    approve_config(layout)
    if read_accepted(layout) is not None:
        accept_on_record(project, by=by, paths=[CONFIG])
    record_judge(project, by=by)
    made = BenchmarkApproved(**frozen, sha256=sha256_bytes(canonical_json(frozen)), by=by)
    standing = approved_for(project, {**made.benchmark, "evaluator": evaluator})
    if standing is not None and standing.sha256 == made.sha256:
        return standing
    project.ledger.append(made)
    return made


def approved_for(project: Project, benchmark: Mapping[str, Any]) -> BenchmarkApproved | None:
    """The newest approval of a specification's benchmark, by its content, and of its evaluator."""
    wanted = benchmark["sha256"], benchmark["evaluator"]
    found = [
        one
        for one in project.ledger.approved_benchmarks()
        if (one.benchmark["sha256"], one.evaluator) == wanted
    ]
    return found[-1] if found else None


def require_approved(project: Project, spec: Specification) -> BenchmarkApproved:
    """The approval that the specification is judged by. Raises RefusedError
    (benchmark_not_approved, evaluator_not_approved)."""
    approved = approved_for(project, spec.benchmark)
    if approved is not None:
        return approved
    sha256, path = spec.benchmark["sha256"], spec.benchmark["path"]
    evaluators = [
        one.evaluator
        for one in project.ledger.approved_benchmarks()
        if one.benchmark["sha256"] == sha256
    ]
    what = f"The benchmark {path} ({sha256[:12]}) is approved by nobody."
    if evaluators:
        known = ", ".join(sorted({shown(one) for one in evaluators}))
        asked = shown(spec.benchmark["evaluator"])
        what = f"For the benchmark {path} a person approved {known}; {asked} is no such evaluator."
    raise RefusedError(
        what,
        hint=(
            f"A person reads both, then runs `harness posttrain approve --benchmark {path}"
            " --evaluator ...`; or specify what is approved."
        ),
        code="evaluator_not_approved" if evaluators else "benchmark_not_approved",
    )


def approval_warnings(project: Project, spec: Specification) -> list[FieldProblem]:
    """What keeps the specification's models from a PASS, as far as approvals go."""
    approved = approved_for(project, spec.benchmark)
    if approved is None:
        reason = "nothing is judged by them; a person runs `harness posttrain approve`"
        return [field_problem("benchmark", "what a person approved", "not approved", reason)]
    if spec.seed not in approved.seeds:
        asked = ", ".join(map(str, approved.seeds))
        return [field_problem("seed", asked, spec.seed, "no seed of the approval: no PASS")]
    return []


def shown(evaluator: str | Mapping[str, Any]) -> str:
    if isinstance(evaluator, str):
        return evaluator
    return f"`{' '.join(evaluator['command'])}` ({str(evaluator.get('code_hash'))[:12]})"


def _snapshot(project: Project, benchmark: str) -> str:
    """The code that the evaluator runs in, with all that it reads of the project."""
    layout = project.layout
    no_code = readable_below(
        layout.root, [*project.settings.readable, layout.root / benchmark, layout.state]
    )
    return take_snapshot(
        layout.root,
        layout.objects,
        exclude=map(layout.relative, no_code),
        index=layout.code_index,
    ).hash
