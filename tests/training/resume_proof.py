"""Training killed -9 at seeded moments and resumed, each kind beside its unbroken run.

    python -m tests.training.resume_proof [--record] [--processes 2] [--kinds KIND ...]

Exit 0 only if every life ended as the unbroken one. As many kinds at once as there are processes,
each on one thread. `--record` writes docs/evidence/resume.json, where figures of kinds that were
not asked for stay.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import torch

from bench._record import FOLDER, record
from tests.training import classical, hf_loop, other_loops, torch_loop
from tests.training.kills import Program, prove
from tests.training.supervised import TORCH, TRAINER, prove_supervised

SEED = 2026
FORKED: dict[str, Program] = {
    "torch": lambda log, folder: torch_loop.run(log, folder, epochs=12, in_steps=0),
    "torch_saving_at_every_step": lambda log, folder: torch_loop.run(
        log, folder, epochs=4, in_steps=1
    ),
    "transformers": hf_loop.train,
    "optuna": classical.search,
    "cross_validation": classical.folds,
}
"""The training alone is killed, in a child process."""
TOLD: dict[str, Program] = {
    "lightning": other_loops.lightning,
    "optuna_callback": other_loops.optuna_callback,
    "lightgbm_init_model": other_loops.boosting,
    "average_of_weights": other_loops.average,
    "loop_by_hand": other_loops.by_hand,
}
"""Each ends as the unbroken run, or its rows say why not."""
SUPERVISED = {"harness_train_torch": TORCH, "harness_train_transformers": TRAINER}
"""Killed together with `harness train`, and resumed by `harness train --resume`."""
MOMENTS = dict.fromkeys((*FORKED, *SUPERVISED), 50) | {"harness_train_transformers": 15}
MOMENTS |= dict.fromkeys(TOLD, 20)
KINDS = tuple(MOMENTS)


@dataclass(frozen=True, kw_only=True)
class Proof:
    moments: int
    """Each ended as the unbroken run, or, where it is told, said why not; else AssertionError was
    raised."""
    kills: int
    """That met a living process; a moment may have two."""
    seconds: float

    def line(self, kind: str) -> str:
        or_told = ", or told as not exact" if kind in TOLD else ""
        return (
            f"{kind}: {self.kills} kills at {self.moments} moments, each the unbroken run to the"
            f" last bit{or_told}"
        )


def proved(kind: str, folder: Path) -> Proof:
    """Raises AssertionError that names the first moment with another end."""
    begun, moments = time.monotonic(), MOMENTS[kind]
    if kind in FORKED or kind in TOLD:
        program, told = (FORKED | TOLD)[kind], kind in TOLD
        kills = prove(program, folder, moments=moments, seed=SEED, unbroken_lives=3, told=told)
    else:
        kills = prove_supervised(SUPERVISED[kind], folder, moments=moments, seed=SEED)
    return Proof(moments=moments, kills=kills, seconds=time.monotonic() - begun)


def attempted(kind: str) -> Proof | str:
    """In a process of its own. What went wrong, where something did."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = proved(kind, Path(folder))
        except AssertionError as error:
            return str(error)
    print(found.line(kind), f"({found.seconds:.0f} s)", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, metavar="KIND")
    given = parser.parse_args()
    slowest_first = sorted(given.kinds, key=lambda kind: kind in FORKED)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        ended = dict(zip(slowest_first, pool.map(attempted, slowest_first), strict=True))
    failed = {kind: found for kind, found in ended.items() if isinstance(found, str)}
    for kind, why in failed.items():
        print(f"FAIL: {kind}: {why}")
    proofs = {kind: found for kind, found in ended.items() if isinstance(found, Proof)}
    if given.record and proofs:
        write(proofs)
    moments, kills = (
        sum(getattr(found, name) for found in proofs.values()) for name in ("moments", "kills")
    )
    print(f"{moments} moments of {len(proofs)} kinds equal, {kills} kills")
    return 1 if failed else 0


def write(proofs: Mapping[str, Proof]) -> None:
    path = FOLDER / "resume.json"
    figures = json.loads(path.read_bytes())["figures"] if path.exists() else {}
    for kind, found in proofs.items():
        figures[f"{kind}_moments"] = figures[f"{kind}_equal"] = found.moments
        figures[f"{kind}_kills"] = found.kills
        figures[f"{kind}_seconds"] = round(found.seconds)
    known = [kind for kind in KINDS if f"{kind}_moments" in figures]
    total = {
        name: sum(figures[f"{kind}_{name}"] for kind in known)
        for name in ("moments", "equal", "kills")
    }
    record("resume", "make resume", {**figures, "kinds": len(known), **total}, seed=SEED)


if __name__ == "__main__":
    sys.exit(main())
