"""Training on several GPUs of one host: DDP, FSDP2 and DiLoCo beside one GPU of the same run.

    python bench/scale.py --gpus 2 [--record] [--minutes 8] [--models small,large] [--ways one,ddp]
    python bench/scale.py --gpus 2 --models large --ways ddp,diloco --steps 40 --sync-every 20
    python bench/scale.py --gpus 2 --tiny   # on a CPU with gloo: shows only that the program runs

Random weights in float32, bfloat16 under autocast (FSDP2: its own mixed precision), rows of 2,048
tokens of a chain that can be learned. small: SmolLM2-135M's architecture; large: one of 1.5 billion
parameters. Each way trains the same number of steps with the same rows a card.

- tokens per second, of all cards, and efficiency: over the cards times one card's in this run.
- GiB: the most that one card had allocated. MB a step: what a card sends, computed for a ring:
  DDP 2 (N-1)/N gradients, FSDP2 (N-1)/N of two gathers and one reduction, DiLoCo as DDP, once a
  round.
- loss: mean over cards of the last tenth; the curves lie in scale-N-MODELS-curves.csv.
- over ddp: tokens per second over those of DDP in this run.
- ready: a way's seconds from the import of torch to the first step, on the screen alone.
- healed: DiLoCo, one replica ends itself with -9 in the second round, and is started again.

`--record` writes docs/evidence/scale-N.json, or scale-N-MODELS-WAYS.json with what was asked for,
and the curves beside it; without it they are written to `--out`.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from _record import FOLDER, record  # noqa: E402  it needs the line above

STEPS, SYNC_EVERY, FRAGMENTS, MOST_SECONDS = 150, 50, 2, 240
WAYS, MODELS = "one,ddp,fsdp2,diloco,healed", "small,large"
MEMBER = ROOT / "bench" / "_scale_member.py"
Figures = dict[str, float | str]


def command(way: str, gpus: int, member: list[str]) -> list[str]:
    if way == "one":
        return [sys.executable, *member]
    if way in ("diloco", "healed"):
        replicas = ["-m", "harness.training.replicas", "--replicas", str(gpus), "--"]
        return [sys.executable, *replicas, sys.executable, *member]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", str(gpus), "--standalone"]
    return [sys.executable, *launch, *member]


def warm_steps(given: argparse.Namespace) -> int:
    """Not timed: the first exchange sets up what the others use."""
    return int(given.sync_every // FRAGMENTS + 5)


def environment(way: str, given: argparse.Namespace) -> dict[str, str]:
    # With one fragment all weights are the same after the last round.
    fragments = 1 if way == "healed" else FRAGMENTS
    distributed = {
        "engine": "diloco",
        "sync_every": given.sync_every // FRAGMENTS * fragments,
        "fragments": fragments,
        # Where none is to die none goes on alone: the other would have to heal.
        "minimum_replicas": 1 if way == "healed" else given.gpus,
        "open_ports": True,
        "save_every": 1_000,  # a kept round of a billion parameters is 25 GB
        "join_s": 20,
        "timeout_s": 30 if way == "healed" else 90,
    }
    more = {
        "HARNESS_CONFIG": json.dumps({"distributed": distributed}),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "SCALE_TINY": str(int(given.tiny)),
        "SCALE_STEPS": str(given.steps),
        "SCALE_WARM": str(warm_steps(given)),
    }
    if way == "one":
        more["CUDA_VISIBLE_DEVICES"] = "0"
    return {**os.environ, **more}


def trained(way: str, model: str, given: argparse.Namespace, until: float) -> list[dict[str, Any]]:
    """What each card wrote; [] when it failed or was not finished in time."""
    with tempfile.TemporaryDirectory() as name:
        member = [str(MEMBER), way, model, name, str(given.gpus)]
        limit = min(MOST_SECONDS, until - time.monotonic())
        if limit < 20:
            print(f"{model} {way}: no time is left", flush=True)
            return []
        words = command(way, given.gpus, member)
        with (Path(name) / "log").open("wb+") as log:
            process = subprocess.Popen(
                words,
                cwd=name,
                env=environment(way, given),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                code = process.wait()
            log.seek(0)
            said = log.read().decode("utf-8", "replace").splitlines()
        found = [json.loads(path.read_text("utf-8")) for path in sorted(Path(name).glob("*.card"))]
        if code or not found:
            print(f"{model} {way}: exit code {code}", *said[-25:], sep="\n", flush=True)
            return []
        return found


def megabytes(way: str, parameters: float, gpus: int, sync_every: int) -> float:
    share = (gpus - 1) / gpus
    sent = {
        "one": 0.0,
        "ddp": 2 * share * 4,
        "fsdp2": share * (2 * 2 + 4),
        "diloco": 2 * share * 4 / sync_every,
    }
    return sent[way] * parameters / 1e6


def figures_of(
    way: str, cards: list[dict[str, Any]], before: dict[str, float], given: argparse.Namespace
) -> Figures:
    """`before`: tokens per second of the ways that this run has measured of the model."""
    tokens = sum(card["tokens"] / card["seconds"] for card in cards)
    last = [card["losses"][-max(1, len(card["losses"]) // 10) :] for card in cards]
    means = [sum(losses) / len(losses) for losses in last]
    sent = megabytes(way, cards[0]["parameters"], given.gpus, given.sync_every)
    figures: Figures = {
        "tokens per second": round(tokens),
        "GiB": round(max(card["peak"] for card in cards) / 2**30, 2),
        "MB a step": round(sent, 1),
        "loss": round(sum(means) / len(means), 4),
    }
    if way != "one" and "one" in before:
        figures["efficiency"] = round(tokens / (before["one"] * given.gpus), 3)
    if way == "diloco" and "ddp" in before:
        figures["over ddp"] = round(tokens / before["ddp"], 3)
    return figures


def curve(way: str, cards: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    steps = zip(*(card["losses"] for card in cards), strict=False)
    return [
        {"model": model, "way": way, "step": at, "loss": round(sum(of_all) / len(of_all), 5)}
        for at, of_all in enumerate(steps)
    ]


def healed(cards: list[dict[str, Any]]) -> Figures:
    """Of the replicas after one was killed: whether all ended with the same weights."""
    return {
        "healed: replicas that ended": len(cards),
        "healed: same weights": str(len({card["digest"] for card in cards}) == 1).lower(),
        "healed: rounds": min(card["rounds"] for card in cards),
    }


def keep(figures: Figures, given: argparse.Namespace) -> None:
    """Under a name that says which models and ways, where not all were asked for."""
    name, asked = f"scale-{given.gpus}", f"--gpus {given.gpus}"
    for option, usual in (("models", MODELS), ("ways", WAYS)):
        if (said := getattr(given, option)) != usual:
            name, asked = f"{name}-{said.replace(',', '-')}", f"{asked} --{option} {said}"
    for option, whole in (("steps", STEPS), ("sync_every", SYNC_EVERY)):
        if (number := getattr(given, option)) != whole:
            asked += f" --{option.replace('_', '-')} {number}"
    record(name, f"python bench/scale.py {asked} --record", figures, seed=0)


def keep_curves(rows: list[dict[str, Any]], given: argparse.Namespace, folder: Path) -> Path:
    name = "-".join(["scale", str(given.gpus), *given.models.split(","), "curves.csv"])
    with (folder / name).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["model", "way", "step", "loss"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return folder / name


def main(given: argparse.Namespace) -> int:
    until = time.monotonic() + 60 * given.minutes
    figures: Figures = {"gpus": given.gpus}
    rows: list[dict[str, Any]] = []
    failed = 0
    for model in given.models.split(","):
        before: dict[str, float] = {}
        for way in (name for name in given.ways.split(",") if name != "healed"):
            cards = trained(way, model, given, until)
            if not cards:
                failed += 1
                continue
            figures["card"] = cards[0]["card"]
            told = figures_of(way, cards, before, given)
            before[way] = float(told["tokens per second"])
            figures |= {f"{model} {way}: {name}": value for name, value in told.items()}
            rows += curve(way, cards, model)
            ready = max(card["ready"] for card in cards)
            print(model, way, json.dumps(told), f"ready in {ready:.0f} s", flush=True)
        if "healed" in given.ways and model == given.models.split(",")[0]:
            cards = trained("healed", model, given, until)
            failed += not cards
            figures |= healed(cards) if cards else {}
            print(json.dumps(healed(cards)) if cards else "healed: none", flush=True)
    print(json.dumps(figures), flush=True)
    recorded = given.record and not given.tiny
    print("curves:", keep_curves(rows, given, FOLDER if recorded else given.out))
    if recorded:
        figures |= {"steps": given.steps, "sync every": given.sync_every}
        keep(figures, given)
    return int(failed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--ways", default=WAYS, help="one before those that are compared with it")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument(
        "--sync-every",
        type=int,
        default=SYNC_EVERY,
        help=f"steps in which DiLoCo averages all weights, a multiple of {FRAGMENTS}",
    )
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--out", type=Path, default=Path(), help="a folder for the curves")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    if asked.sync_every % FRAGMENTS or asked.steps % asked.sync_every:
        parser.error(
            f"--steps {asked.steps} --sync-every {asked.sync_every}; expected a multiple of"
            f" {FRAGMENTS}, and steps a multiple of it"
        )
    if asked.steps <= warm_steps(asked):
        parser.error(f"--steps {asked.steps}; expected more than {warm_steps(asked)}, not timed")
    sys.exit(main(asked))
