"""Student and teacher see one completion of a real trace, token for token, behind prompts that
differ by the hint."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import orjson
import torch

from harness.traces.contexts import StateFile
from harness.traces.ingest import Reading, sources
from harness.traces.training_rows import Kind, Made, Settings, training_rows
from harness.training.chat import turn
from harness.training.collators import before_completions
from harness.training.language_model import load_tokenizer
from tests.training.tiny_model import save_tiny_model

COLLECTED = Path(__file__).parents[1] / "traces/inputs/collected"
TERMS = {"licence": "MIT", "consent": True, "provenance": {"source": "x"}}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(save_tiny_model(tmp_path_factory.mktemp("tiny")))


def real_rows(folder: Path) -> list[dict[str, Any]]:
    """Completions of the collected transcripts, as texts."""
    path = folder / "states.jsonl"
    with path.open("wb") as stream:
        for _, _, state in Reading(sources([COLLECTED])).states():
            stream.write(orjson.dumps(state.row() | TERMS) + b"\n")
    settings = Settings(kind=Kind.SFT, text=True, budget=1_000)
    return list(training_rows(StateFile(path), settings, Made()))


def test_the_last_columns_are_the_same_tokens_of_the_completion(tokenizer: Any, tmp_path: Path):
    rows = real_rows(tmp_path)
    assert len(rows) > 10
    hint = "\n\nThe tool said: no such file."
    students = [turn(tokenizer, row["prompt"], row["completion"], limit=6_000) for row in rows]
    teachers = [
        turn(tokenizer, row["prompt"] + hint, row["completion"], limit=6_000) for row in rows
    ]
    pad, longest = 2, max(len(one.response) for one in students)
    ids = torch.full((len(rows), longest), pad)
    mask = torch.zeros_like(ids)
    for place, one in enumerate(students):
        assert teachers[place].response == one.response
        assert teachers[place].prompt != one.prompt
        ids[place, : len(one.response)] = torch.tensor(one.response)
        mask[place, : len(one.response)] = 1
    for turns in (students, teachers):
        whole, seen = before_completions([one.prompt for one in turns], (ids, mask), pad)
        assert torch.equal(whole[:, -longest:], ids)
        assert torch.equal(seen[:, -longest:], mask)
        for place, one in enumerate(turns):
            kept = whole[place][seen[place].bool()].tolist()
            assert kept == one.prompt + one.response
