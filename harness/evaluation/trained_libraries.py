"""Whether two experiments were trained with the same libraries: said beside their comparison, which
decides by scores alone."""

from collections.abc import Iterator

import orjson

from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.records import Run
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project

UNKNOWN = "libraries that are recorded on another machine"


def trained_otherwise(project: Project, one: str, other: str) -> list[str]:
    """Names of the libraries in which their trainings differ; empty too where a run of an older
    harness does not say."""
    mine, theirs = (_recorded(project, name) for name in (one, other))
    if mine == theirs or None in mine | theirs:
        return []
    try:
        maps = [[_map(project, kept) for kept in sorted(side, key=str)] for side in (mine, theirs)]
    except ObjectDamagedError:
        return [UNKNOWN]
    names = {name for side in maps for known in side for name in known}
    return sorted(
        name
        for name in names
        if {known.get(name) for known in maps[0]} != {known.get(name) for known in maps[1]}
    )


def _recorded(project: Project, experiment: str) -> set[str | None]:
    """What `runs.environment` recorded of each training behind the runs that count."""
    counted = counted_runs(project.ledger.runs(experiment))
    return {run.environment.get("libraries") for one in counted for run in _trained(project, one)}


def _trained(project: Project, run: Run) -> Iterator[Run]:
    yield from (
        [project.ledger.run(*name.split("/")) for name in run.taken_from]
        if run.taken_from
        else [run]
    )


def _map(project: Project, kept: str | None) -> dict[str, str]:
    known: dict[str, str] = orjson.loads(load_object(project.layout.objects, str(kept)))
    return known
