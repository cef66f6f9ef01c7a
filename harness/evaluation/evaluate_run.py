"""One checkpoint, one split, one value, or the findings that say why there is none.

predict runs twice or more (all rows, a tenth of them again; with other weights where no other seed
tells what they answer), the scorer once, in another process.
Labels are read here and in the scorer's process only. Nothing is recorded here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.artifacts.code_snapshot import Snapshot
from harness.artifacts.objects import store_bytes
from harness.clock import Clock, iso
from harness.domain.findings import Finding
from harness.domain.metrics import METRICS, IntervalMethod
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind, Split
from harness.evaluation import intervals, problems
from harness.evaluation.checkpoint_copy import copy_checkpoint
from harness.evaluation.paired import metric_interval
from harness.evaluation.predict import PredictCommand, PredictLimits, predict
from harness.evaluation.predictions import Expected, check, differing
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.evaluation.scoring import FrozenScorer, Scored, ScoreJob, score
from harness.evaluation.split_rows import (
    SplitRows,
    TableFile,
    load_rows,
    read_verified,
    require,
    shuffled,
    subset,
)
from harness.evaluation.truth import Truth, read_truth
from harness.evaluation.weights_probe import OtherCheckpoint, SeedAnswers, WeightsProbe, more_rows
from harness.files import canonical_json, make_folder, sha256_bytes

_NOTES = frozenset({"weights_not_probed", "seed_ignored", "seeds_are_one"})
"""Findings beside which a value stands."""
_LEAST_PROBE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    split: Split
    sealed: bool = False
    """Whether the labels are nobody's: then no finding says what predict or a label chose."""
    table: TableFile
    """The split with its labels: the vault's file for held-out."""
    train: TableFile
    """The training rows: their labels make the classes and the trivial predictor."""
    inputs: tuple[str, ...]
    """Input columns; empty for all but label and id."""
    label: str
    id_column: str | None
    """The source's name of a row, for findings; never handed out."""
    group: str | None = None
    """The column of what rows have in common."""
    metric: str
    """A built-in scorer's name, or the plan's word for a script's score."""
    scorer: FrozenScorer
    predict: tuple[str, ...]
    """The plan's command, split into words."""
    interpreter: str
    snapshot: Snapshot
    """The code of the run, as it was when the run was registered."""
    data_files: tuple[str, ...] = ()
    """The plan's data files, relative to the project: left out of the code that predict sees."""
    objects: Path
    """The vault's blobs by hash: snapshot and scorer, and the predictions on validation."""
    checkpoint: Path
    checkpoint_hash: str
    other: OtherCheckpoint | None = None
    """Another seed's: with it predict answers otherwise."""
    seed: int = 0
    others: tuple[OtherCheckpoint, ...] = ()
    """Those of all other seeds, with other bytes."""
    answers: SeedAnswers = field(default_factory=SeedAnswers)
    """Of the seeds that are evaluated with this one: same rows, same `shuffle_seed`."""
    deterministic: bool = False
    """Whether the plan says that training draws nothing at random."""
    root: Path
    """The project; a checkpoint that resolves to outside it is refused."""
    work: Path
    """Fresh folders are made and removed below it."""
    shuffle_seed: int
    """Of order and fresh ids; not to be known to the agent's code."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The harness's own; an allow-list of it reaches predict."""
    readable: tuple[Path, ...] = ()
    """Further paths that predict may read (settings)."""
    hidden: tuple[Path, ...] = ()
    """Absent for predict, whatever `readable` says."""
    byte_code: Path | None = None
    """What takes the place of the byte code beside the libraries' sources."""
    limits: PredictLimits = field(default_factory=PredictLimits)
    before_predict: Callable[[], None] = lambda: None
    """Called each time that predict is about to see rows; it may raise."""


@dataclass(frozen=True, kw_only=True)
class EvaluationOutcome:
    metric: str
    value: float | None
    """None when a finding is more than a note."""
    n: int
    interval: tuple[float, float] | None
    checkpoint: str
    code: str
    inputs: str
    labels: str
    scorer: str
    predictions: str | None
    """Hash of what was scored, in the split's order; None when nothing was."""
    sandbox: SandboxKind
    baseline: float | None
    findings: tuple[Finding, ...]
    at: str
    seconds: float
    predict_seconds: float | None
    """That one call of predict took, the longer of the two; None when none ended well."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    columns: Columns | None
    """In the split's order; None with findings."""
    findings: tuple[Finding, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class _ScoredOnce:
    scored: Scored | None
    interval: tuple[float, float] | None
    predictions: str | None
    findings: tuple[Finding, ...]
    predict_seconds: float | None = None


def evaluate_run(request: EvaluationRequest, sandbox: Sandbox, clock: Clock) -> EvaluationOutcome:
    """Predict and score; a fault of data, code, predictions or scorer is a finding in the outcome.
    Raises SandboxError when the sandbox cannot be set up."""
    at, begun = iso(clock.now()), clock.monotonic()
    rows: SplitRows | None = None
    try:
        rows = load_rows(
            request.table,
            which=request.split,
            inputs=request.inputs,
            label=request.label,
            id_column=request.id_column,
            group=request.group,
        )
        result = _evaluate(request, sandbox, rows)
    except Unscorable as error:
        result = _ScoredOnce(
            scored=None, interval=None, predictions=None, findings=(error.finding,)
        )
    findings = result.findings
    if request.sealed:
        findings = tuple(problems.withheld(finding, request.split) for finding in findings)
    return EvaluationOutcome(
        metric=request.metric,
        value=result.scored.value if result.scored else None,
        n=rows.n if rows else 0,
        interval=result.interval,
        checkpoint=request.checkpoint_hash,
        code=request.snapshot.hash,
        inputs=rows.inputs_hash() if rows else "",
        labels=rows.labels_hash() if rows else "",
        scorer=request.scorer.hash(),
        predictions=result.predictions,
        sandbox=sandbox.kind,
        baseline=result.scored.baseline if result.scored else None,
        findings=findings,
        at=at,
        seconds=clock.monotonic() - begun,
        # No more digits than a reader needs: on held-out they could carry rows.
        predict_seconds=_rounded(result.predict_seconds),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _evaluate(request: EvaluationRequest, sandbox: Sandbox, rows: SplitRows) -> _ScoredOnce:
    train = require(read_verified(request.train, "training"), request.label, "training")
    truth = read_truth(train, rows.labels, request.scorer, which=request.split)
    make_folder(request.work)
    with TemporaryDirectory(
        dir=request.work, prefix="checkpoint-", ignore_cleanup_errors=True
    ) as folder:
        copy = copy_checkpoint(
            request.checkpoint,
            Path(folder).resolve(),
            root=request.root,
            expected=request.checkpoint_hash,
        )
        command = command_of(request, copy)
        # Shuffled: a split may be sorted by label, and then the position tells it.
        everything = shuffled(range(rows.n), f"{request.shuffle_seed}/order/1")
        call = Call(request, command, sandbox, rows, truth)
        with request.answers.asking((request.checkpoint_hash, request.snapshot.hash)) as told:
            first = predicted(call, everything, "1")
            if first.columns is None:
                return _unscored(first.findings, None, first.seconds)
            again, findings = _predicted_again(call, first.columns)
            if not findings:
                told(first.columns, {*_part(call), *_wide(call)})
        seconds = max(first.seconds, again)
        if not findings:
            findings = _probe(call, first.columns, seconds).findings()
    digest = _kept(request, canonical_json(first.columns))
    if any(finding.code not in _NOTES for finding in findings):
        return _unscored(findings, digest, seconds)
    result = replace(_scored(call, first.columns, digest), predict_seconds=seconds)
    return replace(result, findings=(*result.findings, *findings))


def _unscored(
    findings: tuple[Finding, ...], predictions: str | None, seconds: float
) -> _ScoredOnce:
    return _ScoredOnce(
        scored=None,
        interval=None,
        predictions=predictions,
        findings=findings,
        predict_seconds=seconds,
    )


def _kept(request: EvaluationRequest, predictions: bytes) -> str:
    """Their hash; those on validation stay in the vault, for comparisons row by row."""
    if request.split is Split.VALIDATION:
        return store_bytes(predictions, request.objects)
    return sha256_bytes(predictions)


def command_of(request: EvaluationRequest, checkpoint: Path) -> PredictCommand:
    return PredictCommand(
        argv=request.predict,
        interpreter=request.interpreter,
        snapshot=request.snapshot,
        objects=request.objects,
        left_out=request.data_files,
        checkpoint=checkpoint,
        checkpoint_hash=request.checkpoint_hash,
        readable=request.readable,
        hidden=request.hidden,
        environment=request.environment,
        limits=request.limits,
        work=request.work,
        before=request.before_predict,
        root=request.root,
        byte_code=request.byte_code,
    )


@dataclass(frozen=True)
class Call:
    """All that predict is called with, but for the rows."""

    request: EvaluationRequest
    command: PredictCommand
    sandbox: Sandbox
    rows: SplitRows
    truth: Truth


def predicted(call: Call, order: Sequence[int], which: str) -> Predicted:
    """Predictions of the rows at `order`."""
    rows, truth = call.rows, call.truth
    seed = f"{call.request.shuffle_seed}/ids/{which}"
    raw = predict(call.command, call.sandbox, rows, order, seed)
    ids = dict(zip(order, raw.ids, strict=True))
    indices = sorted(order)
    expected = Expected(
        ids=tuple(ids[index] for index in indices),
        names=tuple(rows.names[index] for index in indices),
        needs=truth.needs,
        numeric=truth.numeric,
        # A class that only secret labels have: whether predictions may name it would tell of it.
        classes=truth.required if call.request.sealed and truth.required else truth.classes,
        required=truth.required,
        positive=truth.positive,
    )
    checked = check(raw.columns, expected)
    return Predicted(columns=checked.columns, findings=checked.findings, seconds=raw.seconds)


def _predicted_again(call: Call, first: Columns) -> tuple[float, tuple[Finding, ...]]:
    """Its seconds, and findings when a part of the rows is not predicted as before."""
    # Alone, in another order and under other ids: a predict that reads the other rows, positions or
    # ids, or that draws at random, gives other answers.
    part = _part(call)
    again = predicted(call, shuffled(part, f"{call.request.shuffle_seed}/order/2"), "2")
    second, names = again.columns, [call.rows.names[index] for index in part]
    if second is None:
        return again.seconds, again.findings
    before = {column: [values[index] for index in part] for column, values in first.items()}
    apart = differing(before, second, names) if set(before) == set(second) else names
    found = (problems.not_reproducible(apart, len(part)),) if apart else ()
    return again.seconds, found


def _part(call: Call) -> list[int]:
    return subset(call.rows.n, f"{call.request.shuffle_seed}/subset")


def _wide(call: Call) -> list[int]:
    order = shuffled(range(call.rows.n), f"{call.request.shuffle_seed}/wide")
    return more_rows(_part(call), order)


def _probe(call: Call, first: Columns, seconds: float) -> WeightsProbe:
    request = call.request
    # Weights without sense may make a model search for ever.
    limit = min(request.limits.predict_seconds, _LEAST_PROBE_S + 2 * seconds)
    limits = replace(request.limits, predict_seconds=limit)

    def answer(checkpoint: Path, digest: str, rows: Sequence[int]) -> Columns | None:
        command = replace(
            call.command, checkpoint=checkpoint, checkpoint_hash=digest, limits=limits
        )
        order = shuffled(rows, f"{request.shuffle_seed}/order/{digest}")
        try:
            return predicted(replace(call, command=command), order, digest).columns
        except Unscorable:
            return None

    return WeightsProbe(
        checkpoint=call.command.checkpoint,
        other=request.other,
        root=request.root,
        work=request.work,
        part=_part(call),
        wide=_wide(call),
        first=first,
        names=call.rows.names,
        answer=answer,
        known=lambda digest: request.answers.of((digest, request.snapshot.hash)),
        seed=request.seed,
        others=request.others,
        deterministic=request.deterministic,
    )


def _scored(call: Call, predictions: Columns, digest: str) -> _ScoredOnce:
    request, rows, truth = call.request, call.rows, call.truth
    # From what is scored, so that the same predictions have the same interval.
    seed = int(digest[:12], 16)
    # A script may take classes or probabilities; the baseline exists in one form.
    same_form = ("prediction" in predictions) == ("prediction" in truth.baseline)
    job = ScoreJob(
        labels=truth.labels,
        ids=list(rows.names),
        predictions=predictions,
        baseline=truth.baseline if same_form else None,
        seed=seed,
        groups=rows.groups,
        positive=truth.positive,
    )
    try:
        scored = score(
            request.scorer,
            job,
            objects=request.objects,
            work=request.work,
            seconds=request.limits.score_seconds,
            sandbox=call.sandbox,
        )
    except Unscorable as error:
        return _ScoredOnce(
            scored=None, interval=None, predictions=digest, findings=(error.finding,)
        )
    return _ScoredOnce(
        scored=scored,
        interval=_interval(scored, job, request.scorer),
        predictions=digest,
        findings=(),
    )


def _interval(scored: Scored, job: ScoreJob, scorer: FrozenScorer) -> tuple[float, float] | None:
    """The 95% interval over rows or groups, by the method that the table of metrics names; None for
    a metric that has none, and for a script whose resamples took too long or all score the same."""
    if scorer.entry is not None or METRICS[scorer.name].interval is IntervalMethod.RESAMPLED:
        return (
            None if scored.resampled is None else intervals.percentile_interval(scored.resampled)
        )
    return metric_interval(scorer.name, job.labels, job.predictions, job.groups, job.positive)
