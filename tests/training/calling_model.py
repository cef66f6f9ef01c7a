"""A tiny model that answers every prompt with a call of `add(1, 2)`: taught that, by gradient."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.training.tiny_model import save_tool_model

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
"""One word of its vocabulary."""
ADD = '''def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: one number
        b: another
    """
    return a + b
'''
BOARD = '''class Board:
    def reset(self, prompt, **row):
        self.sums = []
        return f" Mind {len(prompt[-1]['content'])}."

    def add(self, a: int, b: int) -> int:
        """Adds.

        Args:
            a: one number
            b: another
        """
        self.sums.append(a + b)
        return sum(self.sums)

    def get_reward(self):
        return sum(self.sums) + self._more()

    def _more(self):
        return 0.5
'''
"""An environment: what its tool answers depends on the calls before it in the rollout."""
PLAYING = """
gradients_every = 1

[reward]
functions = []
function_weights = []

[distillation]
contexts = ["hint"]

[rollouts]
max_tokens = 400
environment = "board.py:Board"
tool_turns = 2
"""


def save_calling_model(folder: Path) -> Path:
    save_tool_model(folder, "qwen2_5")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([CALL])
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    _teach(model, [_ids(tokenizer, question) for question in ("1+1?", "Why?", "x" * 9)])
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def _ids(tokenizer: Any, question: str) -> torch.Tensor:
    """A conversation in which the tool answers twice, and is called again."""
    turn = f"{CALL}<|im_end|>\n<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n"
    asked = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    whole = text + f"{turn}<|im_start|>assistant\n" * 2 + f"{CALL}<|im_end|>"
    return torch.tensor([tokenizer(whole).input_ids])


def _teach(model: Any, rows: list[torch.Tensor]) -> None:
    call = model.config.vocab_size - 1
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        for ids in rows:
            at = (ids[0] == call).nonzero()[:, 0]
            logits = model(input_ids=ids).logits[0]
            # The call where an answer begins, and its end after it.
            loss = F.cross_entropy(logits[at - 1], ids[0][at])
            loss = loss + F.cross_entropy(logits[at], ids[0][at + 1])
            adam.zero_grad()
            loss.backward()
            adam.step()
    assert float(loss.detach()) < 1e-2
    model.lm_head.weight.data *= 2  # as good as certain, at temperature 1, too
