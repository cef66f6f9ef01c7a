"""The seeds of an experiment's runs: chosen by the harness, so that nobody picks the lucky ones."""

import hashlib
from collections.abc import Iterable, Iterator

from harness.domain.records import ApprovedPlan
from harness.plans.plan import plan_from


def seeds_for(plan_sha256: str, count: int) -> list[int]:
    """`count` distinct seeds of 31 bits, the same for every experiment of a plan, so that runs
    compare in pairs."""
    found: list[int] = []
    for seed in _stream(plan_sha256):
        if len(found) == count:
            break
        if seed not in found:
            found.append(seed)
    return found


def seeds_of(versions: Iterable[ApprovedPlan]) -> frozenset[int]:
    """Every seed that one of the versions asked for: a run keeps the seeds of the version it was
    started under."""
    return frozenset(
        seed
        for plan in versions
        for seed in seeds_for(plan.sha256, plan_from(plan.content).oracle.seeds)
    )


def _stream(text: str) -> Iterator[int]:
    number = 0
    while True:
        digest = hashlib.sha256(f"{text}/{number}".encode()).digest()
        yield int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
        number += 1
