"""A local model that answers questions: JSON lines in, JSON lines out.

    python -m harness.training.teacher_program --model FOLDER

A question is {"text", "longest"}, its answer {"text", "cut", "input_tokens", "output_tokens"}.
Answers are greedy, so the same question gets the same one. On a GPU where there is one.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from harness.errors import HarnessError
from harness.training import model_program as model_program  # sets the environment
from harness.training.chat import prompt_ids
from harness.training.language_model import (
    CPU_TIER,
    load_model,
    load_tokenizer,
)
from harness.training.model_program import answers_only


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    folder = parser.parse_args().model
    gpu = torch.cuda.is_available()
    with answers_only() as out:
        try:
            tokenizer = load_tokenizer(folder)
            model = load_model(
                folder,
                dtype="bfloat16" if gpu else "float32",
                tier="datacenter-gpu" if gpu else CPU_TIER,
            ).eval()
            for line in sys.stdin.buffer:
                answer = _answer(model, tokenizer, json.loads(line))
                out.write(json.dumps(answer).encode() + b"\n")
                out.flush()
        except HarnessError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_code
    return 0


@torch.no_grad()
def _answer(model: Any, tokenizer: Any, asked: dict[str, Any]) -> dict[str, Any]:
    ids = prompt_ids(tokenizer, asked["text"])
    longest = int(asked["longest"])
    room = int(getattr(model.config, "max_position_embeddings", 0)) - longest
    if room > 0:
        ids = ids[-room:]  # the newest part of a long context
    given = torch.tensor([ids], device=model.device)
    out = model.generate(
        input_ids=given,
        attention_mask=torch.ones_like(given),
        max_new_tokens=longest,
        do_sample=False,
        pad_token_id=tokenizer.pad_token_id,
    )
    made = out[0, len(ids) :].tolist()
    return {
        "text": tokenizer.decode(made, skip_special_tokens=True),
        "cut": len(made) >= longest and made[-1] != tokenizer.eos_token_id,
        "input_tokens": len(ids),
        "output_tokens": len(made),
    }


if __name__ == "__main__":
    sys.exit(main())
