"""Tables, scores, numbers and durations as text for a terminal."""

import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.domain.grade import Grade
from harness.domain.plain_text import TableText, one_line, plain
from harness.domain.statuses import CLOSED_EXPERIMENTS, spoken
from harness.views.layout import broken, cell_width, padded, table_lines

_GREEN, _YELLOW = "32", "33"
_STYLES = {
    "PASS": _GREEN,
    "FAIL": "31",
    "INCONCLUSIVE": _YELLOW,
    "STALE": _YELLOW,
    "kept": _GREEN,
}
_NARROWEST = 30
_MOST_FIGURE = 16
"""Characters of a score in a table with its interval; a longer one stands there without."""
_BOUNDS = {"at least": "≥ ", "at most": "≤ "}


def render_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> TableText:
    """A table no wider than the terminal, coloured on one. Cells are plain text, never markup."""
    colour = _coloured()
    cells = [[plain(one_line(str(value))) for value in row] for row in rows]
    width = _width()
    head = [plain(one_line(column)) for column in columns]
    shown = [_bold(title, colour)] if title else []
    for number, line in enumerate(table_lines(head, cells, width)):
        bold = number == 0 and bool(head) and len(line) > 1
        texts = (_cell(text, room, colour, bold=bold) for text, room in line)
        shown.append(f" {'  '.join(texts)}".rstrip())
    return TableText("\n".join(shown) + "\n")


def fitted(lines: Iterable[str]) -> Iterator[str]:
    """Lines around tables, on a terminal no wider than it; elsewhere as they are."""
    narrow = sys.stdout is not None and sys.stdout.isatty()
    for line in lines:
        if isinstance(line, TableText) or not narrow:
            yield line
        else:
            yield from broken(plain(line), _width())


def _width() -> int:
    return max(_NARROWEST, shutil.get_terminal_size((120, 40)).columns)


def _coloured() -> bool:
    dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
    return sys.stdout is not None and sys.stdout.isatty() and not dumb


def _bold(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def _cell(text: str, room: int, colour: bool, *, bold: bool) -> str:
    style = _STYLES.get(text)
    if bold:
        return _bold(padded(text, room), colour)
    if style is None or not colour:
        return padded(text, room)
    return f"\x1b[{style}m{text}\x1b[0m{' ' * (room - cell_width(text))}"


def pairs_table(rows: Iterable[tuple[str, Any]]) -> TableText:
    """A name and what it is a row, without a head; a name that comes again stands once."""
    shown, before = [], ""
    for name, value in rows:
        shown.append((name if name != before else "", value))
        before = name
    return render_table("", (), shown)


def score_text(row: dict[str, Any]) -> str:
    """E.g. "0.931 [0.915, 0.946] validation, 3 seeds, spread 0.004, recomputed"; "-" without a
    score. ± is kept for half of an interval."""
    if row["score"] is None and row["released"] is None:
        return "-"
    spread = "" if row["spread"] is None else f", spread {row['spread']:.3f}"
    interval = "" if row["interval"] is None else " [{:.3f}, {:.3f}]".format(*row["interval"])
    seeds = "1 seed" if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds"
    if row["launches"] > row["n_seeds"]:
        seeds += f" of {row['launches']} launches"
    if row["released"] is not None:
        return f"{row['released']['words']}, {spoken(row['split'])}, {seeds}, {row['evidence']}"
    score = rounded(row["score"], row["interval"])
    return f"{score}{interval} {spoken(row['split'])}, {seeds}{spread}, {row['evidence']}"


def rounded(score: float, interval: Sequence[float] | None) -> str:
    """To two digits of half its interval: what lies beyond them is noise."""
    half = 0.0 if interval is None else (interval[1] - interval[0]) / 2
    return f"{score:.{_digits(half)}f}" if half > 0 else f"{score:.4g}"


def _digits(half: float) -> int:
    return max(0, 1 - math.floor(math.log10(half)))


def figure(total: Mapping[str, Any]) -> str:
    """A score in a few characters, rounded to its interval: "0.943 ±0.016"; of sealed labels what
    was told: "0.94", "≥ 0.86", "not better"."""
    released, interval = total["released"], total["interval"]
    if released is not None:
        bound = _BOUNDS.get(released["bound"], "")
        said = str(released["answer"]) if total["score"] is None else ""
        return said or f"{bound}{total['score']:g}"
    if total["score"] is None:
        return "-"
    if interval is None:
        return f"{total['score']:.4g}"
    half = (interval[1] - interval[0]) / 2
    digits = _digits(half) if half > 0 else 4
    whole = f"{total['score']:.{digits}f} ±{half:.{digits}f}"
    return whole if len(whole) <= _MOST_FIGURE else f"{total['score']:.4g}"


def value_text(row: dict[str, Any]) -> str:
    """Of one evaluation; "sealed" where it has a value that is told nobody."""
    if row["value"] is None:
        return "sealed" if row["scored"] else "no score"
    return rounded(row["value"], row.get("interval"))


def interval_text(interval: Sequence[float] | None) -> str:
    """E.g. "[0.851, 0.934]"."""
    if interval is None:
        return "-"
    return f"[{', '.join(rounded(end, interval) for end in interval)}]"


def tier_text(tier: str | None, released: dict[str, Any] | None) -> str:
    """E.g. "must"; "must or more" where the score lies beyond the number that was told."""
    more = " or more" if released is not None and released.get("or_more") else ""
    return f"{tier}{more}" if tier else "-"


def experiments_table(rows: Sequence[dict[str, Any]]) -> TableText:
    """One row an experiment; below it what else a person should know of one."""
    columns = ("experiment", "status", "validation", "held-out", "verdict", "idea")
    table = render_table(
        "",
        columns,
        [
            (
                row["experiment"],
                status_words(row) + _of_tree(row["tree"]),
                figure(row["validation"]),
                figure(row["held_out"]),
                row["verdict"] or "-",
                row["hypothesis"] + (f" (builds on {row['parent']})" if row["parent"] else ""),
            )
            for row in rows
        ],
    )
    notes = pairs_table((row["experiment"], text) for row in rows for text in _told(row))
    return TableText(table + (f"\n{notes}" if notes.strip() else ""))


def _told(row: dict[str, Any]) -> Iterator[str]:
    """How its scores came about, where not as all should; that its folder is gone, which explains
    the rest; and the first finding of an open one."""
    for split in ("validation", "held_out"):
        total = row[split]
        more = (total["n_seeds"] or 0) < total["launches"]
        if total["evidence"] and (more or total["evidence"] != Grade().words):
            yield score_text(total)
    if row["gone"]:
        yield gone_text(row["gone"])
    elif row["findings"] and row["status"] not in CLOSED_EXPERIMENTS:
        yield row["findings"][0]["message"]


def gone_text(folder: str) -> str:
    return (
        f"Its folder {folder} is gone, and with it its logs and checkpoints; what was measured"
        " stands in the ledger. Put the folder back where it is wanted: git has what was committed."
    )


def status_words(row: Mapping[str, Any]) -> str:
    """An experiment's status, with who kept it although a gate did not pass."""
    by = row.get("overridden")
    return f"{row['status']}, OVERRIDE by {one_line(by, 40)}" if by else str(row["status"])


def _of_tree(tree: dict[str, Any] | None) -> str:
    return "" if tree is None or tree["here"] else f", of {tree['words']}"


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
