"""The pictures of `snapshot` for a terminal, as text; colours only where a terminal asks for
them."""

import io
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.domain.statuses import spoken

_STYLES = {
    "PASS": "green",
    "FAIL": "red",
    "INCONCLUSIVE": "yellow",
    "STALE": "yellow",
    "kept": "green",
}


def render_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, colour: bool = False
) -> str:
    """A table no wider than the terminal; cells are text, never markup."""
    table = Table(
        title=title or None, title_justify="left", title_style="bold", header_style="bold", box=None
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    width = max(60, shutil.get_terminal_size((120, 40)).columns)
    stream = io.StringIO()
    Console(
        file=stream, width=width, force_terminal=colour, no_color=not colour, highlight=False
    ).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def score_text(row: dict[str, Any]) -> str:
    """E.g. "0.931 ±0.004 [0.915, 0.946] validation, 3 seeds, recomputed"; a dash when there is no
    score."""
    if row["score"] is None:
        return "-"
    spread = "" if row["spread"] is None else f" ±{row['spread']:.3f}"
    interval = "" if row["interval"] is None else " [{:.3f}, {:.3f}]".format(*row["interval"])
    seeds = "1 seed" if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds"
    if row["launches"] > row["n_seeds"]:
        seeds += f" of {row['launches']} launches"
    return (
        f"{row['score']:.4g}{spread}{interval} {spoken(row['split'])}, {seeds}, {row['evidence']}"
    )


def experiments_table(rows: Sequence[dict[str, Any]], *, colour: bool = False) -> str:
    return render_table(
        "",
        (
            "experiment",
            "status",
            "parent",
            "score",
            "tier",
            "verdict",
            "hypothesis",
            "first finding",
        ),
        [
            (
                row["id"],
                row["status"],
                row["parent"] or "-",
                score_text(row),
                row["tier"] or "-",
                row["verdict"] or "-",
                row["hypothesis"],
                _short(row["findings"][0]["message"]) if row["findings"] else "-",
            )
            for row in rows
        ],
        colour=colour,
    )


def _short(text: str, longest: int = 80) -> str:
    """`experiment show` has the whole text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _cell(value: Any) -> str:
    text = escape(str(value))
    style = _STYLES.get(str(value))
    return f"[{style}]{text}[/{style}]" if style else text
