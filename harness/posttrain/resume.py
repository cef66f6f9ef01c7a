"""`posttrain run --resume`: which run goes on, and whether it may; as for `train --resume`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.artifacts.metrics_file import Tail
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.posttrain.specification import Specification
from harness.posttrain.tokens import Tokens
from harness.posttrain.training_judgement import (
    hashes_now,
    output_folder,
)
from harness.runs.closing import rows_of
from harness.runs.resume import (
    cannot_go_on,
    link_token,
    require_untouched,
    require_worth,
)

_ANEW = "Start it anew without --resume."


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """The run that goes on."""

    run: Run
    token: str
    """Its link token."""


def stopped_run(
    project: Project, spec: Specification, experiment: str, sandbox: Sandbox
) -> Stopped:
    """The newest run of `experiment`, which ended without completing and had begun to log.

    Raises RefusedError: nothing_to_resume, result_refused, run_changed; sandbox_differs,
    dataset_differs, base_model_differs, code_differs; minutes_spent, tokens_spent; and what
    `require_worth` raises.
    """
    runs = project.ledger.runs(experiment)
    token = link_token(project, runs[-1]) if runs else None
    if token is None:
        raise RefusedError(
            f"No run of {experiment} can go on: none of them stopped after it had begun to log.",
            hint=f"Start it with `harness posttrain run {experiment}`.",
            code="nothing_to_resume",
        )
    run = runs[-1]
    require_worth(run)
    _require_no_result(project, run)
    _require_same(project, spec, run, sandbox)
    _require_budget(project, spec, run)
    require_untouched(project, run)
    return Stopped(run=run, token=token)


def set_earlier_aside(project: Project, run: Run, attempt: int) -> None:
    """Keep the stdout and the result of `attempt` beside those of the next one."""
    # Else a new attempt that reports nothing would be judged by the old attempt's result. Only
    # after the resumption is a fact: a refused resume leaves the files as they were.
    stdout = project.layout.run(run.experiment, run.id, "stdout")
    for path in (stdout, output_folder(project, run) / "result.json"):
        if path.exists() or path.is_symlink():
            path.rename(path.with_name(f"{path.name}.attempt-{attempt}"))


def _require_no_result(project: Project, run: Run) -> None:
    judgements = project.ledger.judgements(run.experiment)
    judged = [judgement for judgement in judgements if judgement.run == run.id]
    result: Mapping[str, Any] = (judged[-1].result if judged else None) or {}
    if result and result.get("status") != "failed":
        why = "it had ended, and its result was refused"
        raise cannot_go_on(
            _name(run), why, "Correct the trainer, then run it anew.", "result_refused"
        )


def _require_same(project: Project, spec: Specification, run: Run, sandbox: Sandbox) -> None:
    if run.sandbox != sandbox.kind.value:
        why = f"its sandbox was {run.sandbox}, and is {sandbox.kind.value} now"
        raise cannot_go_on(
            _name(run), why, f"Resume with --sandbox {run.sandbox}. {_ANEW}", "sandbox_differs"
        )
    now = hashes_now(project, spec)
    specified = {
        "dataset_sha256": spec.dataset["sha256"],
        "base_model_sha256": spec.model["sha256"],
    }
    for name, digest in {**specified, "code_hash": spec.code_hash}.items():
        if now[name] != digest:
            what = name.rpartition("_")[0]
            why = (
                f"its {what.replace('_', ' ')} is {str(now[name])[:80]}; expected"
                f" {str(digest)[:12]}"
            )
            raise cannot_go_on(
                _name(run), why, "Put it back as it was specified.", f"{what}_differs"
            )


def _require_budget(project: Project, spec: Specification, run: Run) -> None:
    rows, tokens = rows_of(project.layout, run), Tokens()
    for batch in Tail(rows.path).batches(final=True):
        tokens.take(rows.take(batch))
    used = {"minutes": (run.seconds or 0.0) / 60, "tokens": tokens.spent}
    for name, amount in used.items():
        if amount >= spec.budget[name]:
            why = f"its budget.{name} ({spec.budget[name]:g}) are spent"
            raise cannot_go_on(_name(run), why, "Specify a larger budget.", f"{name}_spent")


def _name(run: Run) -> str:
    return f"{run.experiment}/{run.id}"
