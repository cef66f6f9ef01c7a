"""The evaluators on a tiny random model: scores that can be computed by hand, hashes, failures that
are no scores."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from harness.artifacts.content import hash_path  # noqa: E402  a library may be missing
from harness.files import sha256_bytes  # noqa: E402
from harness.training.chat import turn  # noqa: E402
from harness.training.evaluators import exact_match, perplexity, preference  # noqa: E402
from harness.training.evaluators.program import mean_logps, run  # noqa: E402
from harness.training.language_model import load_model, load_tokenizer  # noqa: E402
from tests.training.tiny_model import preferences, save_tiny_model, write_rows  # noqa: E402

PAIR = ("prompt", "chosen", "rejected")


def ask(
    folder: Path, model: Path, rows: Path, name: str, texts: Any, score: Any, **more: Any
) -> tuple[int, Any]:
    request = {
        "schema": 1,
        "request": "a" * 64,
        "evaluator": name,
        "base_model": {"id": "tiny", "path": str(model)},
    }
    request |= {
        "adapter": None,
        "rows": {"path": str(rows)},
        "mode": "reduced_prompt",
        "seed": 1,
        "dtype": "float32",
    }
    request |= {"max_seq_length": 64, "hardware_tier": "cpu-experimental"} | more
    (folder / "request.json").write_text(json.dumps(request), "utf-8")
    words = ["--request", str(folder / "request.json"), "--output", str(folder / "answer.json")]
    code = run(name, texts, score, words)
    return code, json.loads((folder / "answer.json").read_text("utf-8"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_tiny_model(tmp_path / "model")


def test_the_preference_is_that_of_the_token_probabilities(tmp_path: Path, model: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", preferences(11))
    code, answer = ask(tmp_path, model, rows, "preference", PAIR, preference.score)
    assert (code, answer["status"], answer["request"]) == (0, "completed", "a" * 64)
    assert answer["rows_sha256"] == sha256_bytes(rows.read_bytes())
    assert (answer["base_model_sha256"], answer["adapter_sha256"]) == (hash_path(model), None)
    tokenizer, loaded = (
        load_tokenizer(model),
        load_model(model, dtype="float32", tier="cpu-experimental").eval(),
    )

    def by_hand(row: dict[str, Any], name: str) -> float:
        one = turn(tokenizer, row["prompt"], row[name], limit=64)
        with torch.no_grad():
            logp = torch.log_softmax(loaded(torch.tensor([one.ids])).logits[0].double(), -1)
        start = len(one.prompt)
        return float(
            sum(logp[start + i - 1, token] for i, token in enumerate(one.response))
            / len(one.response)
        )

    for row, score in zip(preferences(11), answer["scores"], strict=True):
        margin = by_hand(row, "chosen") - by_hand(row, "rejected")
        assert score["id"] == row["id"]
        assert score["margin"] == pytest.approx(margin, abs=1e-5)
        assert score["value"] == float(score["margin"] > 0)


def test_padding_changes_no_likelihood(model: Path) -> None:
    tokenizer, loaded = (
        load_tokenizer(model),
        load_model(model, dtype="float32", tier="cpu-experimental").eval(),
    )
    short, long = (turn(tokenizer, text, "ab", limit=200) for text in ("x", "x" * 100))
    alone = mean_logps(loaded, [short], 2)
    assert mean_logps(loaded, [long, short], 2)[1] == pytest.approx(alone[0], abs=1e-5)


def test_perplexity_and_exact_match_score_every_row(tmp_path: Path, model: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", preferences(3))
    _, answer = ask(tmp_path, model, rows, "perplexity", ("prompt",), perplexity.score)
    assert [one["value"] < 0 for one in answer["scores"]] == [True] * 3
    _, answer = ask(tmp_path, model, rows, "exact_match", ("prompt",), exact_match.score)
    assert [one["value"] for one in answer["scores"]] == [0.0] * 3  # random weights do not add


def test_a_failure_is_no_score(tmp_path: Path, model: Path) -> None:
    long = {"id": "long", "prompt": "1" * 60, "chosen": "a", "rejected": "b"}
    rows = write_rows(tmp_path / "rows.jsonl", [*preferences(2), long])
    code, answer = ask(tmp_path, model, rows, "preference", PAIR, preference.score)
    assert (code, answer["status"], answer["scores"]) == (1, "failed", [])
    assert "The row long cannot be scored" in answer["failure"]
    assert "Raise max_seq_length" in answer["failure"]
    weights = load_model(model, dtype="float32", tier="cpu-experimental")
    torch.nn.init.constant_(weights.model.norm.weight, float("nan"))
    weights.save_pretrained(model)
    rows = write_rows(tmp_path / "rows.jsonl", preferences(2))
    code, answer = ask(tmp_path, model, rows, "preference", PAIR, preference.score)
    assert (code, answer["status"], answer["scores"]) == (1, "failed", [])
    assert "not finite" in answer["failure"]
