"""All runs of the measurement as files of rows, made by several processes; a file that is there is
not made again."""

import json
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

SEEDS = range(10)
TWINS = 4
TUNED, REPORTED = 3, 6
"""Healthy runs of a shape: seeds that thresholds were set on, and held-out ones."""


class Job(NamedTuple):
    group: str
    """clean, faulty, trained, other or synthetic."""
    name: str
    """The shape, or the kind of fault."""
    task: str
    seed: int
    order: int = 0

    @property
    def held_out(self) -> bool:
        """Seeds that no threshold was set on."""
        return self.seed % 2 == 1 if self.group in ("clean", "faulty") else self.seed >= TUNED

    @property
    def file(self) -> str:
        return "-".join(
            [
                self.group,
                self.name.replace(" ", "_").replace(",", ""),
                self.task,
                *map(str, self[3:]),
            ]
        )


def jobs() -> list[Job]:
    from bench.detectors import healthy_shapes, made_up_rows, other_trainings
    from bench.detectors.faults import KINDS

    found = [
        Job("faulty", kind, item.tasks[seed // 2 % len(item.tasks)], seed)
        for kind, item in KINDS.items()
        for seed in SEEDS
    ]
    twins = sorted({(job.task, job.seed) for job in found})
    found += [
        Job("clean", "clean", task, seed, order) for task, seed in twins for order in range(TWINS)
    ]
    seeds = range(TUNED + REPORTED)
    found += [
        Job("trained", shape, healthy_shapes.SHAPES[shape]["task"], seed)
        for shape in healthy_shapes.SHAPES
        for seed in seeds
    ]
    found += [
        Job("other", name, "", seed)
        for name in other_trainings.TRAININGS
        for seed in range(TUNED + 2 * REPORTED)
    ]
    return found + [
        Job("synthetic", name, "", seed) for name in made_up_rows.SHAPES for seed in seeds
    ]


def made(job: Job) -> Iterator[dict[str, Any]]:
    """The rows of one run."""
    from bench.detectors import healthy_shapes, made_up_rows, other_trainings
    from bench.detectors.faults import KINDS
    from bench.detectors.real_training import Fault, Recipe, Run

    if job.group == "synthetic":
        return made_up_rows.rows(job.name, job.seed)
    if job.group == "trained":
        return Run(healthy_shapes.recipe(job.name, 100 + job.seed), Fault(0)).rows()
    if job.group == "other" or job.task in other_trainings.TRAININGS:
        fault = job.name if job.group == "faulty" else ""
        seed = 100 + job.seed if job.group == "other" else job.seed + 1000 * job.order
        return other_trainings.TRAININGS[job.task or job.name](seed, fault)
    kind = KINDS[job.name].fault if job.group == "faulty" else Fault
    given = {
        **healthy_shapes.BASE[job.task],
        "task": job.task,
        "seed": job.seed,
        "order": job.order,
    }
    return Run(Recipe(**given), kind(job.seed)).rows()


def prepare(folder: Path, wanted: Iterable[Job], processes: int) -> None:
    """Make what is not there yet."""
    todo = [(folder / job.file, job) for job in wanted if not (folder / job.file).exists()]
    with get_context("spawn").Pool(processes) as pool:
        for number, _ in enumerate(pool.imap_unordered(_make, todo, chunksize=4), 1):
            if number % 100 == 0:
                print(f"{number} of {len(todo)} runs", flush=True)


def read(folder: Path, job: Job) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / job.file).read_text("utf-8").splitlines()]


def _make(item: tuple[Path, Job]) -> None:
    import torch

    torch.set_num_threads(1)
    path, job = item
    text = "".join(json.dumps(row) + "\n" for row in made(job))
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf-8")
    part.rename(path)
