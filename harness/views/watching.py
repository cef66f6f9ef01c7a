"""Follow on a terminal, as a screen that is redrawn, or
elsewhere, as lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from harness.clock import Clock
from harness.detectors.alarm import Severity
from harness.detectors.rows import row_from
from harness.domain.plain_text import one_line
from harness.domain.words import some
from harness.views.dashboard import draw, unread
from harness.views.follow import Follower, News, RunView, counted
from harness.views.run_picture import shown_metrics
from harness.views.tables import count, number

POLL_SECONDS = 0.5
READ_SECONDS = 0.3
"""Time to read a long backlog before the screen is drawn."""
ROWS_A_LOOK = 10
"""Newest rows of each run to print: a late start or a fast loop
must not flood the output."""


def on_screen(console: Console, follower: Follower, clock: Clock, *, ends: bool = True) -> None:
    """Draw on the alternate screen until the follower is over;
    then print the final picture."""
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
    """Open the terminal's alternate screen; yields a function
    that draws lines on it."""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda lines: live.update(Group(*lines), refresh=True)


def in_lines(
    follower: Follower,
    clock: Clock,
    say: Callable[[str], None],
    *,
    ends: bool = True,
    until: Callable[[], bool] | None = None,
) -> bool:
    """Print one line per row and alarm; returns whether `until`
    ended it.

    The path that is waited for is printed once. Notes that
    were there before us are only counted. With `until` no row
    is printed, and it is asked after each look.
    """
    announced = told = False
    earlier = True
    troubles: dict[str, str] = {}
    while True:
        news = follower.poll(seconds=READ_SECONDS)
        over = follower.over()
        news += follower.finish() if over else []
        views = follower.views()
        if not news and not announced and not any(view.picture.rows for view in views):
            say(f"waiting for the first row at {follower.waits_for}")
        if not told and (notes := unread(views)):
            told = True
            for note in notes:
                say(note)
            troubles = _troubles(views)
        for title, trouble in _troubles(views).items():
            if trouble != troubles.get(title):
                say(f"{title}: {trouble}")
        troubles = _troubles(views)
        announced = True
        quiet = until is not None
        shown = [item for item in news if item.alarm is not None] if quiet else news
        for line in lines_of(shown, earlier=earlier):
            say(line)
        if until is not None and until():
            return True
        if over and ends:
            return False
        earlier = earlier and any(view.behind is not None for view in views)
        clock.sleep(POLL_SECONDS)


def _troubles(views: Iterable[RunView]) -> dict[str, str]:
    """Title -> why nothing can be read of it now."""
    return {view.picture.title: view.trouble for view in views if view.trouble}


def follow_once(follower: Follower) -> bool:
    """Read new rows. True when everything is read and nothing
    more will come."""
    follower.poll(seconds=READ_SECONDS)
    if not follower.over():
        return False
    follower.finish()
    return True


def read_all(follower: Follower) -> None:
    """Read everything, an unfinished last line too."""
    follower.poll(seconds=float("inf"))
    follower.finish()


def drawn(console: Console, follower: Follower, *, whole: bool = False) -> list[Text]:
    """The lines that fit the console; with `whole` all lines."""
    width, height = console.size
    ascii_only = not console.encoding.lower().startswith("utf")
    lines = draw(
        follower,
        width=width,
        height=None if whole else height,
        ascii_only=ascii_only,
    )
    if not ascii_only:
        return lines
    # Names and messages are the training code's: any other character would end the dashboard with
    # an encoding error.
    return [Text(line.plain.encode("ascii", "replace").decode("ascii")) for line in lines]


def lines_of(news: Iterable[News], *, earlier: bool = False) -> Iterator[str]:
    """All alarms and the newest rows of each run, with the
    number of left-out rows.

    With `earlier`, notes are only counted and recovered
    alarms are marked.
    """
    by_run: dict[str, list[News]] = {}
    for item in news:
        by_run.setdefault(item.run, []).append(item)
    for run, items in by_run.items():
        left_out = [item for item in items if item.row is not None][:-ROWS_A_LOOK]
        left_out += [
            item
            for item in items
            if earlier and item.alarm and item.alarm.severity is Severity.NOTE
        ]
        dropped, over = {id(item) for item in left_out}, _over(items) if earlier else set()
        for total in counted(
            [*left_out, *(item for item in items if item.row is None and item.alarm is None)]
        ):
            counts = [some(total.left_out, "row")] if total.left_out else []
            counts += [some(total.notes_left_out, "note")] if total.notes_left_out else []
            if counts:
                yield f"{run}  {' and '.join(counts)} before"
        for item in items:
            if id(item) in dropped:
                continue
            if item.alarm is not None:
                alarm, mark = item.alarm, "  (recovered)" if id(item) in over else ""
                yield (
                    f"{run}  alarm  {alarm.severity.value} {alarm.code} "
                    f" {one_line(alarm.message, 200)}{mark}"
                )
            elif item.row is not None and (line := _row(item, item.row)):
                yield line


def _over(items: Sequence[News]) -> set[int]:
    """Python ids of the alarms that a later row ends."""
    ended: set[tuple[str, str]] = set()
    over = set()
    for item in reversed(items):
        if item.alarm is not None and item.alarm.recovered:
            ended.add(item.alarm.subject)
        elif item.alarm is not None and item.alarm.subject in ended:
            over.add(id(item))
    return over


def _row(news: News, plain: Mapping[str, Any]) -> str:
    """One line; empty for a row without a position or without
    metrics."""
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
