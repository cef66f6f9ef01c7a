"""What every trainer program does around its training: reads, hashes, logs, keeps to the budget,
tells the result.

The result is one JSON object on standard output and in DIR/result.json; all else goes to standard
error. Every hash and count in it is computed here from what was read; nothing is copied from the
specification but names.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import set_seed

from harness.artifacts.content import hash_path
from harness.clock import Clock, SystemClock
from harness.errors import HarnessError, RunError, UsageError
from harness.files import atomic_write, pretty_json
from harness.run_logger import RunLogger
from harness.training.hf_callback import RunLoggerCallback
from harness.training.language_model import CPU_TIER, four_bit, load_tokenizer
from harness.training.stdout import answers_only
from harness.training.trainers.budget import Budget, Spent, newest_checkpoint, step_of
from harness.training.trainers.job import Job
from harness.training.trainers.spec import Spec, read_rows

RESULT = "result.json"
Build = Callable[[Job], Any]
"""Makes the library's trainer, ready for `train()`."""


def process_start(clock: Clock) -> float:
    """The clock's monotonic reading when this process began: imports take time, too."""
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
    process. A failure of the training is told as a failed result before it is raised again, so that
    its traceback is in the log.
    """
    parser = argparse.ArgumentParser(prog=f"harness.training.trainers.{backend.replace('-', '_')}")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    given = parser.parse_args(arguments)
    clock = SystemClock()
    began = process_start(clock) if began is None else began
    with answers_only() as answer:
        try:
            spec = Spec.read(given.spec)
        except (OSError, ValueError, HarnessError) as error:
            sys.stderr.write(f"{given.spec}: {error}\n")
            return 2
        told = blank_result(spec)

        def tell() -> None:
            data = pretty_json(told)
            atomic_write(given.output_dir / RESULT, data)
            answer.write(data.encode())

        try:
            _require(spec, backend, mode)
            with RunLogger.from_environment() as log:
                _train(spec, given.output_dir, log, clock, began, texts, build, told)
        except BaseException as error:
            told |= {"status": "failed", "artifact": None, "failure": one_line(error)}
            told["metrics"]["wall_clock_minutes"] = (clock.monotonic() - began) / 60
            tell()
            if isinstance(error, HarnessError):
                sys.stderr.write(f"{error}\n")
                return 1
            raise
        tell()
    return 0


def blank_result(spec: Spec) -> dict[str, Any]:
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


def one_line(error: BaseException) -> str:
    text = error.message if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:500]


def _require(spec: Spec, backend: str, mode: str) -> None:
    for name, mine in (("backend", backend), ("mode", mode)):
        if spec[name] != mine:
            raise UsageError(
                f"The specification's {name} is {spec[name]}; this trainer's is {mine}.",
                hint="Start the trainer that belongs to the specification.",
                code="wrong_trainer",
            )


def _train(
    spec: Spec,
    output: Path,
    log: RunLogger,
    clock: Clock,
    began: float,
    texts: Sequence[str],
    build: Build,
    told: dict[str, Any],
) -> None:
    rows = read_rows(Path(spec["dataset"]["path"]), *texts)
    told |= {"dataset_sha256": rows.sha256, "dataset_rows": len(rows.rows)}
    told["base_model_sha256"] = hash_path(spec.model_path)
    set_seed(spec.seed)  # before the adapter's random start
    side = "left" if spec["mode"] == "grpo" else "right"
    tokenizer = load_tokenizer(spec.model_path, padding_side=side)
    job = Job(
        spec=spec, output=output, log=log, clock=clock, began=began, tokenizer=tokenizer, rows=rows
    )
    try:
        trainer = build(job)
    finally:
        told |= {"rows_used": job.used, "rows_refused": dict(job.refused)}
    budget = _budgeted(job, trainer, told)
    _go(job, trainer, budget, told)
    if not math.isfinite(told["metrics"]["final_loss"]):
        raise RunError(
            f"The loss at the last step is {told['metrics']['final_loss']}.",
            hint="Lower the learning rate, or read what the detectors say of this run.",
            code="loss_not_finite",
        )
    told["artifact"] = save_adapter(job, trainer.model, budget.tokens, trainer.state.global_step)
    told["extra"] = job.extra | _card(job)
    told["status"] = "completed"


def _budgeted(job: Job, trainer: Any, told: Mapping[str, Any]) -> Budget:
    limit = job.spec["budget"]
    identity = {
        name: told[name] for name in ("config_fingerprint", "dataset_sha256", "base_model_sha256")
    }
    budget = Budget(
        tokens=int(limit["tokens"]),
        minutes=float(limit["minutes"]),
        clock=job.clock,
        began=job.began,
        identity=identity,
        spent=Spent.from_environment(os.environ),
    )
    budget.watch(trainer.model)
    trainer.add_callback(budget)  # first: its number stands in the rows that the next one writes
    trainer.add_callback(RunLoggerCallback(job.log, clock=job.clock))
    return budget


def _go(job: Job, trainer: Any, budget: Budget, told: dict[str, Any]) -> None:
    """Train, from the newest whole checkpoint where this run goes on, and fill in the metrics."""
    identity = {
        name: told[name] for name in ("config_fingerprint", "dataset_sha256", "base_model_sha256")
    }
    found = newest_checkpoint(job.output, identity) if job.log.attempt > 1 else None
    if found is not None:
        sys.stderr.write(f"going on from {found.name}\n")
        budget.take_up(found)
        job.extra |= {"resumed_at_step": step_of(found), "resume": _exactness(job)}
    if budget.repeated:
        job.extra["repeated_tokens"] = budget.repeated
    before = budget.tokens
    trained = trainer.train(resume_from_checkpoint=None if found is None else str(found))
    job.extra["tokens_per_second"] = (budget.tokens - before) / max(
        trained.metrics["train_runtime"], 1e-9
    )
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    told["metrics"] = {
        "wall_clock_minutes": budget.seconds / 60,
        "final_loss": float(losses[-1]) if losses else None,
        "tokens_seen": budget.tokens,
        "steps": trainer.state.global_step,
    }
    if budget.stopped:
        job.extra["stopped_by_budget"] = budget.stopped
    if not losses:
        raise RunError(
            f"The budget ({budget.stopped}) did not suffice for one step.",
            hint="Raise the budget, or make batch, accumulation or length smaller.",
            code="budget_too_small",
        )


def _exactness(job: Job) -> str:
    """Whether what is gone on with is, to the last bit, what an unbroken training would have
    made."""
    if job.spec["hardware_tier"] != CPU_TIER:
        return "not exact: a GPU's kernels add in no fixed order"
    threads = torch.get_num_threads()
    return (
        "exact" if threads == 1 else f"not exact: {threads} threads; one is what it was proved with"
    )


def save_adapter(job: Job, model: Any, tokens: int, steps: int) -> dict[str, str]:
    """Write the adapter as safetensors, named after the model instead of a folder of this
    machine."""
    expected = job.spec["artifact"]
    target = job.output / expected["path"]
    unwrapped = getattr(model, "module", model)
    for config in unwrapped.peft_config.values():
        config.base_model_name_or_path = job.spec["model"]["id"]
    if tokens <= 0 or steps <= 0:
        raise RunError(
            "No token was seen, so nothing was trained.",
            hint="Read stderr.log.",
            code="nothing_trained",
        )
    unwrapped.save_pretrained(target, safe_serialization=True, save_embedding_layers=False)
    job.log.checkpoint_saved(target, epoch=steps - 1, final=True)
    return {"path": expected["path"], "format": "peft-adapter"}


def _card(job: Job) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    if torch.cuda.is_available() and job.spec["hardware_tier"] != CPU_TIER:
        found["card"] = torch.cuda.get_device_name(0)
        found["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        found["base_weights"] = (
            "nf4" if four_bit(job.spec["hardware_tier"]) else str(job.spec["dtype"])
        )
    return found
