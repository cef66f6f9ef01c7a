"""Evaluator `perplexity`: log-likelihood of the right response; exp(-value) is the perplexity."""

import sys
from typing import Any

from harness.errors import UsageError
from harness.training.evaluators.program import (
    ScoringTask,
    mean_logps,
    run,
)


def score(task: ScoringTask) -> list[dict[str, Any]]:
    """Value: mean log-likelihood (nats) of a token of `completion` (or `chosen`, or `answer`)."""
    turns = [task.turn(row, _response(row)) for row in task.rows]
    logps = mean_logps(task.model, turns, task.tokenizer.pad_token_id)
    return [{"id": row["id"], "value": value} for row, value in zip(task.rows, logps, strict=True)]


def _response(row: dict[str, Any]) -> str:
    for name in ("completion", "chosen", "answer"):
        if isinstance(row.get(name), str):
            return str(row[name])
    raise UsageError(
        f"The row {row['id']} has no completion.", hint="Fix the benchmark.", code="dataset_row"
    )


if __name__ == "__main__":
    sys.exit(run("perplexity", ("prompt",), score))
