"""Follow the logs of runs that the harness did not start: the file is the only source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.detectors.watch_settings import WatchSettings
from harness.domain.statuses import Evidence
from harness.foreign.formats import require_readable
from harness.foreign.log_rows import Row
from harness.foreign.metric_folders import open_log
from harness.views.follow import MOST_RUNS, Heart, News, RunView, Target, trimmed
from harness.views.run_picture import RunPicture

QUIET_S = 30.0
LOST_S = 600.0
"""A log without new bytes for this time, or for 20 usual row times, has stopped.

It is lost if we saw it grow or if it is short of its total; otherwise its end is unknown.
"""
_LOST_ROWS = 20.0


class LogFollower:
    """The logs at `paths`; they need not exist yet."""

    targets: Sequence[Target] = ()

    def __init__(self, paths: Sequence[Path], clock: Clock) -> None:
        self._clock = clock
        self._logs = [_LogRuns(path, clock) for path in paths[:MOST_RUNS]]
        names = [path.name for path in paths]
        for log in self._logs:
            log.short = (
                log.path.name
                if names.count(log.path.name) == 1
                else f"{log.path.parent.name}/{log.path.name}"
            )

    @property
    def title(self) -> str:
        return str(self._logs[0].path) if len(self._logs) == 1 else f"{len(self._logs)} logs"

    @property
    def waits_for(self) -> str:
        return ", ".join(str(log.path) for log in self._logs if not log.reader.present) or str(
            self._logs[0].path
        )

    def poll(self, *, seconds: float) -> list[News]:
        end = self._clock.monotonic() + seconds
        news = [item for log in self._logs for item in log.poll()]
        while any(log.reader.behind for log in self._logs) and self._clock.monotonic() < end:
            news = trimmed(
                news + [item for log in self._logs if log.reader.behind for item in log.poll()]
            )
        return news

    def finish(self) -> list[News]:
        return [item for log in self._logs for item in log.finish()]

    def views(self) -> list[RunView]:
        return [view for log in self._logs for view in log.views()][-MOST_RUNS:]

    def over(self) -> bool:
        return all(log.over() for log in self._logs)

    def succeeded(self) -> bool:
        return all(view.status not in ("failed", "lost") for view in self.views())

    def document(self) -> dict[str, Any]:
        for log in self._logs:
            require_readable(log.path, log.reader.problem)
        return {
            "path": [str(log.path) for log in self._logs],
            "state": "ended" if self.over() else "running",
            "evidence": Evidence.LOGGED.value,
            "runs": [plain(view) for view in self.views()],
        }


class _LogRuns:
    """One log file and the runs in it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path, self.short = path, path.name
        self.reader = open_log(path)
        self._heart = Heart(clock)
        self._pictures: dict[str, RunPicture] = {}
        self._restarts = 0

    def poll(self) -> list[News]:
        rows = self.reader.read_more()
        if self.reader.restarts != self._restarts:
            self._restarts, self._pictures = self.reader.restarts, {}
        self._heart.beat(self.reader.modified, self.reader.size)
        return self._take(rows)

    def finish(self) -> list[News]:
        news = self._take(self.reader.finish())
        newest = list(self._pictures.values())[-1:]
        for picture in newest:
            news += [News(run=picture.title, alarm=alarm) for alarm in picture.end()]
        return news

    def _take(self, rows: list[Row]) -> list[News]:
        news: list[News] = []
        for row in rows:
            picture = self._picture(str(row.get("run")))
            news += [News(run=picture.title, alarm=alarm) for alarm in picture.feed(row)]
            if row.get("metrics"):
                news.append(News(run=picture.title, row=row, began=picture.first_time))
        return news

    def views(self) -> list[RunView]:
        pictures = list(self._pictures.values())
        if not pictures:
            waiting = RunPicture("", WatchSettings(), title=self.short, watches=False)
            return [
                RunView(
                    picture=waiting,
                    status="waiting",
                    age_s=self._heart.age_s,
                    notes=self._notes(),
                    trouble=self.reader.trouble,
                )
            ]
        earlier = [RunView(picture=item, status=item.said or "ended") for item in pictures[:-1]]
        size, left = self.reader.size, self.reader.behind
        newest = RunView(
            picture=pictures[-1],
            status=self._status(pictures[-1]),
            age_s=self._heart.age_s,
            notes=[*pictures[-1].notes(), *self._notes()],
            trouble=self.reader.trouble,
            behind=left / size if left and size else None,
        )
        return [*earlier, newest]

    def over(self) -> bool:
        if not self._pictures or self.reader.behind:
            return False
        return self._status(list(self._pictures.values())[-1]) not in ("running", "quiet")

    def _status(self, picture: RunPicture) -> str:
        if self.reader.is_ledger:
            return "ledger"
        if picture.said is not None:
            return picture.said
        if self.reader.behind:
            return "reading"
        age = self._heart.age_s or 0.0
        usual = picture.seconds_each or 0.0
        if age > max(LOST_S, _LOST_ROWS * usual):
            # A file that never grew while we watched may be an old, finished log.
            unfinished = picture.done is not None and picture.done < 1
            return "lost" if unfinished or self._heart.beats > 1 else "stopped"
        return "quiet" if age > max(QUIET_S, 3 * usual) else "running"

    def _notes(self) -> list[str]:
        notes = self.reader.notes()
        return [self.reader.trouble, *notes] if self.reader.trouble else notes

    def _picture(self, run: str) -> RunPicture:
        picture = self._pictures.get(run)
        if picture is None:
            title = (
                self.short if not self._pictures and run == "run 1" else f"{self.short} · {run}"
            )
            picture = RunPicture(
                run, WatchSettings(), title=title, watches=not self.reader.is_ledger
            )
            self._pictures[run] = picture
            if len(self._pictures) > MOST_RUNS:
                del self._pictures[next(iter(self._pictures))]
        return picture


def plain(view: RunView) -> dict[str, Any]:
    """A run of a foreign log for --json."""
    picture = view.picture
    return {
        "run": picture.title,
        "status": view.status,
        "age_s": None if view.age_s is None else round(view.age_s, 1),
        "rows": picture.measured,
        "unit": picture.word,
        picture.unit: picture.place,
        f"total_{picture.unit}s": picture.total,
        "metrics": {name: trace.current for name, trace in picture.traces.items()},
        "summary": picture.summary,
        "alarms": [alarm.plain() for alarm in picture.alarms],
        "notes": view.notes,
    }
