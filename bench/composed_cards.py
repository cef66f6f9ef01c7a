"""The composed trainer on several GPUs of one host: DDP and FSDP2 beside one GPU of the same run,
and a training that is killed and goes on.

    python bench/composed_cards.py --gpus 2 [--record] [--models small,large] [--minutes 5.5]
    python bench/composed_cards.py --gpus 2 --tiny   # on CPUs with gloo: shows that it runs

Random weights in bfloat16, LoRA, all three channels, prompts and pairs of about 2,000 tokens.
small: SmolLM2-135M's architecture; large: one of 1.5 billion parameters. Every way has one
specification, and so the rows of a step: what one card takes one after the other, N cards take
beside one another.

- tokens per second: with gradients, of all cards, by the median step after the first three;
  efficiency: over the cards times one card's in this run.
- GiB: the most that the first card had allocated.
- loss of each channel: mean of the second half. apart: the largest difference of a step's DPO loss
  from one card's, whose pairs are the same; its rollouts are others.
- resumed: FSDP2, killed with -9 once a checkpoint is there, and started again: the step it went on
  from, and the largest difference of a step's losses from the training that was not killed.

`--record` writes docs/evidence/composed-cards-N.json, with MODELS in its name where few are asked
for; OUT gets composed-cards.csv, what each step logged.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from _cards_member import SIZES  # noqa: E402  it needs the line above
from _gpu import save_tokenizer  # noqa: E402
from _record import record  # noqa: E402

from harness.domain.composition import (  # noqa: E402
    Composition,
    DistillationChannel,
    FrozenFunction,
    PreferenceChannel,
    RewardChannel,
    Rollouts,
)
from harness.files import sha256_bytes  # noqa: E402
from tests.training.tiny_model import environment, specification, write_rows  # noqa: E402

MODELS, STEPS, WARM, ROWS, MOST_SECONDS = "small,large", 10, 3, 4, 170
CHANNELS = ("reward", "distillation", "dpo")
SOURCE = """
def evens(completions, **more):
    found = [[n for n in one[-1]["content"] if n.isdigit()] for one in completions]
    return [sum(n in "02468" for n in each) / max(1, len(each)) for each in found]
"""
Rows = list[dict[str, Any]]
Figures = dict[str, float | str]


@dataclass(frozen=True, kw_only=True)
class Way:
    name: str
    ranks: int
    shard: bool = False


def composition(tiny: bool) -> Composition:
    digest = sha256_bytes(SOURCE.encode())
    function = FrozenFunction(name="evens", file="evens.py", source=SOURCE, sha256=digest)
    return Composition(
        reward=RewardChannel(functions=(function,), function_weights=(1.0,)),
        distillation=DistillationChannel(contexts=("hint",)),
        dpo=PreferenceChannel(pairs=ROWS),
        rollouts=Rollouts(generations=4, max_tokens=8 if tiny else 32),
        gradients_every=4,
    )


def texts(tiny: bool) -> Rows:
    """Bytes are tokens: prompts of about 1,900, pairs of about 2,000."""
    asked = "Count on from {n} in words. " * (1 if tiny else 66)
    answer = "One follows the other. " * (1 if tiny else 5)
    return [
        {
            "id": f"r{n}",
            "prompt": asked.format(n=n + 100),
            "chosen": f"{n + 101}. {answer}",
            "rejected": "All is false here. " * (1 if tiny else 6),
            "hint": f"Begin with {n + 101}.",
        }
        for n in range(64)
    ]


def prepared(folder: Path, model: str, given: argparse.Namespace) -> Path:
    """The specification of all ways."""
    sizes = SIZES["tiny" if given.tiny else model]
    (folder / "model").mkdir(parents=True)
    save_tokenizer(folder / "model", sizes["vocab_size"])
    data = write_rows(folder / "rows.jsonl", texts(given.tiny))
    numbers = {"batch_size": ROWS, "gradient_accumulation": given.gpus, "lora_rank": 16}
    numbers |= {"max_steps": given.steps, "max_seq_length": 256 if given.tiny else 2048}
    numbers |= {"learning_rate": 5e-4, "lora_dropout": 0.0}
    kind = {"dtype": "float32"} if given.tiny else {"dtype": "bfloat16"}
    spec = specification(
        folder / "model",
        data,
        "composed",
        "composed",
        hyperparameters=numbers,
        hardware_tier="cpu-experimental" if given.tiny else "datacenter-gpu",
        budget={"minutes": 30.0, "tokens": 1_000_000_000},
        **kind,
    )
    spec["composition"] = composition(given.tiny).plain()
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    return path


def started(
    way: Way, model: str, spec: Path, run: Path, attempt: int, log: Any
) -> subprocess.Popen[bytes]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(way.ranks)]
    member = [str(ROOT / "bench/_cards_member.py"), model, "--spec", str(spec)]
    member += ["--output-dir", str(run / "checkpoints")]
    words = [sys.executable, *(launch if way.ranks > 1 else []), *member]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    more = {"PYTHONPATH": paths, "HARNESS_SHARD": str(int(way.shard))}
    more["TRITON_CACHE_DIR"] = str(spec.parents[1] / "triton")  # compiled once
    if way.ranks == 1:
        more["CUDA_VISIBLE_DEVICES"] = "0"
    run.mkdir(parents=True, exist_ok=True)
    own = {**os.environ, **environment(run, attempt), **more}
    return subprocess.Popen(words, env=own, stdout=log, stderr=log, start_new_session=True)


def trained(
    way: Way, model: str, spec: Path, until: float, *, attempt: int = 1, killed_at: int = 0
) -> Path | None:
    """The run's folder; None when it failed or was not finished in time. With `killed_at` it is
    killed once the checkpoint of that step is whole."""
    run = spec.parent / way.name
    end = min(time.monotonic() + MOST_SECONDS, until)
    with (spec.parent / f"{way.name}-{attempt}.log").open("wb+") as log:
        process = started(way, model, spec, run, attempt, log)
        mark = run / f"checkpoints/checkpoint-{killed_at}/harness.json"
        while process.poll() is None and time.monotonic() < end and not mark.exists():
            time.sleep(0.05)
        code = process.poll()
        if code is None:
            kill(process)
        if code == 0 or (code is None and mark.exists()):
            return run
        log.seek(0)
        said = log.read().decode("utf-8", "replace").splitlines()
        # torchrun's own words come last and say nothing of the cause.
        first = next((at for at, line in enumerate(said) if "Traceback" in line), len(said) - 40)
        here = slice(max(0, first), max(0, first) + 40)
        print(f"{model} {way.name}: exit code {code}", *said[here], sep="\n", flush=True)
    return None


def kill(process: subprocess.Popen[bytes]) -> None:
    """With torchrun's workers, each of which has a session of its own."""
    for one in psutil.Process(process.pid).children(recursive=True):
        one.kill()
    process.kill()
    process.wait()


def steps_of(run: Path) -> Rows:
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines(keepends=True)
    rows = [json.loads(line) for line in lines if line.endswith("}\n")]
    return [row for row in rows if row["event"] == "epoch" and "loss" in row["metrics"]]


def figures_of(run: Path) -> tuple[Figures, Rows, dict[str, Any]]:
    rows, result = steps_of(run), json.loads((run / "checkpoints/result.json").read_text())
    times = [datetime.fromisoformat(row["t"]).timestamp() for row in rows]
    lasted = [after - before for before, after in pairwise(times)]
    metrics = [row["metrics"] for row in rows]
    tokens = (metrics[-1]["tokens_seen"] - metrics[0]["tokens_seen"]) / max(1, len(lasted))
    figures: Figures = {
        "tokens per second": round(tokens / statistics.median(lasted[WARM - 1 :] or lasted)),
        "s a step": round(statistics.median(lasted[WARM - 1 :] or lasted), 3),
        "tokens a step": round(tokens),
        "GiB": round(result["extra"].get("peak_memory_bytes", 0) / 2**30, 2),
    }
    for name in CHANNELS:
        found = [one[f"channel/{name}/loss"] for one in metrics[len(metrics) // 2 :]]
        figures[f"{name} loss"] = short(sum(found) / len(found))
    return figures, metrics, result["extra"]


def short(value: float) -> float:
    return float(f"{value:.4g}")


def apart(some: Rows, others: Rows, name: str) -> float:
    key = f"channel/{name}/loss"
    both = zip(some, others, strict=True)
    return max(abs(one[key] - other[key]) for one, other in both)


def resumed(
    model: str, spec: Path, whole: Rows, given: argparse.Namespace, until: float
) -> Figures:
    way = Way(name="resumed", ranks=given.gpus, shard=True)
    at = -(-given.steps // 5) * 2
    if trained(way, model, spec, until, killed_at=at) is None:
        return {}
    seen = len(steps_of(spec.parent / "resumed"))
    run = trained(way, model, spec, until, attempt=2)
    if run is None:
        return {}
    _, metrics, extra = figures_of(run)
    step = int(extra["resumed_at_step"])
    after = metrics[seen:]
    told: Figures = {"from step": step, "steps after": len(after)}
    for name in CHANNELS:
        told[f"{name} loss apart"] = short(apart(after, whole[step:], name))
    return told


def measured(model: str, given: argparse.Namespace, until: float, folder: Path) -> Figures:
    spec = prepared(folder / model, model, given)
    ways = [
        Way(name="one", ranks=1),
        Way(name="ddp", ranks=given.gpus),
        Way(name="fsdp2", ranks=given.gpus, shard=True),
    ]
    name = "tiny" if given.tiny else model
    found: Figures = {}
    alone: tuple[Figures, Rows] | None = None
    metrics: Rows = []
    for way in ways:
        run = trained(way, name, spec, until)
        if run is None:
            found[f"{model} {way.name}"] = "failed"
            metrics = []
            continue
        told, metrics, extra = figures_of(run)
        if alone is None and way.ranks == 1:
            alone = told, metrics
        elif alone is not None:
            one = float(alone[0]["tokens per second"]) * way.ranks
            told["efficiency"] = round(float(told["tokens per second"]) / one, 3)
            told["dpo loss apart"] = short(apart(metrics, alone[1], "dpo"))
        keep(given.out / "composed-cards.csv", model, way.name, metrics)
        print(model, way.name, json.dumps(told), flush=True)
        found |= {"card": str(extra.get("card", "none"))}
        found |= {f"{model} {way.name}: {label}": value for label, value in told.items()}
    if metrics and model == given.models.split(",")[0]:
        told = resumed(name, spec, metrics, given, until)
        print(model, "resumed", json.dumps(told), flush=True)
        found |= {f"{model} resumed: {label}": value for label, value in told.items()}
        found |= {} if told else {f"{model} resumed": "failed"}
    return found


def keep(path: Path, model: str, way: str, metrics: Rows) -> None:
    names = [f"channel/{one}/loss" for one in CHANNELS]
    with path.open("a", newline="") as stream:
        writer = csv.writer(stream)
        if not stream.tell():
            writer.writerow(["model", "way", "step", "loss", "grad_norm", *names])
        for step, one in enumerate(metrics, 1):
            shown = [one[key] for key in ("loss", "grad_norm", *names)]
            writer.writerow([model, way, step, *shown])


def main(given: argparse.Namespace) -> int:
    until = time.monotonic() + 60 * given.minutes
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "composed-cards.csv").unlink(missing_ok=True)
    figures: Figures = {"gpus": given.gpus, "steps": given.steps}
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models.split(","):
            figures |= measured(model, given, until, Path(folder))
    print(json.dumps(figures), flush=True)
    if given.record and not given.tiny:
        few = "" if given.models == MODELS else f"-{given.models.replace(',', '-')}"
        asked = f" --models {given.models}" if few else ""
        words = f"python bench/composed_cards.py --gpus {given.gpus}{asked} --record"
        record(f"composed-cards-{given.gpus}{few}", words, figures, seed=1)
    return int("failed" in figures.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--minutes", type=float, default=5.5)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    sys.exit(main(parser.parse_args()))
