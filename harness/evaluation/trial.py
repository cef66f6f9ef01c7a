"""Does predict answer? Tried on a few training rows, which training knows with their labels:
nothing is scored, no look is counted, and nothing is told that could not be known."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.domain.findings import Finding
from harness.domain.sandbox import Sandbox
from harness.evaluation.checkpoint_copy import copy_checkpoint
from harness.evaluation.evaluate_run import (
    Call,
    EvaluationRequest,
    command_of,
    predicted,
)
from harness.evaluation.problems import Unscorable
from harness.evaluation.split_rows import load_rows, shuffled
from harness.evaluation.truth import read_truth
from harness.files import make_folder

MOST_ROWS = 8
_TRAINING = "training"


@dataclass(frozen=True, kw_only=True)
class Trial:
    findings: tuple[Finding, ...]
    """What is wrong; nothing where predict can be scored."""
    rows: int
    seconds: float
    """That the command took; 0 where it did not end well."""


def try_predict(request: EvaluationRequest, sandbox: Sandbox) -> Trial:
    """Ask for a few rows of `request.train`, as an evaluation would. Raises SandboxError."""
    request = replace(request, table=request.train, sealed=False, before_predict=lambda: None)
    try:
        return _tried(request, sandbox)
    except Unscorable as error:
        return Trial(findings=(error.finding,), rows=MOST_ROWS, seconds=0.0)


def _tried(request: EvaluationRequest, sandbox: Sandbox) -> Trial:
    rows = load_rows(
        request.train,
        which=_TRAINING,
        inputs=request.inputs,
        label=request.label,
        id_column=request.id_column,
        group=request.group,
    )
    truth = read_truth(rows.labels, rows.labels, request.scorer, which=_TRAINING)
    order = shuffled(range(rows.n), f"{request.shuffle_seed}/try")[:MOST_ROWS]
    make_folder(request.work)
    with TemporaryDirectory(dir=request.work, prefix="try-", ignore_cleanup_errors=True) as folder:
        copy = copy_checkpoint(
            request.checkpoint,
            Path(folder).resolve(),
            root=request.root,
            expected=request.checkpoint_hash,
        )
        command = command_of(request, copy)
        call = Call(request, command, sandbox, rows, truth)
        answered = predicted(call, order, "try")
    return Trial(
        findings=answered.findings,
        rows=len(order),
        seconds=answered.seconds,
    )
