"""Evaluator `exact_match`: whether the greedy response is the answer, by `chat.is_answer`."""

import sys
from typing import Any

import torch

from harness.errors import UsageError
from harness.training.chat import (
    is_answer,
    prompt_ids,
)
from harness.training.collators import pad_prompts
from harness.training.evaluators.program import (
    ScoringTask,
    batches,
    run,
)

MOST_GENERATED = 256


def score(task: ScoringTask) -> list[dict[str, Any]]:
    """Value 1 where the response is the row's `answer` (or `completion`, or `chosen`), else 0."""
    scores = []
    for rows in batches(task.rows):
        responses = generate(task, [row["prompt"] for row in rows])
        for row, response in zip(rows, responses, strict=True):
            scores.append({"id": row["id"], "value": float(is_answer(response, _answer(row)))})
    return scores


def generate(task: ScoringTask, prompts: list[str]) -> list[str]:
    """Greedy responses, up to EOS or the limit."""
    tokens = [prompt_ids(task.tokenizer, prompt) for prompt in prompts]
    longest = max(map(len, tokens))
    room = min(MOST_GENERATED, task.limit - longest)
    if room < 1:
        raise UsageError(
            f"A prompt has {longest} tokens; a limit of {task.limit} leaves no room for an answer.",
            hint="Raise max_seq_length, or take the row out of the benchmark.",
            code="row_refused",
        )
    pad = task.tokenizer.pad_token_id
    ids, mask = (tensor.to(task.model.device) for tensor in pad_prompts(tokens, pad))
    with torch.inference_mode():
        out = task.model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=room,
            pad_token_id=pad,
        )
    return [
        str(text)
        for text in task.tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)
    ]


def _answer(row: dict[str, Any]) -> str:
    for name in ("answer", "completion", "chosen"):
        if isinstance(row.get(name), str):
            return str(row[name])
    raise UsageError(
        f"The row {row['id']} has no answer.", hint="Fix the benchmark.", code="dataset_row"
    )


if __name__ == "__main__":
    sys.exit(run("exact_match", ("prompt",), score))
