"""Post-training by two processes that share each step: its figures are those of one process."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from harness.domain.composition import (
    Composition,
    DistillationChannel,
    FrozenFunction,
    PreferenceChannel,
    RewardChannel,
    Rollouts,
)
from harness.files import sha256_bytes
from tests.training.tiny_model import (
    environment,
    preferences,
    save_tiny_model,
    specification,
    write_rows,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
SOURCE = """def length(completions, **more):
    return [float(len(one[0]["content"])) for one in completions]
"""
LENGTH = FrozenFunction(
    name="length", file="mine.py", sha256=sha256_bytes(SOURCE.encode()), source=SOURCE
)
ALIKE = ("loss", "grad_norm", "reward", "reward_std", "tokens_seen")
WITHIN = 2e-4
"""Relative; sums of float32 in another order."""


def composition() -> Composition:
    return Composition(
        reward=RewardChannel(functions=(LENGTH,), function_weights=(1.0,)),
        distillation=DistillationChannel(weight=10.0, teacher="ema", success=5.0, ema_rate=0.3),
        dpo=PreferenceChannel(pairs=2),
        rollouts=Rollouts(generations=4, max_tokens=16),
        gradients_every=1,
    )


def trained(folder: Path, ranks: int, *, shard: bool = False, attempt: int = 1) -> Path:
    """The run's folder."""
    run = folder / "run"
    if attempt == 1:
        model = save_tiny_model(folder / "model")
        # Some rows have no hint: a process may have nothing to teach.
        rows = [row if n % 2 else row | {"hint": ""} for n, row in enumerate(preferences(8))]
        data = write_rows(folder / "rows.jsonl", rows)
        numbers = {"lora_dropout": 0.0, "max_seq_length": 128, "batch_size": 4}
        spec = specification(model, data, "composed", "composed", hyperparameters=numbers)
        (run / "checkpoints").mkdir(parents=True)
        spec["composition"] = composition().plain()
        (run / "spec.json").write_text(json.dumps(spec))
    program = ["-m", "tests.training.told_rollouts", "--spec", str(run / "spec.json")]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    words = [*(launch if ranks > 1 else []), *program, "--output-dir", str(run / "checkpoints")]
    root = str(Path(__file__).resolve().parents[2])
    more = {"PYTHONPATH": root, "HARNESS_SHARD": str(int(shard))}
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=root,
        env=environment(run, attempt) | more,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    json.loads(done.stdout)  # the first process alone answers
    return run


def figures(run: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [
        row["metrics"] for row in rows if row["event"] == "epoch" and "loss" in row["metrics"]
    ]
    return [
        {key: step[key] for key in sorted(step) if key in ALIKE or key.startswith("channel/")}
        for step in steps
    ]


def extra(run: Path) -> dict[str, Any]:
    result = json.loads((run / "checkpoints/result.json").read_text())
    assert result["status"] == "completed"
    told: dict[str, Any] = result["extra"]
    return told


def test_two_processes_have_the_figures_of_one_and_go_on(tmp_path: Path) -> None:
    alone = figures(trained(tmp_path / "one", 1))
    assert len(alone) == 4
    names = {"channel/cosine/distillation_reward", "channel/dpo/grad_norm"}
    assert names | {f"channel/{one}/loss" for one in ("reward", "distillation", "dpo")} <= set(
        alone[-1]
    )
    for shard in (False, True):
        run = trained(tmp_path / f"two-{shard}", 2, shard=shard)
        assert extra(run)["base_model"] == ("sharded" if shard else "whole")
        for own, theirs in zip(alone, figures(run), strict=True):
            assert theirs == pytest.approx(own, rel=WITHIN, abs=1e-6)
    whole = figures(run)  # the sharded one
    for step in (3, 4):
        shutil.rmtree(run / f"checkpoints/checkpoint-{step}")
    for name in ("metrics.jsonl", "checkpoints/result.json"):
        (run / name).unlink()
    trained(tmp_path / "two-True", 2, shard=True, attempt=2)
    assert extra(run)["resumed_at_step"] == 2
    for own, before in zip(figures(run), whole[2:], strict=True):
        assert own == pytest.approx(before, rel=WITHIN, abs=1e-6)
