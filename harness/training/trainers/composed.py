"""Backend `composed`: reward (GRPO), self-distillation and DPO in one loss, by TRL, with LoRA.

The specification's `composition` says what each channel does and weighs. The hyperparameter `beta`
is DPO's.
"""

import sys
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import GRPOConfig
from trl.trainer.utils import add_fused_lm_head

from harness.artifacts.content import hash_path
from harness.domain.composition import (
    Composition,
    Reference,
    Teacher,
    composition_from,
)
from harness.domain.row_forms import flat
from harness.errors import (
    RunError,
    UsageError,
)
from harness.training import processes
from harness.training.chat import (
    RowRefusedError,
    messages,
    pair,
    prompt_ids,
)
from harness.training.composed_trainer import (
    Channels,
    ComposedTrainer,
    one_column,
)
from harness.training.language_model import load_model
from harness.training.references import (
    AdapterOff,
    FrozenCopy,
    Pair,
    Precomputed,
)
from harness.training.rewards import (
    nothing,
    reward_functions,
)
from harness.training.teachers import (
    OtherTeacher,
    SelfTeacher,
    head_of,
)
from harness.training.tools import (
    actions_of,
    asked_with,
    environment_class,
    tool_functions,
)
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask
from harness.training.trainers.trl_grpo import group_size

_SCALED = (
    "final_logit_softcapping",
    "logit_scale",
    "output_multiplier",
    "lm_head_multiplier",
    "logits_scaling",
)
"""Settings of models whose logits are more than hidden states times the output head."""


def build(task: TrainingTask) -> ComposedTrainer:
    composition = composition_from(task.spec["composition"])
    generated = max(1, min(composition.rollouts.max_tokens, task.spec.max_length // 2))
    pairs: list[Pair] = []
    kept = task.output / "tools"
    tools = tool_functions(composition.rollouts.tools, task.tokenizer, kept)
    environment = environment_class(composition.rollouts.environment, task.tokenizer, kept)
    told = [*tools, *actions_of(environment)]

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        recorded = bool(flat(row.get("chosen")) and flat(row.get("rejected")))
        both = None
        if composition.dpo.used and recorded:
            texts = row["prompt"], row["chosen"], row["rejected"]
            both = pair(task.tokenizer, *texts, limit=task.spec.max_length)
        if composition.rolls_out:
            asked = prompt_ids(task.tokenizer, asked_with(row["prompt"], told))
            if len(asked) + generated > task.spec.max_length:
                raise RowRefusedError("prompt_too_long")
        elif both is None:
            raise RowRefusedError("no_pair")
        pairs.extend([] if both is None else [both])
        return {**row, "prompt": messages(row["prompt"])}  # a reward may ask for any key

    rows = task.each(encode)
    model = task.model()
    _require_plain_head(model)
    trainer = ComposedTrainer(
        model=model,
        reward_funcs=_rewards(task, composition),
        args=GRPOConfig(**_arguments(task, composition, generated)),
        train_dataset=Dataset.from_list(one_column(_same_keys(rows))),
        processing_class=task.tokenizer,
        peft_config=task.lora(),
        tools=tools,
        environment_factory=environment,
    )
    trainer.use(
        Channels(
            composition=composition,
            pairs=pairs,
            reference=_reference(task, composition, trainer, pairs),
            teacher=_teacher(task, composition, trainer),
            longest=task.spec.max_length,
            beta=task.spec.hyperparameters["beta"],
            pairs_at_once=_pairs_at_once(task, composition),
        )
    )
    return trainer


def _pairs_at_once(task: TrainingTask, composition: Composition) -> int:
    """Of one process. Where its micro-batches have fewer rows they have fewer pairs."""
    if not composition.dpo.used:
        return 1
    numbers = task.spec.hyperparameters
    rows, _ = processes.shares(numbers)
    pairs = composition.dpo.pairs or numbers["batch_size"]
    if pairs * rows % numbers["batch_size"]:
        raise UsageError(
            f"dpo.pairs is {pairs}, which {processes.count()} processes cannot share.",
            hint="Make gradient_accumulation or dpo.pairs a multiple of their number.",
            code="ranks_do_not_divide",
        )
    return int(pairs * rows // numbers["batch_size"])


def _same_keys(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every row with every key: a reward function gets those of the first row."""
    names = {name: None for row in rows for name in row} | {"hint": None, "answer": None}
    return [names | row for row in rows]


def _rewards(task: TrainingTask, composition: Composition) -> list[Any]:
    if not composition.needs_rewards:
        return [nothing]
    return list(reward_functions(composition.reward.functions, task.output / "rewards"))


def _arguments(task: TrainingTask, composition: Composition, generated: int) -> dict[str, Any]:
    numbers, rollouts = task.spec.hyperparameters, composition.rollouts
    rows = numbers["batch_size"] * numbers["gradient_accumulation"]
    settings = task.arguments(
        beta=composition.reward.kl,
        num_generations=rollouts.generations or group_size(rows),
        max_completion_length=generated,
        temperature=1.0,
        num_iterations=rollouts.iterations,
        max_tool_calling_iterations=rollouts.tool_turns,
        remove_unused_columns=False,
    )
    if composition.needs_rewards:
        settings["reward_weights"] = list(composition.reward.function_weights)
    # Rollouts are not saved: a checkpoint stands where new ones begin.
    every = settings["save_steps"]
    settings["save_steps"] = -(-every // rollouts.iterations) * rollouts.iterations
    return settings


def _reference(
    task: TrainingTask, composition: Composition, trainer: ComposedTrainer, pairs: list[Pair]
) -> AdapterOff | FrozenCopy | Precomputed | None:
    if not composition.dpo.used:
        return None
    if not pairs:
        raise UsageError(
            "No row has chosen and rejected, and the weight of dpo is above 0.",
            hint="Add pairs to the dataset, or set the weight to 0.",
            code="channel_without_rows",
        )
    pad = task.tokenizer.pad_token_id
    if composition.dpo.reference == Reference.FROZEN_COPY:
        copy = task.model().eval().requires_grad_(False)
        add_fused_lm_head(copy, temperature=1.0)
        return FrozenCopy(copy=copy.to(trainer.model.device), pairs=pairs, pad=pad)
    off = AdapterOff(
        model=lambda: trainer.accelerator.unwrap_model(trainer.model), pairs=pairs, pad=pad
    )
    if composition.dpo.reference == Reference.ADAPTER_OFF:
        return off
    table = Precomputed(
        source=off,
        path=task.output / "reference_logps.json",
        base_sha256=hash_path(task.spec.model_path),
    )
    table.ready()
    task.extra["reference_sha256"] = table.sha256
    return table


def _teacher(
    task: TrainingTask, composition: Composition, trainer: ComposedTrainer
) -> SelfTeacher | OtherTeacher | None:
    distillation = composition.distillation
    if not distillation.used:
        return None
    if composition.teaches_itself:
        kind = Teacher(distillation.teacher)
        return SelfTeacher(kind, trainer.model, distillation.ema_rate)
    other = task.spec["teacher"]
    if (now := hash_path(Path(other["path"]))) != other["sha256"]:
        raise RunError(
            f"The weights of the teacher {other['id']} have the hash {now[:12]}; expected"
            f" {other['sha256'][:12]}.",
            hint="Put them back, or make a new specification.",
            code="teacher_changed",
        )
    model = load_model(
        Path(other["path"]), dtype=task.spec["dtype"], tier=task.spec["hardware_tier"]
    )
    _require_plain_head(model)
    words = [len(head_of(one)) for one in (model, trainer.model)]
    if words[0] != words[1]:
        raise UsageError(
            f"The teacher {other['id']} has {words[0]} words, the student {words[1]}.",
            hint="Take a teacher with the student's tokenizer.",
            code="vocabulary_differs",
        )
    return OtherTeacher(task.placed(model.to(trainer.model.device)))


def _require_plain_head(model: Any) -> None:
    """Raises UsageError for a model whose logits are not hidden states times the head's weight."""
    config = model.config.get_text_config()
    scaled = [name for name in _SCALED if getattr(config, name, None) not in (None, 1.0)]
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        scaled.append("bias")
    if scaled:
        raise UsageError(
            f"The output head of this model is not plain: it has {', '.join(scaled)}.",
            hint="Take another model, or another backend.",
            code="head_not_plain",
        )


if __name__ == "__main__":
    sys.exit(run("composed", "composed", ("prompt",), build))
