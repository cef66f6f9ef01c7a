"""What every evaluator does around its scores: `--request FILE --output FILE`, hashes of what it
read and loaded, log-probabilities. An answer holds a finite score for each row, or none at all: a
failure is `"status": "failed"` and exit code 1."""

import argparse
import json
import math
import sys
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from harness.artifacts.content import hash_path
from harness.errors import (
    HarnessError,
    RunError,
    UsageError,
)
from harness.files import (
    atomic_write,
    pretty_json,
)
from harness.training.chat import (
    ChatTurn,
    RowRefusedError,
    read_rows,
    turn,
)
from harness.training.collators import pad_turns
from harness.training.language_model import (
    load_tokenizer,
    load_with_adapter,
)
from harness.training.losses import response_logps
from harness.training.model_program import answers_only

VERSION = "1"
BATCH = 8


@dataclass(frozen=True, kw_only=True)
class ScoringTask:
    """One model and the rows to score it on."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Any]]
    limit: int
    """Largest number of tokens of prompt and response together."""

    def turn(self, row: Mapping[str, Any], response: str) -> ChatTurn:
        """The row's prompt with `response`. Raises UsageError when it cannot be scored."""
        # Not left out: a mean over the other rows would be another number.
        try:
            return turn(self.tokenizer, row["prompt"], response, limit=self.limit)
        except RowRefusedError as error:
            raise UsageError(
                f"The row {row['id']} cannot be scored: {error.reason}.",
                hint="Raise max_seq_length, or take the row out of the benchmark.",
                code="row_refused",
            ) from error


Score = Callable[[ScoringTask], list[dict[str, Any]]]
"""Task -> [{"id", "value"[, "margin"]}], in the order of its rows."""


def run(
    name: str, texts: Sequence[str], score: Score, arguments: Sequence[str] | None = None
) -> int:
    """The program of one evaluator; returns its exit code."""
    parser = argparse.ArgumentParser(prog=f"harness.training.evaluators.{name}")
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    request = json.loads(options.request.read_bytes())
    answer = blank_answer(name, request)
    with answers_only():
        try:
            _fill(name, request, texts, score, answer)
        except BaseException as error:
            text = (
                f"{error.message} {error.hint}"
                if isinstance(error, HarnessError)
                else f"{type(error).__name__}: {error}"
            )
            answer |= {"status": "failed", "failure": " ".join(text.split())[:500], "scores": []}
            atomic_write(options.output, pretty_json(answer))
            if isinstance(error, HarnessError):
                sys.stderr.write(f"{error}\n")
                return 1
            raise
        atomic_write(options.output, pretty_json(answer))
    return 0


def blank_answer(name: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "request": request["request"],
        "evaluator": name,
        "version": VERSION,
        "status": "failed",
        "failure": None,
        "rows_sha256": None,
        "base_model_sha256": None,
        "adapter_sha256": None,
        "scores": [],
    }


def batches(elements: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(elements), BATCH):
        yield elements[first : first + BATCH]


def mean_logps(model: Any, turns: Sequence[ChatTurn], pad: int) -> list[float]:
    """Mean log-probability (nats) of a token of each response, EOS included, given its prompt."""
    # Turns of like length are computed together. Padding is masked: it changes rounding only.
    order = sorted(range(len(turns)), key=lambda index: len(turns[index].ids))
    means = [0.0] * len(turns)
    for indices in batches(order):
        values = _batch_logps(model, [turns[index] for index in indices], pad)
        for index, value in zip(indices, values, strict=True):
            means[index] = value
    return means


def _batch_logps(model: Any, turns: Sequence[ChatTurn], pad: int) -> list[float]:
    ids, mask, labels = (tensor.to(model.device) for tensor in pad_turns(turns, pad))
    # No logits before the last token of the shortest prompt: they predict no response, and the
    # vocabulary makes them the largest tensor of all.
    first = max(0, min(len(turn.prompt) for turn in turns) - 1)
    with torch.inference_mode():
        logits = model(
            input_ids=ids,
            attention_mask=mask,
            use_cache=False,
            logits_to_keep=ids.shape[1] - first,
        ).logits
        logps, counts = response_logps(logits, labels[:, first:])
    return [float(value) for value in logps / counts]


def _fill(
    name: str,
    request: Mapping[str, Any],
    texts: Sequence[str],
    score: Score,
    answer: dict[str, Any],
) -> None:
    if request["evaluator"] != name:
        raise UsageError(
            f"The request is for {request['evaluator']}; this is {name}.",
            hint="Start the other program.",
        )
    rows = read_rows(Path(request["rows"]["path"]), "id", *texts)
    answer["rows_sha256"] = rows.sha256
    base = Path(request["base_model"]["path"])
    adapter = Path(request["adapter"]["path"]) if request["adapter"] else None
    answer["base_model_sha256"] = hash_path(base)
    answer["adapter_sha256"] = hash_path(adapter) if adapter else None
    set_seed(int(request["seed"]))
    task = ScoringTask(
        model=load_with_adapter(
            base, adapter, dtype=request["dtype"], tier=request["hardware_tier"]
        ),
        tokenizer=load_tokenizer(base, padding_side="left"),
        rows=rows.rows,
        limit=int(request["max_seq_length"]),
    )
    scores = score(task)
    bad = [one["id"] for one in scores if not math.isfinite(one["value"])]
    if bad:
        raise RunError(
            f"{len(bad)} of {len(scores)} scores are not finite, that of {bad[0]} first.",
            hint="Look at the weights: a NaN in them makes every score one.",
            code="score_not_finite",
        )
    answer |= {"scores": scores, "status": "completed"}
