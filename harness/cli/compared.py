"""What `harness experiment compare A B` shows: both sides in the order in which they were typed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.domain.records import Experiment
from harness.domain.statuses import spoken
from harness.views.tables import number, render_table, score_text


def compared_lines(records: Sequence[Experiment], document: Mapping[str, Any]) -> Iterator[str]:
    """For people."""
    first, second = records
    columns = ("", f"A  {first.id}", f"B  {second.id}")
    yield render_table("", columns, _sides(records, document))
    yield f"A against B: {document['why']}"
    if second.parent == first.id and first is not second:
        turned = f"`harness experiment compare {second.id} {first.id}`"
        yield f"A is the parent of B: {turned} asks whether the child is better."
    rows = [
        (name, curve["run"], curve["metric"], curve["line"], number(curve["last"]))
        for name, of in document["curves"].items()
        for curve in of
    ]
    if rows:
        yield render_table("", ("experiment", "run", "logged", "curve", "last"), rows)
    if "code" in document:
        files = [f"{name} ({how})" for name, how in document["code"]["files"].items()]
        yield f"code, from B to A: {', '.join(files) or 'the same'}"
        yield document["code"]["diff"]
    if "config" in document:
        yield document["config"]["diff"] or "config.yaml: the same"


def _sides(
    records: Sequence[Experiment], document: Mapping[str, Any]
) -> Iterator[tuple[str, ...]]:
    scores = [document["scores"][one.id] for one in records]
    yield ("idea", *(one.hypothesis for one in records))
    yield ("builds on", *(one.parent or "-" for one in records))
    for split in ("validation", "held_out"):
        yield (spoken(split), *(score_text(one[split]) for one in scores))
    yield ("verdict", *(_verdict(document["verdicts"][one.id]) for one in records))


def _verdict(verdict: Mapping[str, Any] | None) -> str:
    return "-" if verdict is None else f"{verdict['verdict']} ({spoken(verdict['gate'])})"
