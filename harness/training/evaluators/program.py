"""What every evaluator does around its scores: `--request FILE --output FILE`, hashes of what it
read and loaded.

An answer holds one finite score for each row, or none at all: a failure is `"status": "failed"` and
exit code 1.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import set_seed

from harness.artifacts.content import hash_path
from harness.errors import HarnessError, RunError, UsageError
from harness.files import atomic_write, pretty_json
from harness.training.chat import RowRefusedError, Turn, turn
from harness.training.language_model import load_tokenizer, load_with_adapter
from harness.training.stdout import answers_only
from harness.training.trainers.spec import read_rows

VERSION = "1"
BATCH = 8


@dataclass(frozen=True, kw_only=True)
class Work:
    """One model and the rows that it is asked about."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Any]]
    limit: int
    """Most tokens of prompt and response together."""

    def turn(self, row: Mapping[str, Any], response: str) -> Turn:
        """Raises UsageError, with the row's id, for one that cannot be scored: leaving it out would
        change the mean."""
        try:
            return turn(self.tokenizer, row["prompt"], response, limit=self.limit)
        except RowRefusedError as error:
            raise UsageError(
                f"The row {row['id']} cannot be scored: {error.reason}.",
                hint="Raise max_seq_length, or take the row out of the benchmark.",
                code="row_refused",
            ) from error


Score = Callable[[Work], list[dict[str, Any]]]
"""Rows to [{"id", "value"[, "margin"]}], in their order."""


def run(
    name: str, texts: Sequence[str], score: Score, arguments: Sequence[str] | None = None
) -> int:
    """The program of one evaluator; returns its exit code."""
    parser = argparse.ArgumentParser(prog=f"harness.training.evaluators.{name}")
    parser.add_argument("--request", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    request = json.loads(given.request.read_bytes())
    told = blank_answer(name, request)
    with answers_only():
        try:
            _answer(name, request, texts, score, told)
        except BaseException as error:
            text = (
                error.message
                if isinstance(error, HarnessError)
                else f"{type(error).__name__}: {error}"
            )
            told |= {"status": "failed", "failure": " ".join(text.split())[:500], "scores": []}
            atomic_write(given.output, pretty_json(told))
            if isinstance(error, HarnessError):
                sys.stderr.write(f"{error}\n")
                return 1
            raise
        atomic_write(given.output, pretty_json(told))
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


def batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), BATCH):
        yield items[first : first + BATCH]


def _answer(
    name: str, request: Mapping[str, Any], texts: Sequence[str], score: Score, told: dict[str, Any]
) -> None:
    if request["evaluator"] != name:
        raise UsageError(
            f"The request is for {request['evaluator']}; this is {name}.",
            hint="Start the other program.",
        )
    rows = read_rows(Path(request["rows"]["path"]), "id", *texts)
    told["rows_sha256"] = rows.sha256
    base = Path(request["base_model"]["path"])
    adapter = Path(request["adapter"]["path"]) if request["adapter"] else None
    told["base_model_sha256"] = hash_path(base)
    told["adapter_sha256"] = hash_path(adapter) if adapter else None
    set_seed(int(request["seed"]))
    work = Work(
        model=load_with_adapter(
            base, adapter, dtype=request["dtype"], tier=request["hardware_tier"]
        ),
        tokenizer=load_tokenizer(base, padding_side="left"),
        rows=rows.rows,
        limit=int(request["max_seq_length"]),
    )
    scores = score(work)
    bad = [one["id"] for one in scores if not math.isfinite(one["value"])]
    if bad:
        raise RunError(
            f"{len(bad)} of {len(scores)} scores are not finite, that of {bad[0]} first.",
            hint="Look at the weights: a NaN in them makes every score one.",
            code="score_not_finite",
        )
    told |= {"scores": scores, "status": "completed"}
