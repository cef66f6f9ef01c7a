"""Following on a terminal, as a screen that is drawn anew, or anywhere else, as lines that stay."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from harness.clock import Clock
from harness.detectors.alarm import Severity
from harness.detectors.base import row_from
from harness.domain.words import some
from harness.projections.text import one_line
from harness.views.dashboard import draw
from harness.views.follow import Follower, News, counted
from harness.views.run_picture import shown_metrics
from harness.views.tables import count, number

POLL_SECONDS = 0.5
READ_SECONDS = 0.3
"""What one look spends on a long backlog before the screen is drawn."""
ROWS_A_LOOK = 10
"""Printed of each run, so that neither who comes late nor a fast loop floods the lines; the
newest."""


def on_screen(console: Console, follower: Follower, clock: Clock, *, ends: bool = True) -> None:
    """Draw until the follower is over, on the terminal's other screen; then leave the last picture
    on the first."""
    with screen(console) as show:
        while True:
            over = follow_once(follower)
            show(drawn(console, follower))
            if over and ends:
                break
            clock.sleep(POLL_SECONDS)
    console.print(Group(*drawn(console, follower, whole=True)))


@contextmanager
def screen(console: Console) -> Iterator[Callable[[Iterable[Text]], None]]:
    """The terminal's other screen; it gives a function that draws lines there."""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda lines: live.update(Group(*lines), refresh=True)


def in_lines(
    follower: Follower, clock: Clock, say: Callable[[str], None], *, ends: bool = True
) -> None:
    """One line a row and an alarm. What is awaited is said once; of alarms that were there before
    us, notes are only counted."""
    said, earlier = False, True
    while True:
        news = follower.poll(seconds=READ_SECONDS)
        over = follower.over()
        news += follower.finish() if over else []
        views = follower.views()
        if not news and not said and not any(view.picture.rows for view in views):
            say(f"waiting for the first row at {follower.waits_for}")
        said = True
        for line in lines_of(news, earlier=earlier):
            say(line)
        if over and ends:
            return
        earlier = earlier and any(view.behind is not None for view in views)
        clock.sleep(POLL_SECONDS)


def follow_once(follower: Follower) -> bool:
    """Read what is new. True when nothing more will come; then it is all read."""
    follower.poll(seconds=READ_SECONDS)
    if not follower.over():
        return False
    follower.finish()
    return True


def read_all(follower: Follower) -> None:
    """All that is there now, a last line without its end too."""
    follower.poll(seconds=float("inf"))
    follower.finish()


def drawn(console: Console, follower: Follower, *, whole: bool = False) -> list[Text]:
    """What fits the console now; with `whole` all of it."""
    width, height = console.size
    ascii_only = not console.encoding.lower().startswith("utf")
    lines = draw(follower, width=width, height=None if whole else height, ascii_only=ascii_only)
    if not ascii_only:
        return lines
    return [Text(line.plain.encode("ascii", "replace").decode("ascii")) for line in lines]


def lines_of(news: Iterable[News], *, earlier: bool = False) -> Iterator[str]:
    """Alarms all of them, with `earlier` only those that are no notes, and whether they are over;
    of the rows the newest of each run. How many were left out is said."""
    by_run: dict[str, list[News]] = {}
    for item in news:
        by_run.setdefault(item.run, []).append(item)
    for run, items in by_run.items():
        out = [item for item in items if item.row is not None][:-ROWS_A_LOOK]
        out += [
            item
            for item in items
            if earlier and item.alarm and item.alarm.severity is Severity.NOTE
        ]
        dropped, over = {id(item) for item in out}, _over(items) if earlier else set()
        for left in counted(
            [*out, *(item for item in items if item.row is None and item.alarm is None)]
        ):
            told = [some(left.left_out, "row")] if left.left_out else []
            told += [some(left.notes_left_out, "note")] if left.notes_left_out else []
            if told:
                yield f"{run}  {' and '.join(told)} before"
        for item in items:
            if id(item) in dropped:
                continue
            if item.alarm is not None:
                alarm, mark = item.alarm, "  (over)" if id(item) in over else ""
                yield (
                    f"{run}  alarm  {alarm.severity.value} {alarm.code} "
                    f" {one_line(alarm.message, 200)}{mark}"
                )
            elif item.row is not None and (line := _row(item, item.row)):
                yield line


def _over(items: Sequence[News]) -> set[int]:
    """The ids of those whose alarm a later one says to be over."""
    ended: set[tuple[str, str]] = set()
    found = set()
    for item in reversed(items):
        if item.alarm is not None and item.alarm.recovered:
            ended.add(item.alarm.subject)
        elif item.alarm is not None and item.alarm.subject in ended:
            found.add(id(item))
    return found


def _row(news: News, plain: Mapping[str, Any]) -> str:
    """Empty for a row that says neither where it stands nor any number."""
    row = row_from(plain, 1)
    where = [
        f"{unit} {count(value)}"
        for unit, value in (("epoch", row.epoch), ("step", row.step))
        if value is not None
    ]
    metrics = "  ".join(
        f"{name} {number(value)}" for name, value in shown_metrics(row.metrics).items()
    )
    if not where or not metrics:
        return ""
    seed = [] if news.seed is None else [f"seed {news.seed}"]
    passed = (
        [f"{row.seconds - news.began:.1f} s"]
        if row.seconds is not None and news.began is not None
        else []
    )
    return "  ".join([news.run, *seed, *where, metrics, *passed])
