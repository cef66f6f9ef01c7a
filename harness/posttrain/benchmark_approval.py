"""What models are judged by is a person's decision: benchmark, evaluator, thresholds, seeds.

An approval freezes them like a plan: the rows and the code that scores are kept in the vault, and
what is judged reads them there. An evaluator of the package is part of the judge's own record.
"""

from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any

from harness.artifacts.code_snapshot import (
    load_snapshot,
    take_snapshot,
)
from harness.artifacts.objects import (
    ObjectDamagedError,
    store_bytes,
)
from harness.domain.records import LEAST_SEEDS
from harness.errors import RefusedError
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.guard.accepted import (
    accept_on_record,
    read_accepted,
)
from harness.ledger.facts import BenchmarkApproved
from harness.ledger.project import (
    Project,
    approve_config,
)
from harness.plans.changes import (
    Changes,
    FileChange,
    differences,
    field_changes,
    file_changes,
    with_config,
)
from harness.plans.judge import record_judge
from harness.posttrain.bounds import number_of
from harness.posttrain.code_hashes import command_files
from harness.posttrain.field_problems import (
    FieldProblem,
    FieldProblems,
    SpecificationError,
    field_problem,
)
from harness.posttrain.specification import Specification
from harness.posttrain.specification_checks import evaluator_of
from harness.posttrain.tables import benchmark_of
from harness.posttrain.vocabulary import (
    SEEDS,
    THRESHOLDS,
    Bound,
)
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


def approve_benchmark(
    project: Project,
    bar: Bar,
    *,
    by: str,
    on_changes: Callable[[Changes], None] = lambda changes: None,
) -> BenchmarkApproved:
    """Freeze benchmark, evaluator, thresholds and seeds, and record the judge. The same again gives
    the standing approval. `on_changes` gets what differs from the benchmark's last approval before
    anything is recorded, and may raise. Raises SpecificationError with all problems, RefusedError
    without `by`."""
    if not by.strip():
        raise RefusedError(
            "An approval needs the name of the person who gives it.", hint="Pass it as `by`."
        )
    problems, layout = FieldProblems(), project.layout
    evaluator = evaluator_of(problems, project.settings, bar.evaluator)
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
    config = layout.project("config_toml").read_bytes()
    what = f"another configuration beside {table.path}"
    changes = with_config(project, config, _changes(project, frozen), what)
    if changes is not None:
        on_changes(changes)
    approve_config(layout, config)
    if read_accepted(layout) is not None:
        accept_on_record(project, by=by, paths=[CONFIG])
    record_judge(project, by=by)
    made = BenchmarkApproved(**frozen, sha256=sha256_bytes(canonical_json(frozen)), by=by)
    standing = approved_for(project, {**made.benchmark, "evaluator": evaluator})
    if standing is not None and standing.sha256 == made.sha256:
        return standing
    project.ledger.append(made)
    return made


def _changes(project: Project, frozen: Mapping[str, Any]) -> Changes | None:
    """Against the last approval of the same rows, or of the same path."""
    benchmark = frozen["benchmark"]
    earlier = [
        one
        for one in project.ledger.approved_benchmarks()
        if any(one.benchmark[name] == benchmark[name] for name in ("path", "sha256"))
    ]
    if not earlier:
        return None
    before = earlier[-1]
    names = ("benchmark", "evaluator", "thresholds", "seeds")
    fields = list(
        field_changes(
            {name: getattr(before, name) for name in names}, {name: frozen[name] for name in names}
        )
    )
    files = _code_changes(project, before, frozen)
    if not fields and not files:
        return None
    objects = project.layout.objects
    return Changes(
        what=f"another way to judge models on {benchmark['path']} than {before.by} approved",
        fields=tuple(fields),
        files=tuple(files),
        diff=tuple(differences(objects, [one for one in files if one.path.endswith(".py")])),
        follows=(
            "A benchmark and an evaluator are judged by their newest approval: evaluations that"
            " were made by another stand, and promotions ask for new ones.",
            *_others(project, frozen),
        ),
    )


def _others(project: Project, frozen: Mapping[str, Any]) -> Iterator[str]:
    """Which other evaluators still judge these rows."""
    standing = {
        str(one.evaluator if isinstance(one.evaluator, str) else one.evaluator["command"]): one
        for one in _of_rows(project, frozen["benchmark"])
        if not _same(one.evaluator, frozen["evaluator"])
    }
    if standing:
        names = ", ".join(shown(one.evaluator) for one in standing.values())
        yield f"Beside it these rows are still judged by {names}."


def _code_changes(
    project: Project, before: BenchmarkApproved, frozen: Mapping[str, Any]
) -> list[FileChange]:
    """Of the code that an evaluator runs in; what its command names comes first."""
    layout, evaluator = project.layout, frozen["evaluator"]
    if frozen["snapshot"] is None or before.snapshot is None:
        return []
    try:
        old = load_snapshot(layout.objects, before.snapshot).files
    except ObjectDamagedError:
        return [FileChange(path="code", before=before.snapshot, after=frozen["snapshot"])]
    new = load_snapshot(layout.objects, frozen["snapshot"]).files
    own = command_files(evaluator["command"], project.settings)
    return sorted(file_changes(old, new), key=lambda one: (one.path not in own, one.path))


def approved_for(project: Project, benchmark: Mapping[str, Any]) -> BenchmarkApproved | None:
    """The newest approval of a specification's benchmark, by its content, and of its evaluator. Of
    a program the newest code holds, whichever that was ever approved the specification names: a
    flawed one that was mended judges nothing any more."""
    found = [
        one for one in _of_rows(project, benchmark) if _same(one.evaluator, benchmark["evaluator"])
    ]
    known = any(one.evaluator == benchmark["evaluator"] for one in found)
    return found[-1] if known else None


def _of_rows(project: Project, benchmark: Mapping[str, Any]) -> list[BenchmarkApproved]:
    """All approvals of these rows, oldest first."""
    return [
        one
        for one in project.ledger.approved_benchmarks()
        if one.benchmark["sha256"] == benchmark["sha256"]
    ]


def _same(one: Any, other: Any) -> bool:
    """Whether they are one evaluator, whatever the code of a program was when it was hashed."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return list(one["command"]) == list(other["command"])


def require_approved(project: Project, spec: Specification) -> BenchmarkApproved:
    """The approval that the specification is judged by. Raises RefusedError
    (benchmark_not_approved, evaluator_not_approved)."""
    approved = approved_for(project, spec.benchmark)
    if approved is not None:
        return approved
    sha256, path = spec.benchmark["sha256"], spec.benchmark["path"]
    evaluators = [one.evaluator for one in _of_rows(project, spec.benchmark)]
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
