"""Run pictures as lines of text for a terminal of any width.

From 100 columns on, runs stand side by side; below 24, only the essentials are shown.
"""

from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from harness.artifacts.resources import in_words
from harness.detectors.alarm import Alarm, Severity
from harness.domain.plain_text import one_line
from harness.views.follow import Follower, RunView, Target
from harness.views.run_picture import RunPicture
from harness.views.tables import count, duration, number

_BLOCK = 50
"""Columns that a run needs before another one is put beside it."""
_MOST_BESIDE = 4
_TINY = 24
_NARROW = 56
_LONGEST_LINE = 60
_LOGGED = "  logged, not recomputed"
_GAP = 2
_STATUS = {
    "running": "green",
    "completed": "bold green",
    "failed": "bold red",
    "killed": "bold red",
    "lost": "bold red",
    "cancelled": "yellow",
    "quiet": "yellow",
    "stopped": "yellow",
    "waiting": "dim",
}
_SEVERITY = {
    Severity.FATAL: ("!!", "bold red"),
    Severity.WARNING: ("!", "yellow"),
    Severity.NOTE: ("i", "cyan"),
}


def draw(
    follower: Follower, *, width: int, height: int | None = None, ascii_only: bool = False
) -> list[Text]:
    """The whole screen. With `height` each run gets fewer lines, and hidden lines are counted."""
    width = max(1, width)
    views = follower.views()
    lines = [_head(follower, views, width)]
    if not any(view.picture.rows for view in views):
        lines += waiting(follower, width)
    lines += [_cut(Text(note), width) for note in unread(views)]
    shown = [view for view in views if view.picture.rows or view.status != "waiting"]
    beside = _beside(len(shown), width)
    each = (width - _GAP * (beside - 1)) // beside
    rows = [shown[start : start + beside] for start in range(0, len(shown), beside)]
    room = None if height is None else max(3, (height - len(lines)) // max(1, len(rows)) - 1)
    for row in rows:
        blocks = [
            block(view, follower.targets, each, room=room, ascii_only=ascii_only) for view in row
        ]
        lines += [Text(""), *_side_by_side(blocks, each)]
    if height is not None and len(lines) > height:
        left = len(lines) - height + 1
        lines = [
            *lines[: max(0, height - 1)],
            _cut(Text(f"... {left} more lines", style="dim"), width),
        ]
    return lines


def unread(views: Sequence[RunView]) -> list[str]:
    """What is to be said of logs that are there, and in which no row was found."""
    found = [view for view in views if view.status == "waiting"]
    return [f"{view.picture.title}: {note}" for view in found for note in view.notes]


def waiting(follower: Follower, width: int) -> list[Text]:
    """The full path of the awaited log, over as many lines as needed."""
    text = f"waiting for the first row at {follower.waits_for}"
    return [
        Text(text[start : start + width], style="yellow") for start in range(0, len(text), width)
    ]


def block(
    view: RunView,
    targets: Sequence[Target],
    width: int,
    *,
    room: int | None,
    ascii_only: bool = False,
) -> list[Text]:
    """One run: state, progress, a line per metric, cost, alarms."""
    picture = view.picture
    lines = [_title(view), _progress(view, width, ascii_only=ascii_only)]
    tail = [
        line
        for parts in (
            _costs(picture),
            in_words(picture.used),
            _saved(picture),
        )
        for line in _wrapped(parts, width)
    ]
    alarms = [line for alarm in picture.shown_alarms for line in _alarm(alarm, width)]
    notes = [Text(f"note: {note}", style="dim") for note in view.notes]
    if view.reason:
        notes.insert(0, Text(view.reason, style=_STATUS.get(view.status, "")))
    metrics = picture.shown()
    if room is not None:  # alarms before metrics, metrics before notes
        alarms = alarms[: max(1, room // 3)]
        left = max(1, room - len(lines) - len(tail) - len(alarms)) // (
            2 if _TINY <= width < _NARROW else 1
        )
        metrics, notes = metrics[:left], notes[: max(0, left - len(metrics))]
    names = min(
        max((cell_len(name) for name in metrics), default=0),
        max(8, width // (4 if width >= _NARROW else 3)),
    )
    for name in metrics:
        lines += _metric(picture, name, targets, width, names, ascii_only=ascii_only)
    return [_cut(line, width) for line in (*lines, *tail, *alarms, *notes)]


def _head(follower: Follower, views: Sequence[RunView], width: int) -> Text:
    states = Text()
    counts: dict[str, int] = {}
    for view in views:
        counts[view.status] = counts.get(view.status, 0) + 1
    for status, many in counts.items():
        states.append("  ")
        states.append(
            f"{many} {status}" if len(views) > 1 else status, style=_STATUS.get(status, "")
        )
    room = width - cell_len(states.plain)
    title = follower.title
    if cell_len(title) > room and room > 8:  # the end of a path is more useful
        title = "…" + set_cell_size(title[::-1], room - 1)[::-1].lstrip()
    text = Text(title, style="bold").append_text(states)
    if width - cell_len(text.plain) > cell_len(_LOGGED):
        text.append(_LOGGED, style="dim")
    return _cut(text, width)


def _title(view: RunView) -> Text:
    text = Text(view.picture.title, style="bold")
    if view.seed is not None:
        text.append(f"  seed {view.seed}", style="dim")
    text.append("  ")
    text.append(view.status, style=_STATUS.get(view.status, ""))
    if view.status in ("lost", "quiet", "stopped") and view.age_s is not None:
        text.append(f", no change for {duration(view.age_s)}", style=_STATUS[view.status])
    if view.behind is not None:
        text.append(f"  reading, {view.behind:.0%} left", style="dim")
    return text


def _progress(view: RunView, width: int, *, ascii_only: bool) -> Text:
    picture = view.picture
    where = "" if picture.place is None else f"{picture.word} {count(picture.place)}"
    if where and picture.last:
        where = f"{where} of {count(picture.last)}"
    if picture.step is not None and width >= _NARROW:
        where += f", {picture.counts} {count(picture.step)}"
    done = picture.done
    text = Text()
    if done is not None and width >= _TINY:
        text.append(_bar(done, max(5, min(24, width // 5)), ascii_only=ascii_only), style="cyan")
        text.append(f" {done:.0%}  ")
    text.append(where)
    if view.status in ("running", "quiet", "reading") and picture.eta_s is not None:
        text.append(f"  {duration(picture.eta_s)} left", style="bold")
    if (
        picture.first_time is not None
        and picture.last_time is not None
        and picture.last_time >= picture.first_time
    ):
        passed = f"  after {duration(picture.last_time - picture.first_time)}"
        if cell_len(text.plain) + len(passed) <= width:
            text.append(passed, style="dim")
    return text


def _bar(done: float, width: int, *, ascii_only: bool) -> str:
    full = round(done * width)
    return ("#" if ascii_only else "█") * full + ("-" if ascii_only else "░") * (width - full)


def _metric(
    picture: RunPicture,
    name: str,
    targets: Sequence[Target],
    width: int,
    names: int,
    *,
    ascii_only: bool,
) -> list[Text]:
    """One line; on a narrow screen one with numbers and one with the curve."""
    trace, best = picture.traces[name], picture.best(name)
    current = number(trace.current)
    if width < _TINY:
        return [Text(f"{name} {current}")]
    text = Text(_padded(name, names))
    text.append(
        f" {current:>9}", style="bold red" if current in ("NaN", "Inf", "-Inf") else "bold"
    )
    text.append(
        f" {'best' if best else '':4} {number(best.value) if best else '':>9}", style="green"
    )
    if width >= 2 * _BLOCK and best is not None and best.place is not None:
        text.append(f" at {count(best.place)}".ljust(9), style="dim")
    goal = _goal(picture, name, targets, ascii_only=ascii_only)
    if width < _NARROW:
        drawn = Text("  ").append_text(
            _drawn(picture, name, width - 3 - cell_len(goal.plain), ascii_only=ascii_only)
        )
        return [text, drawn.append(" ").append_text(goal) if goal.plain else drawn]
    left = width - cell_len(text.plain) - 1 - (cell_len(goal.plain) + 1 if goal.plain else 0)
    text.append(" ").append_text(_drawn(picture, name, left, ascii_only=ascii_only))
    return [text.append(" ").append_text(goal) if goal.plain else text]


def _drawn(picture: RunPicture, name: str, width: int, *, ascii_only: bool) -> Text:
    text = Text()
    for character in picture.traces[name].sparkline(
        min(max(1, width), _LONGEST_LINE), ascii_only=ascii_only
    ):
        text.append(
            character,
            style="bold red" if character == "!" else "magenta" if character in "▲▼^" else "cyan",
        )
    return text


def _goal(picture: RunPicture, name: str, targets: Sequence[Target], *, ascii_only: bool) -> Text:
    """The first tier that the best value does not reach, else the last one."""
    best, direction = picture.best(name), picture.direction(name)
    if not targets or not picture.is_goal(name) or direction is None:
        return Text("")
    sign = 1 if direction.value == "maximize" else -1
    missing = [item for item in targets if best is None or (best.value - item.value) * sign < 0]
    if missing:
        return Text(f"{missing[0].name} {number(missing[0].value)}", style="yellow")
    return Text(
        f"{targets[-1].name} {number(targets[-1].value)} {'ok' if ascii_only else '✓'}",
        style="green",
    )


def _costs(picture: RunPicture) -> list[str]:
    parts = []
    if picture.rate is not None:
        parts.append(f"lr {number(picture.rate)}")
    if picture.throughput is not None:
        name, value = picture.throughput
        parts.append(f"{name} {number(value)}")
    elif picture.seconds_each is not None:
        parts.append(
            f"{duration(picture.seconds_each)} a{'n' if picture.word[0] in 'aeiou' else ''}"
            f" {picture.word}"
        )
    if picture.memory is not None:
        name, value = picture.memory
        parts.append(f"{name} {number(value)}")
    return parts


def _wrapped(parts: Sequence[str], width: int) -> list[Text]:
    """The parts over as many lines as needed; no part is broken."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(part)
    return [Text(line, style="dim") for line in lines]


def _saved(picture: RunPicture) -> list[str]:
    parts = []
    if picture.checkpoints:
        many = f"{picture.checkpoints} checkpoint{'s' if picture.checkpoints > 1 else ''}"
        parts.append(f"{many}, the last at {picture.word} {count(picture.checkpoint_place)}")
    if picture.resumes:
        parts.append(f"resumed {picture.resumes} time{'s' if picture.resumes > 1 else ''}")
    bad = sum(trace.bad for trace in picture.traces.values())
    if bad:
        parts.append(f"{bad:,} value{'s are' if bad > 1 else ' is'} not finite")
    parts += [f"{name} {number(value)}" for name, value in list(picture.summary.items())[:4]]
    return parts


def _alarm(alarm: Alarm, width: int) -> list[Text]:
    """The message, over at most three lines."""
    mark, style = _SEVERITY[alarm.severity]
    if width < _TINY:
        return [Text(f"{mark} {alarm.code}", style=style)]
    text = f"{mark} {alarm.code}  {one_line(alarm.message, 300)}"
    return [
        Text(line, style=style) for line in wrap(text, width, subsequent_indent="  ", max_lines=3)
    ]


def _beside(runs: int, width: int) -> int:
    return max(1, min(runs, (width + _GAP) // (_BLOCK + _GAP), _MOST_BESIDE))


def _side_by_side(blocks: Sequence[list[Text]], each: int) -> list[Text]:
    if len(blocks) == 1:
        return list(blocks[0])
    lines = []
    for index in range(max(map(len, blocks))):
        line = Text("")
        for position, lines_of_one in enumerate(blocks):
            cell = lines_of_one[index].copy() if index < len(lines_of_one) else Text("")
            last = position == len(blocks) - 1
            # Padded by terminal cells, not characters: a wide character takes two.
            if not last:
                cell.pad_right(each - cell_len(cell.plain) + _GAP)
            line.append_text(cell)
        lines.append(line)
    return lines


def _cut(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis" if width > 1 else "crop")
    return text


def _padded(name: str, width: int) -> str:
    text = Text(name)
    text.truncate(width, overflow="ellipsis")
    return text.plain + " " * (width - cell_len(text.plain))
