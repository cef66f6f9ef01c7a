"""A GRPO trainer with two more channels: self-distillation on its rollouts, and DPO on recorded
pairs.

    loss = w_reward L_GRPO + w_distillation L_distillation + w_dpo L_DPO

Student and policy share one forward pass. Each channel's part of a micro-batch is its share of the
whole step's mean, so that the parts of a step add up however it is split. A channel whose weight is
0 at a step computes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from harness.domain.composition import Average, Composition
from harness.training import processes
from harness.training.chat import prompt_ids
from harness.training.collators import (
    before_completions,
    learned,
    predicting,
    rows_taught,
)
from harness.training.divergences import (
    Divergence,
    capped_ratio,
    distillation_loss,
)
from harness.training.gradients import ChannelGradients
from harness.training.loader import order_of
from harness.training.losses import (
    preference_margins,
    require_same_start,
)
from harness.training.references import (
    AdapterOff,
    FrozenCopy,
    Pair,
    Precomputed,
    pair_logps,
)
from harness.training.step_figures import Kind, StepFigures, StepLoss
from harness.training.teachers import (
    OtherTeacher,
    SelfTeacher,
    backbone_of,
    contexts,
    head_of,
    privileged,
)
from harness.training.tools import asked_with, require_one_start, require_room

Inputs = dict[str, Any]
_OF_REWARDS = ("reward", "reward_std", "frac_reward_zero_std")


@dataclass(frozen=True, kw_only=True)
class Channels:
    """What the channels need beside the policy."""

    composition: Composition
    pairs: Sequence[Pair] = ()
    reference: AdapterOff | FrozenCopy | Precomputed | None = None
    teacher: SelfTeacher | OtherTeacher | None = None
    longest: int = 2048
    """Tokens of a teacher's prompt with its completion."""
    beta: float = 0.1
    """Of DPO."""
    pairs_at_once: int = 1
    """Of a micro-batch."""


class _FollowStudent(TrainerCallback):  # type: ignore[misc] # the library is not followed
    def __init__(self, teacher: SelfTeacher | OtherTeacher) -> None:
        self._teacher = teacher

    def on_step_end(self, *_words: Any, **_more: Any) -> None:
        self._teacher.follow()


class ComposedTrainer(GRPOTrainer):  # type: ignore[misc] # the library is not followed
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.channels: Channels | None = None
        self._states: torch.Tensor | None = None
        self._rewards: torch.Tensor | None = None
        self._logps: torch.Tensor | None = None
        self._started = False
        self._figures, self._step_loss = StepFigures(), StepLoss()
        backbone_of(self.model).register_forward_hook(self._keep_states)

    def use(self, channels: Channels) -> None:
        """Must be called once, before training: teacher and reference need the adapted model."""
        self.channels = channels
        distillation = channels.composition.distillation
        self._divergence = Divergence(
            objective=distillation.objective,
            beta=distillation.beta,
            temperature=distillation.temperature,
            clip=distillation.clip,
            top_k=distillation.top_k,
            tail=distillation.tail,
        )
        self._gradients = ChannelGradients(
            [one for one in self.model.parameters() if one.requires_grad]
        )
        if channels.teacher is not None:
            self.add_callback(_FollowStudent(channels.teacher))

    # Rollouts

    def _prepare_inputs(self, generation_batch: Any) -> Inputs:
        weights = self._weights()
        if self.model.training and not (weights["reward"] or weights["distillation"]):
            return {}  # no rollout is needed
        rows = [json.loads(one["prompt"]) for one in generation_batch]
        inputs: Inputs = super()._prepare_inputs(rows)
        return inputs

    def _generate(self, prompts: Any) -> tuple[Any, ...]:
        self._asked = prompts  # with what an environment added
        if self.environments and self.model.training:
            require_one_start(prompts, self.num_generations)
        out: tuple[Any, ...] = super()._generate(prompts)
        if self.environments and self.channels is not None:
            require_room(out[0], self.max_completion_length, self.channels.longest)
        return out

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        each: torch.Tensor = super()._calculate_rewards(
            inputs, prompts, completions, completion_ids_list
        )
        self._rewards = (each * self.reward_weights.to(each.device)).nansum(1)
        unscored = each.isnan().all(1)
        self._rewards[unscored] = torch.nan  # no success; TRL gives it no advantage
        self._figures.note("channel/reward/unscored", float(unscored.sum()))
        self._completions = completions
        return each

    def _generate_and_score_completions(self, inputs: Any) -> Inputs:
        out: Inputs = super()._generate_and_score_completions(inputs)
        weights = self._weights()
        if not weights["reward"]:
            for name in _OF_REWARDS:  # equal ones are no fault where nothing learns from them
                self._metrics["train"].pop(name, None)
        if self.model.training and self._taught_from_here():
            out |= self._teaching(inputs, out)
        return out

    def _teaching(self, rows: Sequence[Mapping[str, Any]], out: Inputs) -> Inputs:
        """The teacher's inputs, and each token's weight in the step's mean, for all rollouts of a
        step in this process, in the order of `rows`; those of all processes are still grouped by
        prompt."""
        assert self.channels is not None
        assert self._rewards is not None
        distillation = self.channels.composition.distillation
        everywhere = contexts(
            processes.joined([{"hint": row.get("hint")} for row in rows]),
            processes.joined(self._completions),
            self._rewards.tolist(),
            group=self.num_generations,
            kinds=distillation.contexts,
            success=distillation.success,
        )
        first = self.accelerator.process_index * len(rows)
        shown = everywhere[first : first + len(rows)]
        ids, mask = out["completion_ids"], out["completion_mask"]
        own = learned(out)
        room = self.channels.longest - ids.shape[1]
        prompts, taught = [], torch.zeros(len(rows), device=ids.device)
        for place, text in enumerate(shown):
            asked = self._asked[place]
            told = asked if text is None else privileged(asked, text)
            prompt = prompt_ids(self.processing_class, asked_with(told, self.tools))
            fits = len(prompt) <= room
            taught[place] = float(text is not None and fits)
            prompts.append(prompt if fits else prompt[:1])
        teacher_ids, teacher_mask = before_completions(
            prompts, (ids, mask), self.processing_class.pad_token_id
        )
        counted = own * taught.unsqueeze(1)
        if distillation.average == Average.SEQUENCES:
            counted = counted / own.sum(1, keepdim=True).clamp(min=1)
        return {
            "teacher_ids": teacher_ids,
            "teacher_mask": teacher_mask,
            "taught": taught,
            # `iterations` steps learn from the same rollouts, each from all of them.
            "token_weights": counted / processes.mean(counted.sum()).clamp(min=1e-9),
        }

    # Losses

    def _weights(self) -> dict[str, float]:
        assert self.channels is not None
        step, steps = self.state.global_step, self.args.max_steps
        named = self.channels.composition.channels.items()
        return {name: channel.at(step, steps) for name, channel in named}

    def _taught_from_here(self) -> bool:
        """Whether a step that learns from rollouts of now distils."""
        assert self.channels is not None
        distillation = self.channels.composition.distillation
        step = self.state.global_step
        steps = range(step, step + self.num_iterations)
        return any(distillation.at(one, self.args.max_steps) > 0 for one in steps)

    def _keep_states(self, _module: Any, _inputs: Any, out: Any) -> None:
        if torch.is_grad_enabled():
            self._states = out.last_hidden_state

    def _get_per_token_logps_and_entropies(self, *words: Any, **more: Any) -> tuple[Any, ...]:
        out: tuple[Any, ...] = super()._get_per_token_logps_and_entropies(*words, **more)
        if torch.is_grad_enabled():
            self._logps = out[0].detach()
        return out

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """DPO has a backward pass of its own before the rollouts' one: the graphs of both never
        exist at once."""
        model.train()
        weight = self._weights()["dpo"]
        apart = torch.zeros((), device=self.accelerator.device)
        if weight > 0:
            (loss,) = self.channel_losses(model, {}, {"dpo": weight}).values()
            self._tell({"dpo": loss}, {"dpo": weight})
            self.accelerator.backward(weight * loss)
            apart = weight * loss.detach()
        rest: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        self._step_loss.loss += rest + apart
        if self.accelerator.sync_gradients:
            self._step_loss.tell(self.callback_handler.callbacks)
        return rest + apart

    def _compute_loss(self, model: Any, inputs: Inputs) -> torch.Tensor:
        """Of the channels that learn from rollouts; in evaluation, GRPO's."""
        if not self.model.training:
            loss: torch.Tensor = super()._compute_loss(model, inputs)
            return loss
        weights = {name: one for name, one in self._weights().items() if one > 0 and name != "dpo"}
        losses = self.channel_losses(model, inputs, weights)
        self._tell(losses, weights)
        self._step_loss.tokens += int(learned(inputs).sum()) if inputs else 0
        if self.accelerator.sync_gradients:
            measured = self._gradients.told() if self._measures() else {}
            for name, value in (self._figures.told() | measured).items():
                self._metrics["train"][name].append(value)
        first = next(one for one in self.model.parameters() if one.requires_grad)
        # A micro-batch in which nothing fires has a gradient of 0.
        total: torch.Tensor = first.sum() * 0
        for name, loss in losses.items():
            total = total + weights[name] * loss
        return total

    def channel_losses(
        self, model: Any, inputs: Inputs, weights: Mapping[str, float]
    ) -> dict[str, torch.Tensor]:
        """Each channel's own loss, of this micro-batch's share of the step, without its weight."""
        losses = {}
        taught = None
        if "distillation" in weights:
            taught = self._teacher_states(inputs)
            rows = float(inputs["taught"].sum())
            self._figures.note("channel/distillation/rows", rows, Kind.SUM)
        if "reward" in weights:
            losses["reward"] = super()._compute_loss(model, inputs)
            fired = float((inputs["advantages"] != 0).sum())
            self._figures.note("channel/reward/rows", fired, Kind.SUM)
        if taught is not None:
            if "reward" not in weights:
                self._forward(model, inputs)
            losses["distillation"] = self._distillation(inputs, taught)
        if "dpo" in weights:
            losses["dpo"] = self._dpo(model) / self.current_gradient_accumulation_steps
        self._states = self._logps = None
        return losses

    def _teacher_states(self, inputs: Inputs) -> torch.Tensor | None:
        """Of the completions' tokens that count, shape (tokens, width); None where none does."""
        assert self.channels is not None
        assert self.channels.teacher is not None
        rows = rows_taught(inputs)
        if not any(processes.gathered(bool(inputs["taught"].any()))):
            return None
        with self.accelerator.autocast():
            states = self.channels.teacher.hidden(
                inputs["teacher_ids"][rows], inputs["teacher_mask"][rows]
            )
        return predicting(states, learned(inputs)[rows])

    def _forward(self, model: Any, inputs: Inputs) -> None:
        """The student's own pass, where the reward channel makes none."""
        self._get_per_token_logps_and_entropies(
            model,
            torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
            torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
            inputs["completion_ids"].shape[1],
        )

    def _distillation(self, inputs: Inputs, taught: torch.Tensor) -> torch.Tensor:
        assert self.channels is not None
        assert self.channels.teacher is not None
        assert self._states is not None
        rows = rows_taught(inputs)
        mask = learned(inputs)[rows]
        weights = inputs["token_weights"][rows]
        then = inputs.get("old_per_token_logps")
        if then is not None:
            assert self._logps is not None
            cap = self.channels.composition.distillation.ratio_cap
            weights = weights * capped_ratio(self._logps[rows], then[rows], cap)
        kept = mask.bool()
        return distillation_loss(
            (predicting(self._states[rows], mask), head_of(self.model)),
            (taught, self.channels.teacher.head),
            inputs["completion_ids"][rows][kept],
            weights[kept],
            self._divergence,
        )

    def _dpo(self, model: Any) -> torch.Tensor:
        assert self.channels is not None
        assert self.channels.reference is not None
        numbers = self._numbers()
        reference = self.channels.reference.logps(numbers)
        pairs = [self.channels.pairs[one] for one in numbers]
        with self.accelerator.autocast():
            policy = pair_logps(model, pairs, self.processing_class.pad_token_id)
        losses, margins = preference_margins(policy, reference, self.channels.beta)
        loss: torch.Tensor = losses.mean()
        if self.state.global_step == 0 and not self._started:
            self._started = True
            require_same_start(float(loss.detach()))
        self._step_loss.tokens += sum(len(turn.response) for pair in pairs for turn in pair)
        self._figures.note("channel/dpo/rows", len(pairs), Kind.SUM)
        self._figures.note("channel/dpo/margin", float(margins.detach().mean()))
        return loss

    def _numbers(self) -> list[int]:
        """The pairs of this micro-batch, a function of step, process and seed: a resumed training
        takes the same ones."""
        assert self.channels is not None
        total, wanted = len(self.channels.pairs), self.channels.pairs_at_once
        count, several = self.current_gradient_accumulation_steps, processes.count()
        micro = self.state.global_step * count + self._step % count
        first = (micro * several + self.accelerator.process_index) * wanted
        return [
            order_of(total, seed=self.args.seed, epoch=place // total)[place % total]
            for place in range(first, first + wanted)
        ]

    # What is told

    def _tell(self, losses: Mapping[str, torch.Tensor], weights: Mapping[str, float]) -> None:
        for name, loss in losses.items():
            self._figures.note(f"channel/{name}/loss", float(loss.detach()), Kind.PART)
            self._figures.note(f"channel/{name}/weight", weights[name])
        if self._measures():
            self._gradients.add(losses)

    def _measures(self) -> bool:
        assert self.channels is not None
        every = self.channels.composition.gradients_every
        return bool(every) and self.state.global_step % every == 0

    # Checkpoints

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if processes.rank():
            return
        if self.channels is not None and self.channels.teacher is not None:
            folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
            self.channels.teacher.save(folder)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        if self.channels is not None and self.channels.teacher is not None:
            self.channels.teacher.load(Path(resume_from_checkpoint))


def one_column(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The rows as `datasets` holds them: in a column of their own, messages would get each other's
    keys, and values of two types be refused."""
    return [{"prompt": json.dumps(row)} for row in rows]
