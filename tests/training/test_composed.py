"""Reward, self-distillation and DPO in one loss: each channel against the same computed apart."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

import torch.nn.functional as F  # noqa: E402 - needs the libraries that may be missing
from trl import GRPOTrainer  # noqa: E402
from trl.experimental.gkd import GKDTrainer  # noqa: E402

from harness.domain.composition import (  # noqa: E402
    REWARDS,
    Channel,
    Composition,
    DistillationChannel,
    FrozenFunction,
    PreferenceChannel,
    RewardChannel,
    composition_from,
)
from harness.errors import RunError, UsageError  # noqa: E402
from harness.files import sha256_bytes  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training import rewards  # noqa: E402
from harness.training.chat import prompt_ids  # noqa: E402
from harness.training.collators import before_completions  # noqa: E402
from harness.training.composed_trainer import ComposedTrainer  # noqa: E402
from harness.training.reward_packages import described  # noqa: E402
from harness.training.teachers import contexts, privileged  # noqa: E402
from harness.training.trainers import composed  # noqa: E402
from tests.training.composing import SHORT, gradient, ready, task_of, trained  # noqa: E402
from tests.training.tiny_model import environment, preferences, save_tiny_model  # noqa: E402

SOURCE = """def first(completions, **more):
    return [float(len(one[0]["content"])) for one in completions]
"""
LENGTH = FrozenFunction(
    name="first", file="mine.py", sha256=sha256_bytes(SOURCE.encode()), source=SOURCE
)
BY_LENGTH = RewardChannel(functions=(LENGTH,), function_weights=(1.0,))
"""Tells completions of a random model apart."""
WEIGHTS = {"reward": 1.0, "distillation": 10.0, "dpo": 0.25}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunLogger]:
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    with RunLogger.from_environment() as opened:
        yield opened


def made(**parts: Any) -> Composition:
    parts.setdefault("reward", BY_LENGTH)
    parts.setdefault("distillation", DistillationChannel(weight=10.0, success=1e6))
    return Composition(rollouts=SHORT, gradients_every=1, **parts)


def rel(ours: torch.Tensor, exact: torch.Tensor) -> float:
    return float((ours - exact).norm() / exact.norm())


def logits(trainer: ComposedTrainer, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """By the model's own output head, without anything that is chunked or fused."""
    out = trainer.model(input_ids=ids, attention_mask=mask, use_cache=False)
    return out.logits.double()


def apart(trainer: ComposedTrainer, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The channels' losses from full logits, by TRL's functions and by hand."""
    count = trainer.current_gradient_accumulation_steps
    losses = {"reward": GRPOTrainer._compute_loss(trainer, trainer.model, inputs)}
    ids, mask = inputs["completion_ids"], inputs["completion_mask"]
    width = ids.shape[1]
    student = logits(
        trainer,
        torch.cat([inputs["prompt_ids"], ids], 1),
        torch.cat([inputs["prompt_mask"], mask], 1),
    )
    with torch.no_grad(), trainer.model.disable_adapter():
        teacher = logits(trainer, inputs["teacher_ids"], inputs["teacher_mask"])
    written = mask * inputs.get("tool_mask", 1)  # by the model, not by a tool
    labels = ids.masked_fill((written * inputs["taught"].unsqueeze(1)) == 0, -100)
    mean = GKDTrainer.generalized_jsd_loss(
        student[:, -width - 1 : -1], teacher[:, -width - 1 : -1], labels=labels, beta=0.5
    )
    share = inputs["token_weights"].sum()  # of the step's tokens in this micro-batch
    losses["distillation"] = mean * share
    pairs = [trainer.channels.pairs[one] for one in trainer._numbers()]
    terms = []
    for chosen, rejected in pairs:
        delta = 0.0
        for turn, sign in ((chosen, 1), (rejected, -1)):
            row, long = torch.tensor([turn.ids]), len(turn.response)
            with torch.no_grad(), trainer.model.disable_adapter():
                base = logits(trainer, row, torch.ones_like(row))
            for given, way in ((logits(trainer, row, torch.ones_like(row)), 1), (base, -1)):
                logps = given[0, :-1].log_softmax(-1)
                picked = logps.gather(1, row[0, 1:, None])[-long:].sum()
                delta = delta + sign * way * picked
        terms.append(-F.logsigmoid(0.1 * delta))
    losses["dpo"] = torch.stack(terms).mean() / count
    return losses


def step(trainer: ComposedTrainer, inputs: dict[str, Any]) -> torch.Tensor:
    """One micro-batch as training makes it, with these rollouts."""
    prepare, trainer._prepare_inputs = trainer._prepare_inputs, lambda _batch: inputs
    loss = trainer.training_step(trainer.model, inputs)
    trainer._prepare_inputs = prepare
    return loss


def stepped(trainer: ComposedTrainer) -> torch.Tensor:
    return torch.cat([one.grad.flatten() for one in trained(trainer)])


@pytest.mark.parametrize("checkpointing", [False, True])
def test_each_channels_gradient_is_that_of_the_channel_alone(
    tmp_path: Path, log: RunLogger, checkpointing: bool
) -> None:
    trainer, inputs = ready(task_of(tmp_path, log, made()), checkpointing=checkpointing)
    exact = apart(trainer, inputs)
    ours = trainer.channel_losses(trainer.model, inputs, WEIGHTS)
    gradients = {}
    for name in WEIGHTS:
        assert float(ours[name]) == pytest.approx(float(exact[name]), rel=1e-5, abs=1e-6)
        gradients[name] = gradient(trainer, exact[name])
        assert float(gradients[name].norm()) > 0
        one = trainer.channel_losses(trainer.model, inputs, {name: WEIGHTS[name]})
        assert set(one) == {name}
        assert rel(gradient(trainer, one[name]), gradients[name]) < 1e-5, name
    whole = sum(WEIGHTS[name] * one for name, one in gradients.items())
    loss = step(trainer, inputs)
    assert rel(stepped(trainer), whole) < 1e-5
    weighted = sum(WEIGHTS[name] * float(one) for name, one in exact.items())
    assert float(loss) == pytest.approx(weighted, rel=1e-5)


def test_norms_and_cosines_are_those_of_the_whole_step(tmp_path: Path, log: RunLogger) -> None:
    trainer, _ = ready(task_of(tmp_path, log, made()))
    sums: dict[str, torch.Tensor] = {}
    for micro in range(2):
        trainer.accelerator.gradient_state._set_sync_gradients(micro == 1)
        inputs = trainer._buffered_inputs[micro]
        step(trainer, inputs)
        trainer._step -= 1
        for name in WEIGHTS:
            one = trainer.channel_losses(trainer.model, inputs, {name: 1.0})[name]
            sums[name] = sums.get(name, 0) + gradient(trainer, one)
        trainer._step += 1
    noted = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    for name, whole in sums.items():
        assert noted[f"channel/{name}/grad_norm"] == pytest.approx(float(whole.norm()), rel=1e-4)
    cosine = F.cosine_similarity(sums["reward"], sums["dpo"], 0)
    assert noted["channel/cosine/dpo_reward"] == pytest.approx(float(cosine), abs=1e-4)


def test_micro_batches_of_a_step_add_up_to_it_and_padding_changes_nothing(
    tmp_path: Path, log: RunLogger
) -> None:
    numbers = {"batch_size": 4, "gradient_accumulation": 1}
    trainer, inputs = ready(task_of(tmp_path, log, made(), hyperparameters=numbers))
    alone = {"reward": 1.0, "distillation": 1.0}
    whole = trainer.channel_losses(trainer.model, inputs, alone)
    shared = {key: value for key, value in inputs.items() if value.ndim}
    halves = [
        {key: value[part] for key, value in shared.items()}
        | {"num_items_in_batch": inputs["num_items_in_batch"]}
        for part in (slice(0, 1), slice(1, 4))
    ]
    parts = [trainer.channel_losses(trainer.model, half, alone) for half in halves]
    for name in alone:
        sums = parts[0][name] + parts[1][name]
        assert float(sums) == pytest.approx(float(whole[name]), rel=1e-5, abs=1e-7)
        pair = [gradient(trainer, one) for one in (sums, whole[name])]
        assert rel(*pair) < 1e-5, name
    padded = dict(inputs)
    for name in (
        "completion_ids",
        "completion_mask",
        "teacher_ids",
        "teacher_mask",
        "token_weights",
    ):
        padded[name] = F.pad(inputs[name], (0, 3))
    for name in ("prompt_ids", "prompt_mask", "teacher_ids", "teacher_mask"):
        padded[name] = F.pad(padded[name], (2, 0))
    more = trainer.channel_losses(trainer.model, padded, alone)
    for name in alone:
        assert float(more[name]) == pytest.approx(float(whole[name]), rel=1e-5, abs=1e-6)
        both = [
            gradient(trainer, trainer.channel_losses(trainer.model, one, alone)[name])
            for one in (padded, inputs)
        ]
        assert rel(*both) < 1e-4, name


def test_tokens_of_an_earlier_student_count_by_the_capped_ratio(
    tmp_path: Path, log: RunLogger
) -> None:
    wanted = DistillationChannel(weight=0.0, final_weight=1.0, ratio_cap=2.0)
    composition = Composition(
        reward=BY_LENGTH, distillation=wanted, rollouts=replace(SHORT, iterations=2)
    )
    trainer, inputs = ready(task_of(tmp_path, log, composition))
    alone = {"distillation": 1.0}  # from the second step on, of these rollouts
    then = inputs["old_per_token_logps"]
    plain = trainer.channel_losses(trainer.model, inputs, alone)["distillation"]
    for shift, ratio in ((1e-3, 0.999), (-0.5, 1.6487), (-50.0, 2.0)):
        older = {**inputs, "old_per_token_logps": then + shift}
        loss = trainer.channel_losses(trainer.model, older, alone)["distillation"]
        assert float(loss / plain) == pytest.approx(ratio, rel=1e-4)


def trained_state(folder: Path, log: RunLogger, composition: Composition) -> dict[str, Any]:
    folder.mkdir()
    trainer = composed.build(task_of(folder, log, composition))
    trainer.train()
    return {name: one.detach().clone() for name, one in trainer.model.named_parameters()}


def test_a_weight_of_0_costs_nothing_and_is_exact(
    tmp_path: Path, log: RunLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reward alone is GRPO to the last bit; DPO alone generates nothing."""
    off = {"distillation": DistillationChannel(weight=0.0), "dpo": PreferenceChannel(weight=0.0)}
    alone = trained_state(tmp_path / "alone", log, made(**off))
    folder = tmp_path / "grpo"
    folder.mkdir()
    plain = composed.build(task_of(folder, log, made(**off)))
    monkeypatch.setattr(ComposedTrainer, "_compute_loss", GRPOTrainer._compute_loss)
    monkeypatch.setattr(
        ComposedTrainer,
        "_generate_and_score_completions",
        GRPOTrainer._generate_and_score_completions,
    )
    plain.train()
    for name, one in plain.model.named_parameters():
        assert torch.equal(one, alone[name]), name
    monkeypatch.undo()

    def never(*_words: Any, **_more: Any) -> None:
        raise AssertionError("it costs something")

    monkeypatch.setattr(ComposedTrainer, "_generate_and_score_completions", never)
    monkeypatch.setattr(ComposedTrainer, "_distillation", never)
    monkeypatch.setattr(GRPOTrainer, "_compute_loss", never)
    nothing = {
        "distillation": DistillationChannel(weight=0.0),
        "reward": RewardChannel(weight=0.0),
    }
    trained_state(tmp_path / "dpo", log, made(**nothing))


def test_pairs_that_processes_cannot_share_are_refused_only_where_dpo_learns(
    tmp_path: Path, log: RunLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composed.processes, "count", lambda: 2)
    numbers = {"batch_size": 4, "gradient_accumulation": 1}
    given = task_of(tmp_path, log, made(), hyperparameters=numbers)
    with pytest.raises(UsageError, match="cannot share"):
        composed._pairs_at_once(given, made(dpo=PreferenceChannel(weight=0.5, pairs=3)))
    assert composed._pairs_at_once(given, made(dpo=PreferenceChannel(weight=0.0, pairs=3))) == 1


def test_two_alternating_batches_fall_together(tmp_path: Path, log: RunLogger) -> None:
    numbers = {"max_steps": 24, "learning_rate": 1e-2, "batch_size": 2, "gradient_accumulation": 1}
    composition = made(reward=RewardChannel(weight=0.0), dpo=PreferenceChannel(pairs=1))
    trainer = composed.build(
        task_of(tmp_path, log, composition, rows=preferences(2), hyperparameters=numbers)
    )
    for one in trained(trainer):  # away from the teacher
        one.data.add_(0.4 * torch.randn_like(one))
    trainer._started = True
    trainer.train()
    rows = [row for row in trainer.state.log_history if "channel/dpo/loss" in row]
    for name in ("channel/dpo/loss", "channel/distillation/loss"):
        means = [sum(row[name] for row in rows[at : at + 8]) / 8 for at in (0, 8, 16)]
        assert all(later < earlier for earlier, later in pairwise(means)), (name, means)


@pytest.mark.parametrize("teacher", ["base", "ema", "live"])
def test_the_teacher_has_no_gradient_and_is_who_it_says(
    tmp_path: Path, log: RunLogger, teacher: str
) -> None:
    wanted = DistillationChannel(weight=1.0, teacher=teacher, ema_rate=0.25)
    trainer, inputs = ready(task_of(tmp_path, log, made(distillation=wanted)))
    mine = trainer.channels.teacher
    words = inputs["teacher_ids"], inputs["teacher_mask"]
    states = mine.hidden(*words)
    assert not states.requires_grad
    assert trainer.model.training
    with torch.no_grad():
        now = trainer.model(input_ids=words[0], attention_mask=words[1], use_cache=False).logits
        with trainer.model.disable_adapter():
            base = trainer.model(
                input_ids=words[0], attention_mask=words[1], use_cache=False
            ).logits
    told = states @ mine.head.T
    torch.testing.assert_close(told, now if teacher == "live" else base, rtol=1e-4, atol=1e-5)
    if teacher == "ema":
        before = {name: one.clone() for name, one in mine._average.items()}
        mine.follow()
        student = dict(mine._trained())
        for name, one in mine._average.items():
            torch.testing.assert_close(one, 0.75 * before[name] + 0.25 * student[name])
        mine.save(tmp_path)
        kept = {name: one.clone() for name, one in mine._average.items()}
        mine.follow()
        mine.load(tmp_path)
        assert all(torch.equal(one, kept[name]) for name, one in mine._average.items())
    else:
        before = mine.hidden(*words)
        mine.follow()
        torch.testing.assert_close(mine.hidden(*words), before)


def test_a_teacher_that_sees_what_the_student_sees_teaches_nothing(
    tmp_path: Path, log: RunLogger
) -> None:
    wanted = DistillationChannel(weight=1.0, teacher="live")
    trainer, inputs = ready(task_of(tmp_path, log, made(distillation=wanted)))
    inputs |= {
        "teacher_ids": torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
        "teacher_mask": torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
    }
    loss = trainer.channel_losses(trainer.model, inputs, {"distillation": 1.0})["distillation"]
    assert float(loss) == pytest.approx(0, abs=1e-6)


def test_another_local_model_teaches_and_a_changed_one_does_not(
    tmp_path: Path, log: RunLogger
) -> None:
    other = save_tiny_model(tmp_path / "other")
    from harness.artifacts.content import hash_path

    named = {"id": "other", "family": "other", "path": str(other), "sha256": hash_path(other)}
    wanted = DistillationChannel(weight=1.0, teacher="other")
    trainer, inputs = ready(task_of(tmp_path, log, made(distillation=wanted), teacher=named))
    losses = trainer.channel_losses(trainer.model, inputs, {"distillation": 1.0})
    assert float(losses["distillation"]) > 0
    with pytest.raises(RunError, match="teacher other"):
        composed.build(
            task_of(
                tmp_path, log, made(distillation=wanted), teacher={**named, "sha256": "0" * 64}
            )
        )


def test_three_references_agree_and_a_kept_one_is_of_its_tokens(
    tmp_path: Path, log: RunLogger
) -> None:
    tables = {}
    for kind in ("adapter_off", "frozen_copy", "precomputed"):
        task = task_of(tmp_path, log, made(dpo=PreferenceChannel(reference=kind)))
        trainer, _ = ready(task)
        tables[kind] = trainer.channels.reference.logps([0, 3, 5])
        assert not tables[kind].requires_grad
    for kind in ("frozen_copy", "precomputed"):
        torch.testing.assert_close(tables[kind], tables["adapter_off"], rtol=1e-5, atol=1e-4)
    file = tmp_path / "checkpoints" / "reference_logps.json"
    assert task.extra["reference_sha256"] == sha256_bytes(file.read_bytes())
    kept = json.loads(file.read_text())
    kept["logps"][0][0] = -1.0
    file.write_text(json.dumps(kept))
    again = composed.build(task_of(tmp_path, log, made(dpo=PreferenceChannel(reference=kind))))
    assert float(again.channels.reference.logps([0])[0]) == -1.0  # of the same tokens: kept
    other = [{**row, "chosen": row["chosen"] + "!"} for row in preferences(6)]
    anew = composed.build(
        task_of(tmp_path, log, made(dpo=PreferenceChannel(reference=kind)), rows=other)
    )
    assert float(anew.channels.reference.logps([0])[0]) < -1.0


def test_who_is_shown_what() -> None:
    rows = [{"hint": "carry"}, {"hint": " "}, {"hint": None}, {"hint": "look"}]
    said = ["<think>hm</think>42", "41", "40", "39"]
    options = {"group": 2, "kinds": ("sibling", "hint"), "success": 1.0}
    shown = contexts(rows, said, [1.0, 0.0, 0.0, 0.0], **options)
    # A lone success is shown nothing of itself; its sibling sees it, without its thoughts.
    assert shown == ["A hint:\n\ncarry", "A correct solution:\n\n42", None, "A hint:\n\nlook"]
    assert contexts(rows, said, [1.0] * 4, **{**options, "kinds": ("hint",)})[1:3] == [None, None]
    both = contexts(rows, said, [1.0, 1.0, 0.0, 0.0], **options)
    assert both[0] == "A correct solution:\n\n41"
    nobody = contexts(rows, said, [float("nan")] * 4, **{**options, "success": -9.0})
    assert nobody == contexts(rows, said, [0.0] * 4, **options)


def test_what_is_shown_follows_the_last_question_of_a_conversation(
    tmp_path: Path, log: RunLogger
) -> None:
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "And 3?"},
    ]
    shown = privileged(asked, "A hint:\n\nadd")
    assert shown[:3] == asked[:3]
    assert shown[3]["content"].startswith("And 3?\n\nA hint:\n\nadd\n\nCorrectly")
    assert privileged("2+2?", "x") == privileged([{"role": "user", "content": "2+2?"}], "x")
    assert [one["role"] for one in privileged(asked[:1], "x")] == ["system", "user"]
    rows = [{**row, "prompt": asked, "text": f"{place}"} for place, row in enumerate(LISTS)]
    numbers = {"max_seq_length": 400}
    trainer, inputs = ready(task_of(tmp_path, log, made(), rows=rows, hyperparameters=numbers))
    width = inputs["completion_ids"].shape[1]
    for ids, mask in zip(inputs["teacher_ids"], inputs["teacher_mask"].bool(), strict=True):
        told = trainer.processing_class.decode(ids[:-width][mask[:-width]])
        assert told.startswith("<|im_start|>system\nBe brief.<|im_end|>")
        assert "<|im_start|>user\nAnd 3?\n\nA hint:" in told
    assert len(trainer.channels.pairs) == 6


def test_case_41_a_rollout_that_nobody_scores_is_excluded_and_counted(
    tmp_path: Path, log: RunLogger
) -> None:
    source = """def some(completions, **more):
    return [None, 1.0, 2.0, 3.0][: len(completions)]
"""
    digest = sha256_bytes(source.encode())
    some = FrozenFunction(name="some", file="some.py", sha256=digest, source=source)
    wanted = RewardChannel(functions=(some,), function_weights=(2.0,))
    shown = DistillationChannel(success=-9.0, contexts=("sibling",))
    numbers = {"batch_size": 4, "gradient_accumulation": 1}
    task = task_of(tmp_path, log, made(reward=wanted, distillation=shown), hyperparameters=numbers)
    trainer, inputs = ready(task)
    assert [round(one, 3) for one in trainer._rewards.nan_to_num(-1).tolist()] == [-1, 2, 4, 6]
    found = sorted(round(one, 2) for one in inputs["advantages"].tolist())
    assert found == [-1.0, 0.0, 0.0, 1.0]  # of a group of three, around their mean of 4
    assert trainer._figures.told()["channel/reward/unscored"] == 1
    assert float(inputs["taught"].sum()) == 4  # by the others; itself it is shown to nobody
    gradient = trainer.channel_losses(trainer.model, inputs, {"reward": 1.0})["reward"]
    assert bool(torch.isfinite(gradient))


def test_student_and_teacher_are_aligned_at_the_completion(tmp_path: Path, log: RunLogger) -> None:
    task = task_of(tmp_path, log, made())
    completions = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    long = [
        prompt_ids(task.tokenizer, privileged("2+2?", "A hint:\n\n" + "x" * n)) for n in (1, 9)
    ]
    ids, mask = before_completions(long, completions, task.tokenizer.pad_token_id)
    assert torch.equal(ids[:, -3:], completions[0])
    assert torch.equal(mask[:, -3:], completions[1])
    for row, prompt in enumerate(long):
        assert ids[row][mask[row].bool()].tolist()[: len(prompt)] == prompt
    _, inputs = ready(task)
    width = inputs["completion_ids"].shape[1]
    assert torch.equal(inputs["teacher_ids"][:, -width:], inputs["completion_ids"])
    assert (
        inputs["teacher_mask"].sum(1)
        > inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)
    ).all()


def test_a_prompt_without_room_for_its_hint_is_not_taught(tmp_path: Path, log: RunLogger) -> None:
    rows = [{**row, "hint": "x" * 200} for row in preferences(6)]
    trainer, inputs = ready(task_of(tmp_path, log, made(), rows=rows))
    assert float(inputs["taught"].sum()) == 0
    losses = trainer.channel_losses(trainer.model, inputs, {"distillation": 1.0})
    assert losses == {}
    assert trainer._figures.told()["channel/distillation/rows"] == 0
    total = trainer._compute_loss(trainer.model, inputs)
    assert total.requires_grad


def test_weights_rise_and_fall_with_the_step() -> None:
    channel = Channel(weight=2.0, final_weight=0.0, warmup=0.5)
    assert [channel.at(step, 5) for step in range(5)] == pytest.approx([0.8, 1.2, 1.0, 0.5, 0.0])
    assert Channel(weight=0.3).at(7, 10) == 0.3
    assert not Channel(weight=0.0).used
    assert Channel(weight=0.0, final_weight=1.0).used


LISTS = [
    {**row, "chosen": [{"role": "assistant", "content": row["chosen"]}] * (1 + place % 2)}
    for place, row in enumerate(preferences(6))
]
"""Some answers are several messages."""


def test_a_composition_survives_its_plain_form() -> None:
    composition = made(dpo=PreferenceChannel(reference="precomputed"))
    plain = json.loads(json.dumps(composition.plain()))
    assert composition_from(plain) == composition
    assert composition_from(plain).plain() == plain
    assert tuple(rewards.NAMED) == REWARDS


def test_rewards_by_file_are_the_source_that_was_specified(tmp_path: Path) -> None:
    (function,) = rewards.reward_functions([LENGTH], tmp_path)
    assert (function.__name__, function(completions=[[{"content": "abc"}]])) == ("first", [3.0])
    with pytest.raises(RunError, match="hash"):
        rewards.reward_functions([replace(LENGTH, source=SOURCE + "#")], tmp_path)
    with pytest.raises(UsageError, match="no function"):
        rewards.reward_functions([replace(LENGTH, name="second")], tmp_path)


def installed(folder: Path, body: str) -> None:
    """A package with a verifier, as pip leaves it."""
    folder.mkdir(exist_ok=True)
    (folder / "my_verifier.py").write_text(body)
    told = folder / "my_verifier-1.2.dist-info"
    told.mkdir(exist_ok=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: my-verifier\nVersion: 1.2\n")
    (told / "entry_points.txt").write_text("[harness.rewards]\neven = my_verifier:even\n")
    names = ("my_verifier.py", f"{told.name}/METADATA", f"{told.name}/entry_points.txt")
    (told / "RECORD").write_text("".join(f"{name},,\n" for name in names))


VERIFIER = """def even(completions, **more):
    return [float(len(one[0]["content"]) % 2 == 0) for one in completions]
"""


def test_a_verifier_of_a_package_is_what_was_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    installed(site, VERIFIER)
    monkeypatch.syspath_prepend(str(site))
    frozen = FrozenFunction(name="even", package="my-verifier", **described("my-verifier", "even"))
    assert frozen.version == "1.2"
    (function,) = rewards.reward_functions([frozen], tmp_path / "rewards")
    said = [[{"role": "assistant", "content": text}] for text in ("ab", "abc")]
    assert (function(completions=said), function.__name__) == ([1.0, 0.0], "even")
    installed(site, VERIFIER + "# another\n")
    with pytest.raises(RunError, match=r"my-verifier 1\.2 has the hash"):
        rewards.reward_functions([frozen], tmp_path / "rewards")
    for package, name in (("my-verifier", "odd"), ("nobody-wrote-this", "even")):
        with pytest.raises(UsageError):
            described(package, name)
