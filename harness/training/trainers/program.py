"""What every trainer program does around its training: reads, hashes, logs, keeps the budget,
reports the result.

The result is one JSON object on standard output and in DIR/result.json; all else goes to standard
error. Its hashes and counts are computed from what was read, never copied.
"""

import argparse
import math
import os
import sys
from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import set_seed

from harness.artifacts.content import hash_path
from harness.clock import (
    Clock,
    SystemClock,
)
from harness.domain.plain_text import one_line
from harness.errors import (
    HarnessError,
    RunError,
    UsageError,
)
from harness.files import (
    atomic_write,
    pretty_json,
)
from harness.run_logger import RunLogger
from harness.training import processes
from harness.training.chat import read_rows
from harness.training.language_model import (
    CPU_TIER,
    load_tokenizer,
)
from harness.training.model_program import answers_only
from harness.training.sharding import leave_to_sharding
from harness.training.trainers.budget import (
    SpentBudget,
    TrainingBudget,
    newest_checkpoint,
    step_of,
)
from harness.training.trainers.micro_batch import fitted
from harness.training.trainers.task import (
    TrainerSpec,
    TrainingTask,
)
from harness.training.transformers_callback import TransformersCallback

RESULT = "result.json"
GENERATING = ("grpo", "composed")
"""Modes whose prompts are padded at the left: what is generated follows them directly."""
Build = Callable[[TrainingTask], Any]
"""Makes the library's trainer, ready for `train()`."""


def process_start(clock: Clock) -> float:
    """The clock's monotonic reading when this process began; imports take time, too."""
    age = clock.now().timestamp() - float(psutil.Process().create_time())
    return clock.monotonic() - age


def run(
    backend: str,
    mode: str,
    texts: Sequence[str],
    build: Build,
    arguments: Sequence[str] | None = None,
    *,
    began: float | None = None,
) -> int:
    """The program `--spec FILE --output-dir DIR` of one backend; returns its exit code.

    The budget's minutes count from `began`, a monotonic reading; by default from the start of this
    process. A failure is reported as a failed result, then raised again for its traceback.
    """
    parser = argparse.ArgumentParser(prog=f"harness.training.trainers.{backend.replace('-', '_')}")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    options = parser.parse_args(arguments)
    clock = SystemClock()
    began = process_start(clock) if began is None else began
    with answers_only() as answer:
        try:
            spec = TrainerSpec.read(options.spec)
        except (OSError, ValueError, HarnessError) as error:
            sys.stderr.write(f"{options.spec}: {error}\n")
            return 2
        result = blank_result(spec)

        def report() -> None:
            if processes.rank() > 0:
                return
            data = pretty_json(result)
            atomic_write(options.output_dir / RESULT, data)
            answer.write(data.encode())

        try:
            _require(spec, backend, mode)
            with RunLogger.from_environment() as log:
                _train(spec, options.output_dir, log, clock, began, texts, build, result)
        except BaseException as error:
            result |= {"status": "failed", "artifact": None, "failure": _in_short(error)}
            result["metrics"]["wall_clock_minutes"] = (clock.monotonic() - began) / 60
            report()
            if isinstance(error, HarnessError):
                sys.stderr.write(f"{error}\n")
                return 1
            raise
        report()
    processes.stop()
    return 0


def blank_result(spec: TrainerSpec) -> dict[str, Any]:
    """A result in which nothing has been computed yet."""
    names = ("experiment", "run", "backend", "mode", "profile", "seed", "dtype")
    return {
        "schema": 1,
        **{name: spec[name] for name in names},
        "model": spec["model"]["id"],
        "status": "failed",
        "spec_sha256": spec.sha256,
        "config_fingerprint": spec.config_fingerprint(),
        "dataset_sha256": None,
        "dataset_rows": None,
        "rows_used": None,
        "rows_refused": {},
        "base_model_sha256": None,
        "metrics": {
            "wall_clock_minutes": None,
            "final_loss": None,
            "tokens_seen": None,
            "steps": None,
        },
        "artifact": None,
        "failure": None,
        "extra": {},
    }


def _in_short(error: BaseException) -> str:
    text = error.message if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    return one_line(text, 500)


def _require(spec: TrainerSpec, backend: str, mode: str) -> None:
    for name, mine in (("backend", backend), ("mode", mode)):
        if spec[name] != mine:
            raise UsageError(
                f"The specification's {name} is {spec[name]}; this trainer's is {mine}.",
                hint="Start the trainer that the specification names.",
                code="wrong_trainer",
            )


def _train(
    spec: TrainerSpec,
    output: Path,
    log: RunLogger,
    clock: Clock,
    began: float,
    texts: Sequence[str],
    build: Build,
    result: dict[str, Any],
) -> None:
    processes.start(cpu=spec["hardware_tier"] == CPU_TIER)
    rows = read_rows(Path(spec["dataset"]["path"]), *texts)
    result |= {"dataset_sha256": rows.sha256, "dataset_rows": len(rows.rows)}
    result["base_model_sha256"] = hash_path(spec.model_path)
    set_seed(spec.seed)  # before LoRA's random initialisation
    side = "left" if spec["mode"] in GENERATING else "right"
    tokenizer = load_tokenizer(spec.model_path, padding_side=side)
    task = TrainingTask(
        spec=spec, output=output, log=log, clock=clock, began=began, tokenizer=tokenizer, rows=rows
    )
    try:
        trainer = fitted(task, build)
    finally:
        result |= {"rows_used": task.used, "rows_refused": dict(task.refused)}
    leave_to_sharding(trainer.model)
    hashes = ("config_fingerprint", "dataset_sha256", "base_model_sha256")
    identity = {name: result[name] for name in hashes}
    budget = _add_callbacks(task, trainer, identity)
    _run_trainer(task, trainer, budget, identity, result)
    if not math.isfinite(result["metrics"]["final_loss"]):
        raise RunError(
            f"The loss at the last step is {result['metrics']['final_loss']}.",
            hint="Lower the learning rate, or read the detectors' findings on this run.",
            code="loss_not_finite",
        )
    result["artifact"] = save_adapter(
        task, trainer.model, budget.tokens, trainer.state.global_step
    )
    result["extra"] = task.extra | _cards(task)
    result["status"] = "completed"


def _add_callbacks(
    task: TrainingTask, trainer: Any, identity: Mapping[str, str]
) -> TrainingBudget:
    limit = task.spec["budget"]
    budget = TrainingBudget(
        tokens=int(limit["tokens"]),
        minutes=float(limit["minutes"]),
        clock=task.clock,
        began=task.began,
        identity=identity,
        spent=SpentBudget.from_environment(os.environ),
    )
    budget.watch(trainer.model)
    trainer.add_callback(budget)  # first: it adds tokens_seen to the rows that the next one writes
    trainer.add_callback(TransformersCallback(task.log, clock=task.clock))
    return budget


def _run_trainer(
    task: TrainingTask,
    trainer: Any,
    budget: TrainingBudget,
    identity: Mapping[str, str],
    result: dict[str, Any],
) -> None:
    """Train, in a later attempt from the newest complete checkpoint, and fill in the metrics."""
    checkpoint = newest_checkpoint(task.output, identity) if task.log.attempt > 1 else None
    if checkpoint is not None:
        sys.stderr.write(f"resuming from {checkpoint.name}\n")
        budget.take_up(checkpoint)
        task.extra |= {"resumed_at_step": step_of(checkpoint), "resume": _exactness(task)}
    if budget.repeated:
        task.extra["repeated_tokens"] = budget.repeated
    before = budget.tokens
    trained = trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    seconds = max(trained.metrics["train_runtime"], 1e-9)
    task.extra["tokens_per_second"] = (budget.tokens - before) / seconds
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    result["metrics"] = {
        "wall_clock_minutes": budget.seconds / 60,
        "final_loss": float(losses[-1]) if losses else None,
        "tokens_seen": budget.tokens,
        "steps": trainer.state.global_step,
    }
    if budget.stopped:
        task.extra["stopped_by_budget"] = budget.stopped
    if not losses:
        raise RunError(
            f"The budget ({budget.stopped}) did not suffice for one step.",
            hint="Raise the budget, or make batch, accumulation or length smaller.",
            code="budget_too_small",
        )


def _exactness(task: TrainingTask) -> str:
    """Whether the resumed training gives, to the last bit, what an unbroken one would have."""
    if task.spec["hardware_tier"] != CPU_TIER:
        return "not exact: a GPU's kernels add in no fixed order"
    threads = torch.get_num_threads()
    return "exact" if threads == 1 else f"not exact: {threads} threads; exact only with one"


def save_adapter(task: TrainingTask, model: Any, tokens: int, steps: int) -> dict[str, str]:
    """Write the adapter as safetensors."""
    expected = task.spec["artifact"]
    target = task.output / expected["path"]
    unwrapped = getattr(model, "module", model)
    # The model's id, not its folder: a path of this machine would change the adapter's hash.
    for config in unwrapped.peft_config.values():
        config.base_model_name_or_path = task.spec["model"]["id"]
    if tokens <= 0 or steps <= 0:
        raise RunError(
            "No token was seen, so nothing was trained.",
            hint="Read stderr.log.",
            code="nothing_trained",
        )
    if processes.rank() == 0:
        unwrapped.save_pretrained(target, safe_serialization=True, save_embedding_layers=False)
    processes.wait()
    task.log.checkpoint_saved(target, epoch=steps - 1, final=True)
    return {"path": expected["path"], "format": "peft-adapter"}


def _cards(task: TrainingTask) -> dict[str, float | str]:
    tier, ranks = task.spec["hardware_tier"], processes.count()
    several: dict[str, float | str] = {}
    if ranks > 1:
        several = {"ranks": ranks, "base_model": "sharded" if task.shards else "whole"}
    if tier == CPU_TIER or not torch.cuda.is_available():
        return several
    return several | {
        "card": torch.cuda.get_device_name(0),
        "peak_memory_bytes": torch.cuda.max_memory_allocated(),
        "base_weights": str(task.spec["dtype"]),
    }
