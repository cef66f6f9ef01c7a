"""Tables, scores, numbers and durations as text for a terminal."""

import io
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harness.domain.late import later
from harness.domain.plain_text import TableText, one_line
from harness.domain.statuses import spoken

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich import text as rich_text

    from harness.views import console
else:  # an answer without a table does not wait for it
    rich_table, rich_text = later("rich.table"), later("rich.text")
    console = later("harness.views.console")

_STYLES = {
    "PASS": "green",
    "FAIL": "red",
    "INCONCLUSIVE": "yellow",
    "STALE": "yellow",
    "kept": "green",
}


def render_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> TableText:
    """A table no wider than the terminal, coloured on one. Cells are plain text, never markup."""
    colour = sys.stdout is not None and sys.stdout.isatty()
    table = rich_table.Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=None,
    )
    for column in columns:
        table.add_column(rich_text.Text(one_line(column)), overflow="fold")
    table.show_header = bool(columns)
    for row in rows:
        texts = [str(value) for value in row]
        styles = [_STYLES.get(text, "") for text in texts]
        table.add_row(*map(rich_text.Text, map(one_line, texts), styles))
    width = max(60, shutil.get_terminal_size((120, 40)).columns)
    stream = io.StringIO()
    console.PlainConsole(
        file=stream, width=width, force_terminal=colour, no_color=not colour, highlight=False
    ).print(table)
    lines = (line.rstrip() for line in stream.getvalue().splitlines())
    return TableText("\n".join(lines) + "\n")


def pairs_table(rows: Iterable[tuple[str, Any]]) -> TableText:
    """A name and what it is a row, without a head; a name that comes again stands once."""
    shown, before = [], ""
    for name, value in rows:
        shown.append((name if name != before else "", value))
        before = name
    return render_table("", (), shown)


def score_text(row: dict[str, Any]) -> str:
    """E.g. "0.931 ±0.004 [0.915, 0.946] validation, 3 seeds, recomputed"; "-" without a score."""
    if row["score"] is None and row["released"] is None:
        return "-"
    spread = "" if row["spread"] is None else f" ±{row['spread']:.3f}"
    interval = "" if row["interval"] is None else " [{:.3f}, {:.3f}]".format(*row["interval"])
    seeds = "1 seed" if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds"
    if row["launches"] > row["n_seeds"]:
        seeds += f" of {row['launches']} launches"
    if row["released"] is not None:
        return f"{row['released']['words']}, {spoken(row['split'])}, {seeds}, {row['evidence']}"
    return (
        f"{row['score']:.4g}{spread}{interval} {spoken(row['split'])}, {seeds}, {row['evidence']}"
    )


def value_text(row: dict[str, Any]) -> str:
    """Of one evaluation; "sealed" where it has a value that is told nobody."""
    if row["value"] is None:
        return "sealed" if row["scored"] else "no score"
    return f"{row['value']:.6g}"


def tier_text(tier: str | None, released: dict[str, Any] | None) -> str:
    """E.g. "must"; "must or more" where the score lies beyond the number that was told."""
    more = " or more" if released is not None and released.get("or_more") else ""
    return f"{tier}{more}" if tier else "-"


def experiments_table(rows: Sequence[dict[str, Any]]) -> TableText:
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
                row["experiment"],
                row["status"] + _of_tree(row["tree"]),
                row["parent"] or "-",
                score_text(row),
                tier_text(row["tier"], row["released"]),
                row["verdict"] or "-",
                row["hypothesis"],
                _short(row["findings"][0]["message"]) if row["findings"] else "-",
            )
            for row in rows
        ],
    )


def _of_tree(tree: dict[str, Any] | None) -> str:
    return "" if tree is None or tree["here"] else f", of {tree['words']}"


def _short(text: str, longest: int = 80) -> str:
    """Cut to `longest` characters; `experiment show` has the whole text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(seconds: float | None) -> str:
    """E.g. "42 s", "3 m 20 s", "2 h 05 m", "3 d 4 h"; "?" when unknown."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return "?"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE:02d} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} m"
    return f"{whole // _DAY:,} d {whole % _DAY // _HOUR} h"


def number(value: float | None) -> str:
    """A metric in at most nine characters: four significant digits, small integers unchanged."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return f"{value:.3g}"


def count(value: float | None) -> str:
    """A counter such as an epoch: "1,200", "0.75"."""
    if value is None or not math.isfinite(value):
        return "?"
    return f"{int(value):,}" if value == int(value) else f"{value:.2f}"
