"""Made faults and odd healthy shapes, in two halves: one that thresholds were set on, measured on
other seeds, and one that they were not."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.detectors import made_up_faults, unseen, unusual_trainings
from bench.detectors.made_up_faults import MadeFault
from bench.detectors.outcomes import wilson
from harness.detectors.watch import RunWatch

SEEDS = range(100, 105)
"""Thresholds were set on seeds below these."""
Shape = Callable[[int], Iterable[dict[str, Any]]]


@dataclass(kw_only=True)
class Half:
    told: dict[str, int] = field(default_factory=dict)
    """Kind of fault -> runs in which an alarm named it."""
    asked: dict[str, dict[int, str]] = field(default_factory=dict)
    """Shape -> seed -> the first alarm that asked for a diagnosis."""
    left: dict[str, int] = field(default_factory=dict)
    """Shape -> runs in which one still asked for it at the end."""

    @property
    def shares(self) -> dict[str, tuple[int, int]]:
        """Hits and runs: recall, false (ever), open (at the end, which is what blocks a gate)."""
        runs = len(SEEDS) * len(self.asked)
        return {
            "recall": (sum(self.told.values()), len(SEEDS) * len(self.told)),
            "false": (sum(map(len, self.asked.values())), runs),
            "open": (sum(self.left.values()), runs),
        }


def measured(folder: Path) -> dict[str, Half]:
    """Rows that `folder` has are not made again."""
    return {
        "known": half(made_up_faults.FAULTS, unusual_trainings.SHAPES, folder / "known"),
        "unseen": half(unseen.FAULTS, unseen.SHAPES, folder / "unseen"),
    }


def half(faults: Mapping[str, MadeFault], shapes: Mapping[str, Shape], folder: Path) -> Half:
    found = Half()
    for name, fault in faults.items():
        found.told[name] = sum(_told(fault, seed) for seed in SEEDS)
    for name, shape in shapes.items():
        found.asked[name], found.left[name] = {}, 0
        for seed in SEEDS:
            watch = RunWatch()
            rows = kept(folder / f"{name}-{seed}", partial(shape, seed))
            said = [a for row in rows for a in watch.feed(row) if a.open]
            if said:
                found.asked[name][seed] = said[0].code
            found.left[name] += bool(watch.open)
    return found


def kept(path: Path, made: Callable[[], Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows at `path`; made, where there are none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text("".join(json.dumps(row) + "\n" for row in made()), "utf-8")
        part.rename(path)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _told(fault: MadeFault, seed: int) -> bool:
    watch = RunWatch()
    return any(
        alarm.code in fault.codes and (alarm.open or (fault.noted and not alarm.recovered))
        for row in fault.rows(seed)
        for alarm in watch.feed(row)
    )


def figures(halves: Mapping[str, Half]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name, each in halves.items():
        found[f"{name}_fault_kinds"] = len(each.told)
        found[f"{name}_shapes"] = len(each.asked)
        for what, (hits, runs) in each.shares.items():
            low, high = wilson(hits, runs)
            found[f"{name}_{what}"] = f"{hits} of {runs}"
            found[f"{name}_{what}_share"] = round(hits / runs, 4)
            found[f"{name}_{what}_low"] = round(low, 4)
            found[f"{name}_{what}_high"] = round(high, 4)
    return found


def table(halves: Mapping[str, Half]) -> str:
    lines = [
        "Made faults and odd healthy shapes (five seeds each):",
        "",
        "| half | what | runs | share | 95% interval | where |",
        "|---|---|---|---|---|---|",
    ]
    names = {
        "recall": "faults named",
        "false": "healthy runs that asked for a diagnosis",
        "open": "healthy runs that did so at their end",
    }
    for half_name, each in halves.items():
        for what, (hits, runs) in each.shares.items():
            low, high = wilson(hits, runs)
            lines.append(
                f"| {half_name} | {names[what]} | {hits} of {runs} | {hits / runs:.1%} |"
                f" {low:.1%} to {high:.1%} | {_where(each, what)} |"
            )
    return "\n".join(lines)


def _where(each: Half, what: str) -> str:
    count = len(SEEDS)
    if what == "recall":
        missed = {name: count - told for name, told in each.told.items() if told < count}
        return ", ".join(f"{name} missed {n} times" for name, n in missed.items()) or "-"
    if what == "open":
        return ", ".join(f"{name} {n}" for name, n in each.left.items() if n) or "-"
    return (
        ", ".join(
            f"{name} {len(seeds)} ({', '.join(sorted(set(seeds.values())))})"
            for name, seeds in each.asked.items()
            if seeds
        )
        or "-"
    )
