"""Folders with a file for each metric: DVCLive's TSV files, MLflow's metric files. One run each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.artifacts.jsonl import LineFeed
from harness.domain.words import some
from harness.foreign.log_rows import Row, as_number, make_row
from harness.foreign.metric_files import MOST_FILES, files_in
from harness.foreign.reader import BLOCK, ByteTail, LogReader
from harness.foreign.runs_in_log import RunsInLog

_NO_FOLDER = "no regular file, and no folder with a file for each metric."


class FolderReader:
    """Reads the files of a folder as one log, each value once. The interface is LogReader's."""

    format = "folder of metrics"
    is_ledger = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self.size = self.behind = self.restarts = 0
        self.modified: float | None = None
        self._tails: dict[Path, _MetricTail] = {}
        self._runs = RunsInLog()

    @property
    def present(self) -> bool:
        return bool(self._tails)

    @property
    def trouble(self) -> str:
        return self.problem or ""

    @property
    def runs(self) -> int:
        return self._runs.count

    def read_more(
        self,
        most: int = BLOCK,
    ) -> list[Row]:
        """The new rows: values of one step are one row."""
        for file in files_in(self.path):
            if file not in self._tails:
                self._tails[file] = _MetricTail(file, self.path)
        self.problem = None if self._tails else f"{self.path} is {_NO_FOLDER}"
        tails = self._tails.values()
        values = [value for tail in tails for value in tail.read_more(most)]
        restarts = sum(tail.tail.restarts for tail in tails)
        if restarts != self.restarts:
            self.restarts, self._runs = restarts, RunsInLog()
        self.size = sum(tail.tail.size for tail in tails)
        self.behind = sum(tail.tail.behind for tail in tails)
        times = [tail.tail.modified for tail in tails]
        self.modified = max((time for time in times if time is not None), default=None)
        return self._placed(values)

    def finish(self) -> list[Row]:
        tails = self._tails.values()
        return self._placed([value for tail in tails for value in tail.finish()])

    def notes(self) -> list[str]:
        if len(self._tails) < MOST_FILES:
            return []
        return [f"only {some(MOST_FILES, 'file')} of it are read"]

    def _placed(
        self,
        values: list[Row],
    ) -> list[Row]:
        rows: dict[Any, Row] = {}
        for value in values:
            place = value.get("step", value.get("epoch"))
            row = rows.setdefault(place, value)
            row["metrics"] = row["metrics"] | value["metrics"]
        ordered = sorted(
            rows,
            key=lambda place: (place is None, place or 0),
        )
        return [each for place in ordered for each in self._runs.feed(rows[place])]


class _MetricTail:
    """One file: lines "step value", with a header, or MLflow's "milliseconds value step"."""

    def __init__(
        self,
        file: Path,
        root: Path,
    ) -> None:
        self.tail = ByteTail(file)
        self._name = file.relative_to(root).with_suffix("").as_posix()
        self._names = ["timestamp", self._name, "step"]
        self._headed = file.suffix == ".tsv"
        self._delimiter = "\t" if self._headed else " "
        self._feed = LineFeed()
        self._begun = self._restarts = 0

    def read_more(self, most: int) -> Iterator[Row]:
        data = self.tail.read(most)
        if self.tail.restarts != self._restarts:
            self._restarts = self.tail.restarts
            self._feed, self._begun = LineFeed(), 0
        for line in self._feed.feed(data):
            yield from self._line(line)

    def finish(self) -> Iterator[Row]:
        rest, self._feed.rest = self._feed.rest, b""
        return self._line(rest)

    def _line(self, line: bytes) -> Iterator[Row]:
        text = line.decode("utf-8", "replace").strip()
        cells = [cell.strip() for cell in text.split(self._delimiter)]
        self._begun += 1
        if self._headed and self._begun == 1:
            self._names = [*cells[:-1], self._name]
            return
        if len(cells) != len(self._names) or as_number(cells[0]) is None:
            return
        row = make_row(zip(self._names, cells, strict=True))
        if row is not None:
            yield row


def open_log(path: Path) -> LogReader | FolderReader:
    """The reader of a log: of a file, or of a folder that stands for one."""
    return FolderReader(path) if path.is_dir() else LogReader(path)
