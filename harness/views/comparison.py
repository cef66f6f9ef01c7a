"""Two experiments side by side, on validation, where experiments compete."""

from typing import Any

from harness.domain.statuses import Split
from harness.errors import RefusedError
from harness.evaluation.score import Score, summarise
from harness.evaluation.scores import counted_evaluations, judged
from harness.ledger.project import Project


def comparison(project: Project, candidate: str, reference: str) -> dict[str, Any]:
    """{candidate, reference: {id, score, spread, n_seeds, evidence}, difference, floor, better,
    why, p, p_corrected, comparisons, paired}.

    Scores are those of the plan version in force. Raises NotFoundError for an unknown id,
    RefusedError when one has no score.
    """
    scores = {name: _score(project, name) for name in (candidate, reference)}
    result = judged(project, project.plan(), candidate, reference)
    assert result is not None  # both have a score
    return {
        "split": Split.VALIDATION,
        "candidate": _plain(candidate, scores[candidate]),
        "reference": _plain(reference, scores[reference]),
        **{name: value for name, value in result.items() if name != "seeds"},
    }


def _score(project: Project, identifier: str) -> Score:
    found = project.ledger.experiment(identifier)
    score = summarise(counted_evaluations(project, found.id, project.plan(), Split.VALIDATION))
    if score is None:
        raise RefusedError(
            f"{found.id} has no recomputed score on validation under the plan in force.",
            hint=f"Run `harness evaluate {found.id}` first.",
            code="no_score",
        )
    return score


def _plain(identifier: str, score: Score) -> dict[str, Any]:
    return {
        "id": identifier,
        "score": score.mean,
        "spread": score.spread,
        "n_seeds": score.n_seeds,
        "evidence": score.evidence,
    }
