"""Evaluator `preference`: does the model find the chosen response likelier than the rejected one,
token by token?"""

import math
import sys
from typing import Any

from harness.training.evaluators.likelihood import mean_logps
from harness.training.evaluators.program import Work, run


def score(work: Work) -> list[dict[str, Any]]:
    """Value 1 where it does, 0 where not, 0.5 for a tie; margin: the difference of mean
    log-probabilities, in nats."""
    turns = [work.turn(row, row[name]) for row in work.rows for name in ("chosen", "rejected")]
    logps = mean_logps(work.model, turns, work.tokenizer.pad_token_id)
    found = []
    for row, chosen, rejected in zip(work.rows, logps[::2], logps[1::2], strict=True):
        margin = chosen - rejected
        value = (1 + math.copysign(1, margin)) / 2 if margin else 0.5
        found.append(
            {"id": row["id"], "value": math.nan if math.isnan(margin) else value, "margin": margin}
        )
    return found


if __name__ == "__main__":
    sys.exit(run("preference", ("prompt", "chosen", "rejected"), score))
