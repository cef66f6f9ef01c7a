"""What the validation gate will find in claims, while they are written; it decides nothing."""

import contextlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from harness.artifacts.experiment_files import agrees, claim_from, claim_of
from harness.artifacts.training_status import read_status
from harness.domain.findings import Finding
from harness.domain.statuses import Split
from harness.errors import UsageError
from harness.evaluation.released import released_score
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project
from harness.plans.approved import plan_of


def claim_notes(
    project: Project, experiment: str, claims: Mapping[str, str | float]
) -> list[Finding]:
    """`claim_unsupported` and `claim_disagrees` for claims without a recomputed evaluation on
    validation, with the recomputed or logged numbers.

    Raises NotFoundError for an unknown experiment, RefusedError without a plan and UsageError for a
    claim that is no plain number.
    """
    record = project.ledger.experiment(experiment)
    approved = plan_of(project, record)
    metric = str(approved.content["oracle"]["metric"])
    score = released_score(project, record.id, approved, Split.VALIDATION)
    return [
        note
        for name, text in claims.items()
        for note in _note(project, record.id, metric, score, name, str(text))
    ]


def _note(
    project: Project,
    experiment: str,
    metric: str,
    score: dict[str, Any] | None,
    name: str,
    text: str,
) -> Iterator[Finding]:
    claim = claim_from(name, text, where="result")
    if name != metric:
        logged = "; ".join(_logged(project, experiment, name)) or "no run logged it"
        near = get_close_matches(name, [metric], n=1)
        hint = f"Did you mean {metric}? " if near else ""
        yield Finding(
            "claim_unsupported",
            f"{name} = {claim.text} is claimed, and only {metric} is recomputed; {logged}.",
            f"{hint}Claim {metric} alone; the validation gate fails other claims.",
            {"metric": name, "claimed": claim.text},
        )
    elif score is None:
        yield Finding(
            "claim_unsupported",
            f"{name} = {claim.text} is claimed, and {name} is not recomputed on validation yet.",
            f"Run `harness evaluate {experiment}`, then claim what it says.",
            {"metric": name, "claimed": claim.text},
        )
    elif (mean := score["mean"]) is None:
        yield Finding(
            "claim_unsupported",
            f"{name} = {claim.text} is claimed, and on hidden labels no number was told:"
            f" {score['released']['words']}.",
            "Write the result without this claim; the validation gate fails it.",
            {"metric": name, "claimed": claim.text},
        )
    elif not agrees(claim, mean):
        yield Finding(
            "claim_disagrees",
            f"{name} = {claim.text} is claimed; recomputed on validation: {mean:.6g}.",
            f"Write it again with `--claim {metric}={claim_of(mean)}`; the validation gate"
            " fails this one.",
            {"metric": name, "claimed": claim.text, "recomputed": mean},
        )


def _logged(project: Project, experiment: str, name: str) -> Iterator[str]:
    for run in counted_runs(project.ledger.runs(experiment)):
        with contextlib.suppress(UsageError):  # a damaged status file is the gate's to name
            status = read_status(project.layout.run(experiment, run.id, "status"))
            if status is not None and name in status.metrics:
                yield f"{run.id} logged {status.metrics[name]:.6g}"
