"""One process of bench/composed_cards.py: the composed trainer's program, with random weights.

_cards_member.py MODEL --spec FILE --output-dir DIR
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}

import torch
from _shapes import LARGE, SMALL
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

from harness.training.trainers import task
from harness.training.trainers.composed import build
from harness.training.trainers.program import run

TINY = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 512}
TINY |= {"num_attention_heads": 2, "num_key_value_heads": 1}
SIZES = {"small": SMALL, "large": LARGE, "tiny": TINY}


def made(sizes: dict[str, int]) -> Any:
    """The same weights in every process."""
    set_seed(0)
    config = LlamaConfig(
        **sizes,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    cuda = torch.cuda.is_available()
    with torch.device("cuda" if cuda else "cpu"):
        torch.set_default_dtype(torch.bfloat16 if cuda else torch.float32)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    model.config.dtype = torch.bfloat16 if cuda else torch.float32
    return model


if __name__ == "__main__":
    sizes = SIZES[sys.argv[1]]
    task.load_model = lambda *_words, **_more: made(sizes)
    Path(sys.argv[5]).mkdir(parents=True, exist_ok=True)
    sys.exit(run("composed", "composed", ("prompt",), build, sys.argv[2:]))
