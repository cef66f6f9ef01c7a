"""CHECKLIST.md: one row per experiment; the newest and all unfinished ones first.

Older experiments are on pages of 1,000. Rows leave the first page in batches, so that a new
experiment rewrites one file of bounded size.
"""

from collections.abc import Mapping
from typing import Any

from harness.artifacts.locate import Layout
from harness.domain.ids import experiment_id
from harness.domain.plain_text import cell, in_quotes
from harness.domain.statuses import ExperimentStatus, Split, spoken
from harness.projections.scores import change_text, metric_of, shown_score
from harness.projections.text import BANNER, page, row, table

COLUMNS = (
    "experiment",
    "parent",
    "status",
    "hypothesis",
    "metric",
    "change against parent",
    "tier",
    "verdict",
    "top shortfall",
    "evidence level",
    "next planned",
)
NEWEST = 200
BATCH = 100
PAGE = 1000
_LONGEST = 158
"""Characters of a text in a cell, without its quotation marks."""
OPEN_SHOWN = 200

_NEXT = {
    ExperimentStatus.OPEN: "train it",
    ExperimentStatus.RUNNING: "judge it",
    ExperimentStatus.JUDGED: "decide, or mend it",
}


def boundary(last: int) -> int:
    """The highest experiment number on an older page; 0 if none. `last`: the highest of all."""
    return max(0, (last - NEWEST) // BATCH * BATCH)


def page_of(experiment_number: int) -> tuple[int, int]:
    """First and last number of the older page that has this experiment."""
    first = (experiment_number - 1) // PAGE * PAGE + 1
    return first, first + PAGE - 1


def checklist_row(experiment: Mapping[str, Any], plan: Mapping[str, Any] | None) -> str:
    """One row. `experiment`: as `checklist_inputs` gives it; `plan`: front matter."""
    summary, parent = experiment["summary"], experiment["parent_summary"]
    shown = [score for split in Split if (score := shown_score(summary, split)) is not None]
    scores = "; ".join(
        f"{score.figure} ({spoken(score.split)}, {_seeds(score.n_seeds, experiment['launches'])})"
        for score in shown
    )
    verdict = summary["verdict"]
    return row(
        (
            cell(experiment["id"]),
            cell(experiment["parent"]),
            cell(experiment["status"] + (" (OVERRIDE)" if experiment["overrides"] else "")),
            _quoted(experiment["hypothesis"]),
            cell(f"{metric_of(plan)} {scores}" if scores else None),
            cell(change_text(summary, parent)),
            cell(verdict["tier"] if verdict else None),
            cell(f"{verdict['verdict']} ({spoken(verdict['gate'])})" if verdict else None),
            _quoted(summary["shortfall"]),
            cell(shown[-1].evidence if shown else None),
            cell(_next_planned(experiment["status"], summary)),
        )
    )


def first_page(
    newest: list[str], unfinished: list[str], unfinished_total: int, last: int, layout: Layout
) -> str:
    """CHECKLIST.md from the rows above the boundary and the unfinished ones below it."""
    edge = boundary(last)
    older = [
        f"- [{experiment_id(first)} to {experiment_id(min(first + PAGE - 1, edge))}]({target.name})"
        for first in range(1, edge + 1, PAGE)
        if (target := layout.checklist_page(first, first + PAGE - 1))
    ]
    hidden = unfinished_total - len(unfinished)
    more = (
        [f"{hidden} more unfinished: see `harness experiment list` or the pages below."]
        if hidden
        else []
    )
    return page(
        [BANNER],
        ["# Experiments"],
        table(COLUMNS, newest) if newest else ["None yet."],
        ["## Older, unfinished"] if unfinished else [],
        table(COLUMNS, unfinished) if unfinished else [],
        more,
        ["## Older", "", *older] if older else [],
    )


def older_page(first: int, rows: list[str], edge: int) -> str:
    """The page of experiments `first` to `first + 999`, up to the boundary `edge`."""
    until = min(first + PAGE - 1, edge)
    title = f"# Experiments {experiment_id(first)} to {experiment_id(until)}"
    return page([BANNER], [title], table(COLUMNS, rows))


def _quoted(text: str | None) -> str:
    return cell(in_quotes(text, _LONGEST) if text else None)


def _seeds(counted: int, launched: int) -> str:
    """Seeds in the score, and the launches: a best of N must show its N."""
    return f"seeds: {counted}" + (f" of {launched} launches" if launched > counted else "")


def _next_planned(status: str, summary: Mapping[str, Any]) -> str | None:
    """The first idea of next.md at the verdict, else the step that the status implies."""
    if idea := summary.get("next_planned"):
        return in_quotes(idea, _LONGEST)
    if summary["child"] is not None:
        return str(summary["child"])
    if status in _NEXT and not (summary["decision"] and status == ExperimentStatus.OPEN):
        return _NEXT[ExperimentStatus(status)]
    return str(summary["decision"]["choice"]) if summary["decision"] else None
