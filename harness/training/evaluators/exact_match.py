"""Evaluator `exact_match`: what the model says, greedily, is the answer; case, spaces and edge
punctuation aside."""

import sys
from typing import Any

import torch

from harness.errors import UsageError
from harness.training.answers import is_answer
from harness.training.chat import prompt_ids
from harness.training.evaluators.program import Work, batches, run

MOST_GENERATED = 256


def score(work: Work) -> list[dict[str, Any]]:
    """Value 1 where what was generated is the row's `answer` (or `completion`, or `chosen`), else
    0."""
    found = []
    for rows in batches(work.rows):
        said = generate(work, [row["prompt"] for row in rows])
        for row, text in zip(rows, said, strict=True):
            found.append({"id": row["id"], "value": float(is_answer(text, _answer(row)))})
    return found


def generate(work: Work, prompts: list[str]) -> list[str]:
    """Greedy, up to EOS or the limit; prompts are padded at the left."""
    tokens = [prompt_ids(work.tokenizer, prompt) for prompt in prompts]
    longest = max(map(len, tokens))
    room = min(MOST_GENERATED, work.limit - longest)
    if room < 1:
        raise UsageError(
            f"A prompt has {longest} tokens; {work.limit} leave no room for an answer.",
            hint="Raise max_seq_length, or take the row out of the benchmark.",
            code="row_refused",
        )
    pad = work.tokenizer.pad_token_id
    ids = torch.tensor(
        [[pad] * (longest - len(one)) + one for one in tokens], device=work.model.device
    )
    mask = torch.tensor(
        [[0] * (longest - len(one)) + [1] * len(one) for one in tokens], device=work.model.device
    )
    with torch.inference_mode():
        out = work.model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=room,
            pad_token_id=pad,
        )
    return [
        str(text)
        for text in work.tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)
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
