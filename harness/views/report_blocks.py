"""A report as blocks, which HTML and PDF show alike; beside every number stands its level:
claimed, logged, measured or recomputed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.artifacts.resources import in_words
from harness.domain.plain_text import in_quotes, one_line, plain
from harness.domain.statuses import ExperimentStatus
from harness.views import figures
from harness.views.drawing import Drawing
from harness.views.report import again, scored_and_judged
from harness.views.tables import figure, status_words

_LONGEST = 600
LEVELS = (
    "claimed: an agent or a person wrote it. logged: the training wrote it. measured: the harness"
    " timed or counted it. recomputed: the harness computed it from the checkpoint."
)


@dataclass(frozen=True, kw_only=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    text: str
    quiet: bool = False
    """A note below a figure or a table."""


@dataclass(frozen=True, kw_only=True)
class Items:
    texts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    drawing: Drawing
    words: str
    """Below it: what is drawn, and the level of its numbers."""


Block = Heading | Paragraph | Items | Table | Figure


def blocks(document: Mapping[str, Any], prose: Sequence[Block] = ()) -> Iterator[Block]:
    """The report's document (`views.report.report`) with `series`; `prose` is an analyst's."""
    plan, rows = document["plan"], document["experiments"]
    yield Heading(text=f"Report: {one_line(plan['name'], 60)}", level=1)
    yield Paragraph(text=_plan(plan))
    yield Paragraph(text=LEVELS, quiet=True)
    yield from prose
    yield Heading(text="Kept")
    yield from _kept(rows)
    yield Heading(text="What was tried")
    yield from _drawn(
        figures.tree(rows),
        "Each experiment below the one that it builds on; validation, recomputed where it is a"
        " number. A full dot is kept.",
        "No experiment yet.",
    )
    yield Heading(text="Scores")
    yield from _drawn(
        figures.scores(plan, rows),
        "Dots with their 95% intervals: recomputed. A hollow dot has no interval. Dashed: the"
        " plan's tiers.",
        "No score can be shown.",
    )
    if rows:
        yield _table(rows)
        yield Paragraph(text="± is half of the 95% interval.", quiet=True)
    yield Heading(text="Experiments")
    for row in rows:
        yield from _experiment(row, document["series"]["curves"].get(row["experiment"], ()))
    failures = [line for row in rows for line in row["failures"]]
    if failures:
        yield Heading(text="What went wrong")
        yield Items(texts=failures)
    yield Heading(text="Budget over time")
    spent = figures.budget(document["series"]["budget"])
    yield from _drawn(
        [] if spent is None else [spent],
        "Minutes of training so far: measured. A dot: an experiment was decided. Dashed, where it"
        " is near: the plan's limit.",
        "Nothing was trained yet.",
    )
    yield Items(texts=list(_spent(document)))


def _plan(plan: Mapping[str, Any]) -> str:
    tiers = ", ".join(f"{name} {one:g}" for name, one in plan["tiers"].items() if one is not None)
    return (
        f"{in_quotes(plan['objective'], _LONGEST)} Metric: {one_line(plan['metric'], 60)},"
        f" {plan['direction']}; tiers: {tiers or 'none'}; seeds: {plan['seeds']}."
        f" Plan version {plan['version']}, {one_line(plan['path'], 200)}."
    )


def _drawn(drawings: Sequence[Drawing], words: str, none: str) -> Iterator[Block]:
    if not drawings:
        yield Paragraph(text=none)
    for place, drawing in enumerate(drawings, start=1):
        of = f" ({place} of {len(drawings)})" if len(drawings) > 1 else ""
        yield Figure(drawing=drawing, words=words + of)


def _kept(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    kept = [row for row in rows if row["status"] == ExperimentStatus.KEPT]
    if not kept:
        yield Paragraph(text="Nothing is kept yet.")
    for row in kept:
        words = in_quotes(row["hypothesis"], _LONGEST)
        yield Paragraph(text=f"{row['experiment']}: {words}")
        yield Items(texts=list(_facts(row)))


def _facts(row: Mapping[str, Any]) -> Iterator[str]:
    yield from scored_and_judged(row, one_line)
    if row["compared"]:
        yield f"against {row['against']}: {one_line(row['compared'], _LONGEST)} (recomputed)"
    if row["predict_code"]:
        yield f"scored by the {row['predict_code']}"
    for decision in row["decisions"]:
        by, why = one_line(decision["by"], 80), in_quotes(decision["reason"], _LONGEST)
        yield f"{decision['id']} {decision['kind']} by {by}: {why}"
    for made in row["reproductions"]:
        yield f"{again(made)} (recomputed)"
    for found in row["findings"]:
        yield f"[{found['code']}] {one_line(found['message'], _LONGEST)}"
    if used := ", ".join(in_words(row["resources"])):
        yield f"used at most: {used} (measured)"


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    head = ("id", "validation", "held-out", "level", "verdict", "status", "builds on")
    return Table(
        head=head,
        rows=[
            (
                row["experiment"],
                figure(row["validation"]),
                figure(row["held_out"]),
                _level(row),
                str(row["verdict"] or "-"),
                status_words(row),
                row["parent"] or "-",
            )
            for row in rows
        ],
    )


def _level(row: Mapping[str, Any]) -> str:
    levels = (row[split]["evidence"] for split in ("validation", "held_out"))
    return next((level for level in levels if level), "-")


def _experiment(row: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    yield Heading(text=f"{row['experiment']} ({status_words(row)})", level=3)
    yield Paragraph(text=in_quotes(row["hypothesis"], _LONGEST))
    # Of a kept one they stand at the top.
    if row["status"] != ExperimentStatus.KEPT:
        yield Items(texts=list(_facts(row)))
    for one in curves:
        drawing = figures.curves(one["metric"], one["axis"], one["lines"])
        if drawing is not None:
            name = one_line(one["metric"], 60)
            yield Figure(drawing=drawing, words=f"{name}, a line for each seed: logged.")


def _spent(document: Mapping[str, Any]) -> Iterator[str]:
    looks, budget = document["looks"], document["budget"]
    yield f"looks at held-out: {looks['held_out']} of {looks['queries']} (measured)"
    yield f"told of secret labels: {looks['bits_told']:g} of {looks['bits']:g} bits (measured)"
    experiments, minutes = budget["experiments"], budget["minutes"]
    yield f"experiments: {experiments['used']} of {experiments['of']} (measured)"
    yield f"training: {minutes['used']:g} of {minutes['of']:g} minutes (measured)"
    if budget["usd"] is not None:
        usd = budget["usd"]
        yield f"models: {usd['used']:.2f} of {usd['of']:.2f} USD (measured tokens at list price)"
    if budget["tokens"] is not None:
        tokens = budget["tokens"]
        yield f"models: {tokens['used']:,} of {tokens['of']:,} tokens (measured)"


def analyst(text: str, claims: Sequence[Mapping[str, Any]]) -> list[Block]:
    """An analyst's words, each claim of them with its level; a claim that does not hold never comes
    here (see `cli.report`)."""
    made: list[Block] = [Heading(text="In an analyst's words")]
    made += [
        Paragraph(text=one_line(part.lstrip("# "), 4000))
        for part in plain(text).split("\n\n")
        if part.strip()
    ]
    if claims:
        rows = [
            (
                one_line(one["metric"], 60),
                one["value"],
                str(one["kind"]),
                one_line(one["text"], 120),
            )
            for one in claims
        ]
        made.append(Table(head=("number", "value", "level", "sentence"), rows=rows))
    return made
