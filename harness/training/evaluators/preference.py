"""Evaluator `preference`: is the chosen response's mean log-probability of a token the higher?"""

import math
import sys
from typing import Any

from harness.training.evaluators.program import (
    ScoringTask,
    mean_logps,
    run,
)


def score(task: ScoringTask) -> list[dict[str, Any]]:
    """Value 1 where it is, 0 where not, 0.5 for a tie; margin: chosen minus rejected, in nats."""
    # Means, not sums: a sum falls with every token, so the shorter response would win.
    turns = [task.turn(row, row[name]) for row in task.rows for name in ("chosen", "rejected")]
    logps = mean_logps(task.model, turns, task.tokenizer.pad_token_id)
    scores = []
    for row, chosen, rejected in zip(task.rows, logps[::2], logps[1::2], strict=True):
        margin = chosen - rejected
        # NaN stays NaN: copysign would make a preference of it.
        value = (1 + math.copysign(1, margin)) / 2 if margin else 0.5
        scores.append(
            {"id": row["id"], "value": math.nan if math.isnan(margin) else value, "margin": margin}
        )
    return scores


if __name__ == "__main__":
    sys.exit(run("preference", ("prompt", "chosen", "rejected"), score))
