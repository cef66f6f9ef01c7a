"""The models that are trained: a CNN, an MLP, a transformer of characters."""

import torch
from torch import Tensor, nn

from bench.detectors.small_data import CONTEXT, Data


class Transformer(nn.Module):
    """A pre-norm block over characters; logits (batch, CONTEXT, letters)."""

    def __init__(self, letters: int, width: int = 32) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(1)
        )
        self.head = nn.Linear(width, letters)
        self.register_buffer("mask", torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.letters(x) + self.places.weight
        for block in self.blocks:
            hidden = block(hidden, src_mask=self.mask)
        return self.head(hidden)


def build(task: str, data: Data, *, width: int = 32, dropout: float = 0.0) -> nn.Module:
    """Takes its weights from torch's global generator."""
    if task == "chars":
        return Transformer(data.outputs, width)
    if task == "cnn":
        return nn.Sequential(
            nn.Conv1d(1, 16, 5, 2, 2),
            nn.ReLU(),
            nn.Conv1d(16, width, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(10 * width, data.outputs),
        )
    inputs = data.train.x.shape[1]
    return nn.Sequential(
        nn.Linear(inputs, 2 * width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(2 * width, width),
        nn.ReLU(),
        nn.Linear(width, data.outputs),
    )
