"""Evaluator `perplexity`: how well the model predicts the right response; exp(-value) is the
perplexity."""

import sys
from typing import Any

from harness.errors import UsageError
from harness.training.evaluators.likelihood import mean_logps
from harness.training.evaluators.program import Work, run


def score(work: Work) -> list[dict[str, Any]]:
    """Value: minus the mean negative log-likelihood of a token of `completion` (or `chosen`), in
    nats."""
    turns = [work.turn(row, _response(row)) for row in work.rows]
    logps = mean_logps(work.model, turns, work.tokenizer.pad_token_id)
    return [{"id": row["id"], "value": value} for row, value in zip(work.rows, logps, strict=True)]


def _response(row: dict[str, Any]) -> str:
    for name in ("completion", "chosen", "answer"):
        if isinstance(row.get(name), str):
            return str(row[name])
    raise UsageError(
        f"The row {row['id']} has no completion.", hint="Fix the benchmark.", code="dataset_row"
    )


if __name__ == "__main__":
    sys.exit(run("perplexity", ("prompt",), score))
