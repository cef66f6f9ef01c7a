"""Does the composed loss teach what held-out prompts ask? Reward, self-distillation and DPO
together against reward alone, DPO alone and no training, over seeds, on a CPU.

The task is checkable: name the larger of two numbers of two digits. A small model of this program's
own learns it first by supervised rows, some of them with a hint before the answer, until it is
right more often than not. Each arm then trains one adapter for the same number of steps by the
trainer of `posttrain spec --backend composed`, and answers held-out prompts: no row of any training
has their pairs of numbers. The intervals are of the gain over no training, row by row, a row's
value being its mean over seeds. The table says what came out, whichever it is; the exit code does
not depend on it.

    python bench/composed.py [--steps N] [--seeds N] [--jobs N] [--record]

`--record` writes docs/evidence/composed.json.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}

import torch
from _record import record
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils.logging import disable_progress_bar

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from harness.domain.composition import (  # noqa: E402  it needs the line above
    Composition,
    DistillationChannel,
    PreferenceChannel,
    RewardChannel,
    Rollouts,
)
from harness.evaluation.intervals import mean_interval  # noqa: E402
from harness.training.chat import is_answer, prompt_ids  # noqa: E402
from harness.training.chat import turn as chat_turn  # noqa: E402
from harness.training.collators import pad_prompts, pad_turns  # noqa: E402
from harness.training.language_model import load_tokenizer  # noqa: E402
from harness.training.teachers import privileged  # noqa: E402
from harness.training.trainers import composed  # noqa: E402
from harness.training.trainers.program import run  # noqa: E402
from tests.training.tiny_model import environment, save_tiny_model, specification  # noqa: E402

SIZES = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4}
SIZES |= {"num_attention_heads": 4}
BATCH, RATE, ENOUGH, MOST_STEPS = 64, 2e-3, 0.65, 4000
"""Of the supervised rows."""
TRAIN, HELD_OUT = 400, 200
OFF = {"reward": RewardChannel(weight=0.0), "dpo": PreferenceChannel(weight=0.0)}
OFF["distillation"] = DistillationChannel(weight=0.0)
ON: dict[str, Any] = {
    "reward": RewardChannel(),
    "dpo": PreferenceChannel(weight=0.25),
    "distillation": DistillationChannel(weight=0.5, teacher="ema", success=1.5),
}
ARMS: dict[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "dpo": ("dpo",),
    "composed": ("reward", "distillation", "dpo"),
}


def rows(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """(supervised, training, held out): no pair of numbers is in two of them."""
    draw = random.Random(seed)
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100) if a != b]
    draw.shuffle(pairs)
    made = []
    for number, (a, b) in enumerate(pairs):
        right = str(max(a, b))
        made.append(
            {
                "id": f"r{number}",
                "prompt": f"{a} {b}",
                "answer": right,
                "chosen": right,
                "rejected": str(min(a, b)),
                "hint": right,
            }
        )
    held = made[:HELD_OUT]
    return made[HELD_OUT + TRAIN :], made[HELD_OUT : HELD_OUT + TRAIN], held


def supervised(
    folder: Path, given: Sequence[dict[str, Any]], held: Sequence[dict[str, Any]]
) -> float:
    """Train a model from nothing until it is half right; its share of right held-out answers."""
    save_tiny_model(folder)
    tokenizer = load_tokenizer(folder)
    torch.manual_seed(0)
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **ids, **SIZES)
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    draw = random.Random(0)
    for step in range(1, MOST_STEPS + 1):
        turns = []
        for row in draw.sample(given, BATCH):
            shown = draw.choice((*[None] * 6, "A hint:\n\n", "A correct solution:\n\n"))
            text = row["prompt"]
            if shown is not None:
                text = privileged(text, shown + row["answer"])
            turns.append(chat_turn(tokenizer, text, row["answer"], limit=200))
        tokens, mask, labels = pad_turns(turns, tokenizer.pad_token_id)
        model.train()
        model(input_ids=tokens, attention_mask=mask, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            share = sum(answers(model, folder, held)) / len(held)
            print(f"supervised, step {step}: {share:.3f} right", flush=True)
            if share >= ENOUGH:
                break
    model.save_pretrained(folder)


@torch.no_grad()
def answers(model: Any, folder: Path, held: Sequence[dict[str, Any]]) -> list[float]:
    """1 for each held-out row whose greedy answer is right, else 0."""
    tokenizer = load_tokenizer(folder, padding_side="left")
    model.eval()
    right = []
    for start in range(0, len(held), 100):
        part = held[start : start + 100]
        prompts = [prompt_ids(tokenizer, row["prompt"]) for row in part]
        ids, mask = pad_prompts(prompts, tokenizer.pad_token_id)
        out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=6, do_sample=False)
        texts = tokenizer.batch_decode(out[:, ids.shape[1] :], skip_special_tokens=True)
        right += [
            float(is_answer(text, row["answer"])) for text, row in zip(texts, part, strict=True)
        ]
    return right


def arm(base: Path, folder: Path, names: Sequence[str], data: Path, seed: int, steps: int) -> Path:
    """Train one adapter; its folder."""
    channels = {name: (ON if name in names else OFF)[name] for name in OFF}
    composition = Composition(rollouts=Rollouts(max_tokens=6), gradients_every=0, **channels)
    numbers = {"learning_rate": 3e-4, "batch_size": 64, "gradient_accumulation": 1}
    numbers |= {"lora_rank": 8, "lora_alpha": 16, "lora_dropout": 0.0, "max_steps": steps}
    spec = specification(
        base,
        data,
        "composed",
        "composed",
        seed=seed,
        composition=composition.plain(),
        hyperparameters={**numbers, "max_seq_length": 200},
        budget={"minutes": 600.0, "tokens": 10**9},
    )
    output = folder / "checkpoints"
    output.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps(spec))
    os.environ |= environment(folder)
    words = ["--spec", str(folder / "spec.json"), "--output-dir", str(output)]
    with (folder / "stdout").open("w") as stdout:
        kept, sys.stdout = sys.stdout, stdout
        try:
            code = run("composed", "composed", ("prompt",), composed.build, words)
        finally:
            sys.stdout = kept
    if code != 0:
        raise RuntimeError(f"{names}: the training failed, see above")
    return output / "adapter"


def trained_answers(words: tuple[Path, Path, Sequence[str], Path, int, int]) -> list[float]:
    """`answers` after `arm`, in a process of its own."""
    quiet()
    base = words[0]
    adapter = arm(*words)
    model = LlamaForCausalLM.from_pretrained(base)
    model.load_adapter(str(adapter))
    return answers(model, base, rows(0)[2])


def quiet() -> None:
    torch.set_num_threads(1)
    disable_progress_bar()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    quiet()
    figures: dict[str, float | str] = {"steps": options.steps, "held_out_rows": HELD_OUT}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, training, held = rows(0)
        supervised(folder / "base", first, held)
        data = folder / "train.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in training))
        before = answers(LlamaForCausalLM.from_pretrained(folder / "base"), folder / "base", held)
        figures["none.accuracy"] = sum(before) / len(before)
        print(f"no training: {figures['none.accuracy']:.3f}", flush=True)
        seeds = range(1, options.seeds + 1)
        work = [
            (folder / "base", folder / f"{named}-{seed}", channels, data, seed, options.steps)
            for named, channels in ARMS.items()
            for seed in seeds
        ]
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
            after = list(pool.map(trained_answers, work))
        for place, named in enumerate(ARMS):
            each = after[place * options.seeds : (place + 1) * options.seeds]
            told(figures, named, before, each)
    if options.record:
        command = f"python bench/composed.py --steps {options.steps} --seeds {options.seeds}"
        record("composed", command, figures, seed=0)
    return 0


def told(
    figures: dict[str, float | str],
    named: str,
    before: Sequence[float],
    after: Sequence[Sequence[float]],
) -> None:
    """Print one arm, and keep its figures. A row's gain is the mean over seeds."""
    means = [sum(one) / len(one) for one in after]
    gains = [
        sum(row) / len(row) - old
        for row, old in zip(zip(*after, strict=True), before, strict=True)
    ]
    low, high = mean_interval(gains) or (0.0, 0.0)
    gain = sum(gains) / len(gains)
    figures |= {
        f"{named}.accuracy": sum(means) / len(means),
        f"{named}.gain": gain,
        f"{named}.gain_low": low,
        f"{named}.gain_high": high,
    }
    figures |= {f"{named}.seed_{n}": one for n, one in enumerate(means, 1)}
    each = ", ".join(f"{one:.3f}" for one in means)
    print(f"{named:10s} {each}: gain {gain:+.3f} [{low:+.3f}, {high:+.3f}]", flush=True)


if __name__ == "__main__":
    sys.exit(main())
