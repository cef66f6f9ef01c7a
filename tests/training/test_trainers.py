"""The trainer programs on a tiny random model: protocol, hashes, refusals, budgets, finite losses,
resume."""

import json
import math
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from safetensors.torch import load_file  # noqa: E402 - needs the libraries that may be missing

from harness.artifacts.content import hash_path  # noqa: E402
from harness.domain import variables  # noqa: E402
from harness.domain.composition import (  # noqa: E402
    Composition,
    DistillationChannel,
    Rollouts,
)
from harness.errors import RunError, UsageError  # noqa: E402
from harness.files import sha256_bytes  # noqa: E402
from harness.training import losses, rewards  # noqa: E402
from harness.training.chat import turn  # noqa: E402
from harness.training.language_model import load_tokenizer  # noqa: E402
from harness.training.trainers import (  # noqa: E402
    composed,
    micro_batch,
    program,
    trl_dpo,
    trl_grpo,
    trl_orpo,
    trl_sft,
)
from harness.training.trainers.budget import MARK  # noqa: E402
from harness.training.trainers.program import run  # noqa: E402
from tests.metrics_rows import read_rows  # noqa: E402
from tests.training.tiny_model import (  # noqa: E402
    environment,
    preferences,
    save_tiny_model,
    specification,
    write_rows,
)

COMPOSITION = Composition(
    distillation=DistillationChannel(teacher="ema", warmup=0.5),
    rollouts=Rollouts(max_tokens=8),
    gradients_every=2,
)
PAIR = ("prompt", "chosen", "rejected")
BACKENDS: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "trl-orpo": (trl_orpo.build, "orpo", PAIR),
    "trl-dpo": (trl_dpo.build, "dpo", PAIR),
    "trl-sft": (trl_sft.build, "sft", ("prompt",)),
    "trl-grpo": (trl_grpo.build, "grpo", ("prompt", "answer")),
    "composed": (composed.build, "composed", ("prompt",)),
}


class Place:
    """A model, rows, and the runs that are started on them in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
        self.folder, self._patch, self._captured = folder, monkeypatch, capfdbinary
        self.model = save_tiny_model(folder / "model")
        self.data = write_rows(folder / "rows.jsonl", preferences(12))

    def train(
        self, backend: str, *, name: str = "run", attempt: int = 1, **more: Any
    ) -> tuple[int, dict[str, Any]]:
        build, mode, texts = BACKENDS[backend]
        here = self.folder / name
        (here / "checkpoints").mkdir(parents=True, exist_ok=True)
        if backend == "composed":
            more.setdefault("composition", COMPOSITION.plain())
        spec = specification(self.model, self.data, backend, more.pop("mode", mode), **more)
        (here / "spec.json").write_text(json.dumps(spec), "utf-8")
        for key, value in environment(here, attempt).items():
            self._patch.setenv(key, value)
        words = ["--spec", str(here / "spec.json"), "--output-dir", str(here / "checkpoints")]
        self._captured.readouterr()
        code = run(backend, mode, texts, build, words, began=time.monotonic())
        out = self._captured.readouterr().out
        assert out == (here / "checkpoints" / "result.json").read_bytes()
        return code, json.loads(out)

    def rows(self, name: str = "run") -> list[dict[str, Any]]:
        lines = (self.folder / name / "metrics.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]


OF_ONE_PROCESS = re.compile("second|time|memory|^summary/train_loss$")


def numbers(folder: Path) -> list[tuple[Any, dict[str, Any]]]:
    """(step, metrics) of each row that holds after all resumes, without what is of one process
    only."""
    rows = [
        row for row in read_rows(folder / "metrics.jsonl").effective if row["event"] == "epoch"
    ]
    return [
        (
            row["step"],
            {
                key: value
                for key, value in row["metrics"].items()
                if not OF_ONE_PROCESS.search(key)
            },
        )
        for row in rows
    ]


def require_same(first: Path, second: Path) -> None:
    """Adapter, optimizer, schedule and every row that was logged, to the last bit."""
    adapters = [
        load_file(one / "checkpoints" / "adapter" / "adapter_model.safetensors")
        for one in (first, second)
    ]
    assert adapters[0].keys() == adapters[1].keys()
    assert all(torch.equal(adapters[0][key], adapters[1][key]) for key in adapters[0])
    last = max(
        (one.name for one in (first / "checkpoints").glob("checkpoint-*")),
        key=lambda name: int(name[11:]),
    )
    for name in ("optimizer.pt", "scheduler.pt"):
        saved = [
            torch.load(one / "checkpoints" / last / name, weights_only=True)
            for one in (first, second)
        ]
        torch.testing.assert_close(*saved, rtol=0, atol=0)
    assert numbers(first) == numbers(second)
    assert {"loss", "grad_norm", "tokens_seen"} <= numbers(first)[0][1].keys()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Place:
    torch.set_num_threads(1)
    return Place(tmp_path, monkeypatch, capfdbinary)


@pytest.mark.parametrize("backend", list(BACKENDS))
def test_each_backend_trains_and_tells_the_truth(place: Place, backend: str) -> None:
    code, result = place.train(backend)
    output = place.folder / "run" / "checkpoints"
    assert (code, result["status"], result["failure"]) == (0, "completed", None)
    assert result["dataset_sha256"] == sha256_bytes(place.data.read_bytes())
    assert result["base_model_sha256"] == hash_path(place.model)
    assert result["spec_sha256"] == sha256_bytes((place.folder / "run" / "spec.json").read_bytes())
    assert (result["dataset_rows"], result["rows_used"], result["rows_refused"]) == (12, 12, {})
    assert result["metrics"]["steps"] == 4
    assert math.isfinite(result["metrics"]["final_loss"])
    weights = load_file(output / "adapter" / "adapter_model.safetensors")
    assert any(tensor.abs().max() > 0 for name, tensor in weights.items() if "lora_B" in name)
    assert (
        json.loads((output / "adapter" / "adapter_config.json").read_text())[
            "base_model_name_or_path"
        ]
        == "tiny"
    )
    logged = [row["metrics"] for row in place.rows() if "loss" in row.get("metrics", {})]
    assert len(logged) == 4
    assert [row["tokens_seen"] for row in logged] == sorted({row["tokens_seen"] for row in logged})
    assert logged[-1]["tokens_seen"] == result["metrics"]["tokens_seen"]
    assert [row["path"] for row in place.rows() if row.get("final")][-1] == "checkpoints/adapter"


def test_tokens_are_counted_without_padding(place: Place) -> None:
    place.data = write_rows(place.folder / "rows.jsonl", preferences(4))
    _, result = place.train(
        "trl-sft", hyperparameters={"max_steps": 2, "gradient_accumulation": 1}
    )
    tokenizer = load_tokenizer(place.model)
    turns = [turn(tokenizer, row["prompt"], row["chosen"], limit=64) for row in preferences(4)]
    assert result["metrics"]["tokens_seen"] == sum(len(one.ids) for one in turns)


def test_case_39_rows_that_teach_nothing_are_refused_and_counted(place: Place) -> None:
    bad = [
        {"id": "same", "prompt": "1?", "chosen": "a", "rejected": "a "},
        {"id": "long", "prompt": "1" * 60, "chosen": "a", "rejected": "b"},
        {"id": "cut", "prompt": "1?", "chosen": "a" * 60, "rejected": "a" * 59 + "b"},
    ]
    write_rows(place.data, preferences(4) + bad)
    code, result = place.train("trl-orpo", hyperparameters={"max_steps": 1})
    reasons = {
        "pair_equal": 1,
        "response_empty_after_truncation": 1,
        "pair_equal_after_truncation": 1,
    }
    assert (code, result["rows_used"], result["rows_refused"]) == (0, 4, reasons)
    write_rows(place.data, bad)
    code, result = place.train("trl-orpo", name="none")
    assert (code, result["status"], result["rows_used"], result["artifact"]) == (
        1,
        "failed",
        0,
        None,
    )
    assert "No row of 3" in result["failure"]


def test_a_damaged_row_fails_with_its_line(place: Place) -> None:
    place.data.write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n{"prompt": 3}\n')
    code, result = place.train("trl-dpo")
    assert (code, result["dataset_sha256"]) == (1, None)
    assert "Line 2" in result["failure"]


def test_the_token_budget_ends_the_training_before_it_is_passed(place: Place) -> None:
    code, result = place.train("trl-sft", budget={"minutes": 10.0, "tokens": 250})
    assert (code, result["extra"]["stopped_by_budget"]) == (0, "tokens")
    assert 0 < result["metrics"]["tokens_seen"] <= 250
    code, result = place.train("trl-sft", name="small", budget={"minutes": 10.0, "tokens": 20})
    assert (code, result["status"]) == (1, "failed")
    assert "did not suffice for one step" in result["failure"]


def test_the_minute_budget_ends_the_training(place: Place) -> None:
    _, result = place.train("trl-sft", budget={"minutes": 1e-6, "tokens": 10_000})
    assert result["status"] == "failed"  # no time for a single step: nothing to believe
    assert "minutes" in result["failure"]


def test_the_wrong_trainer_refuses(place: Place) -> None:
    code, result = place.train("trl-orpo", mode="dpo")
    assert (code, result["status"], result["dataset_sha256"]) == (1, "failed", None)


@pytest.mark.parametrize("backend", ["trl-orpo", "trl-dpo"])
def test_case_38_and_39_answers_of_one_token_and_full_prompts_train_finitely(
    place: Place, backend: str
) -> None:
    """One-token answers of which the model may be sure, beside a prompt that fills the whole
    length."""
    rows = [{**row, "chosen": "1", "rejected": "2"} for row in preferences(4)]
    full = {"id": "full", "prompt": "1" * 64, "chosen": "a" * 20, "rejected": "b" * 20}
    write_rows(place.data, [*rows, full])
    code, result = place.train(backend, hyperparameters={"max_steps": 2, "batch_size": 1})
    assert (code, result["rows_used"], sum(result["rows_refused"].values())) == (0, 4, 1)
    logged = [row["metrics"] for row in place.rows() if "loss" in row.get("metrics", {})]
    assert len(logged) == 2
    assert all(math.isfinite(value) for row in logged for value in row.values())


def test_case_56_a_model_that_is_an_adapter_is_refused(place: Place) -> None:
    place.train("trl-sft", hyperparameters={"max_steps": 1})
    shutil.copy(
        place.folder / "run" / "checkpoints" / "adapter" / "adapter_config.json", place.model
    )
    code, result = place.train("trl-dpo", name="second")
    assert code == 1
    assert "holds an adapter" in result["failure"]


def test_case_56_a_reference_that_differs_is_refused() -> None:
    losses.require_same_start(math.log(2) + 5e-4)
    for loss in (0.75, 0.0, math.nan):
        with pytest.raises(RunError, match="policy and reference"):
            losses.require_same_start(loss)


@pytest.mark.parametrize("logp", [0.0, -1e-9, -1e-4, -20.0, -200.0])
def test_case_38_odds_are_finite_where_the_model_is_sure(logp: float) -> None:
    value = torch.tensor([logp], dtype=torch.bfloat16).float().requires_grad_()
    odds = losses.log_odds(value)
    odds.sum().backward()
    assert torch.isfinite(odds).all()
    assert torch.isfinite(value.grad).all()
    if -20 < logp < -1e-5:
        exact = math.log(math.exp(float(value)) / -math.expm1(float(value)))
        assert float(odds) == pytest.approx(exact, rel=1e-4)


def test_case_38_the_likelihood_of_orpo_leaves_the_prompt_out() -> None:
    logits = torch.zeros(1, 4, 5)
    logits[0, 0, 1] = 50.0  # sure of the prompt's token; it must not count
    labels = torch.tensor([[-100, -100, 3, 4]])
    total, counted = losses.response_logps(logits, labels)
    assert (float(total), int(counted)) == (pytest.approx(2 * -math.log(5)), 2)


def test_groups_need_two_completions() -> None:
    assert [trl_grpo.group_size(rows) for rows in (16, 4, 6)] == [8, 4, 2]
    with pytest.raises(UsageError, match="even number"):
        trl_grpo.group_size(1)
    said = [[{"role": "assistant", "content": text}] for text in (" 42. ", "It is 42", "420")]
    assert rewards.exact_match(said, ["42"] * 3) == [1.0, 0.0, 0.0]
    assert rewards.contains(said, ["42"] * 3) == [1.0, 1.0, 0.0]
    assert rewards.contains(said, ["42", None, "42"]) == [1.0, None, 0.0]


@pytest.mark.parametrize("backend", list(BACKENDS))
def test_a_resumed_training_is_the_same_to_the_last_bit(place: Place, backend: str) -> None:
    """Straight through, against: the folder as a kill after step 3 leaves it, a torn save of step
    4, and a restart."""
    settings = {"max_steps": 5}
    place.train(backend, hyperparameters=settings)
    shutil.copytree(place.folder / "run", place.folder / "again")
    output = place.folder / "again" / "checkpoints"
    for left in ("checkpoint-5", "adapter"):
        shutil.rmtree(output / left)
    os.unlink(output / "checkpoint-4" / MARK)
    code, result = place.train(backend, name="again", attempt=2, hyperparameters=settings)
    assert (code, result["metrics"]["steps"]) == (0, 5)
    assert (result["extra"]["resumed_at_step"], result["extra"]["resume"]) == (3, "exact")
    resumed = [row for row in place.rows("again") if row["event"] == "attempt"]
    assert [row["resumed_at"] for row in resumed] == [3]
    require_same(place.folder / "run", place.folder / "again")
    first = json.loads((place.folder / "run" / "checkpoints" / "result.json").read_text())
    for name in ("tokens_seen", "steps", "final_loss"):
        assert result["metrics"][name] == first["metrics"][name]


def test_what_earlier_attempts_took_counts_against_the_budget(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 250 tokens 100 went into steps that were lost: what is left is less than what a first
    attempt would have."""
    budget = {"minutes": 10.0, "tokens": 250}
    _, alone = place.train("trl-sft", budget=budget)
    monkeypatch.setenv(variables.SPENT_TOKENS, "100")
    code, result = place.train("trl-sft", name="later", attempt=2, budget=budget)
    assert (code, result["extra"]["stopped_by_budget"], result["extra"]["repeated_tokens"]) == (
        0,
        "tokens",
        100,
    )
    assert result["metrics"]["tokens_seen"] <= 150 < alone["metrics"]["tokens_seen"]
    monkeypatch.setenv(variables.SPENT_SECONDS, "600")
    _, result = place.train(
        "trl-sft", name="late", attempt=2, budget={"minutes": 10.0, "tokens": 10_000}
    )
    assert result["status"] == "failed"
    assert "minutes" in result["failure"]


@pytest.mark.parametrize("backend", ["trl-orpo", "trl-dpo", "trl-sft"])
def test_conversations_train_as_their_texts_do(place: Place, backend: str) -> None:
    place.train(backend, name="texts")
    talks = [
        {
            "id": row["id"],
            "chosen": [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["chosen"]},
            ],
            "rejected": [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["rejected"]},
            ],
        }
        for row in preferences(12)
    ]
    place.data = write_rows(place.folder / "rows.jsonl", talks)
    code, result = place.train(backend, name="talks")
    assert (code, result["rows_used"]) == (0, 12)
    assert numbers(place.folder / "texts") == numbers(place.folder / "talks")


def test_cut_answers_are_counted_by_kind(place: Place) -> None:
    rows = preferences(6)
    rows[0]["chosen"] = rows[1]["rejected"] = rows[2]["rejected"] = "x" * 100
    place.data = write_rows(place.folder / "rows.jsonl", rows)
    _, result = place.train("trl-dpo")
    assert (result["extra"]["cut_chosen"], result["extra"]["cut_rejected"]) == (1, 2)


@pytest.mark.parametrize("backend", ["trl-orpo", "trl-dpo", "trl-sft"])
def test_a_micro_batch_that_memory_holds_trains_the_same_step(
    place: Place, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """Of a step of four rows a memory that holds two trains two twice: the losses are those of one
    row four times, and of all four."""
    write_rows(place.data, [{**row, "chosen": "ab", "rejected": "cd"} for row in preferences(9)])
    tried: list[int] = []

    def holds_two(make: Any) -> bool:
        trainer = make()
        trainer.train()
        tried.append(trainer.args.per_device_train_batch_size)
        return tried[-1] <= 2

    numbers = {"batch_size": 1, "gradient_accumulation": 4, "lora_dropout": 0.0, "max_steps": 3}
    _, one = place.train(backend, name="one", hyperparameters=numbers)
    monkeypatch.setattr(
        program, "fitted", lambda task, build: micro_batch.fitted(task, build, holds_two)
    )
    code, two = place.train(backend, name="two", hyperparameters=numbers)
    assert (code, tried) == (0, [4, 2])
    assert two["extra"]["micro_batch"] == two["extra"]["micro_batches"] == 2
    assert two["metrics"]["tokens_seen"] == one["metrics"]["tokens_seen"]
    losses_of = [
        [row["metrics"]["loss"] for row in place.rows(name) if "loss" in row.get("metrics", {})]
        for name in ("one", "two")
    ]
    assert len(losses_of[0]) == 3
    assert losses_of[1] == pytest.approx(losses_of[0], rel=1e-5)
