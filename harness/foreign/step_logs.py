"""Printed logs: "step 00010 (1.6%) | loss: 2.98 | dt: 50ms", progress bars, tables, dicts.

Carriage returns and backspaces often join many steps in one physical line; each is a line here.
"""

import re
from collections.abc import Iterable
from typing import Any

from harness.artifacts.jsonl import parse_line
from harness.detectors.metric_names import MetricRole, role_of
from harness.foreign.dialects import dialect, is_end
from harness.foreign.log_rows import Row, flattened, make_row
from harness.foreign.parser import LineParser, LogHead, LogParser
from harness.foreign.printed_lines import SEGMENTS, cleaned, is_source
from harness.foreign.printed_places import place_of
from harness.foreign.printed_tables import PrintedTable, header, key_value
from harness.foreign.printed_values import LABEL, is_measure, values

_RULE = re.compile(r"[\s|+:=*~#─━┄╌-]{3,}")
_SUMMARY_RULE = "---"
"""Below it, after the last step, stand the results of the run."""
_LINE = re.compile(r"\s*[^\W\d][\w./@ ()%-]{0,60}?\s*[:=]\s*['\"]?\S+\s*\Z")
_TITLE = re.compile(r"Result for \S+:\s*\Z|\s*Class\s+Images\s")
"""Of a result of Ray Tune, and of YOLO's table of scores."""
_INNER = re.compile(r"\s+([\w./-]+):(?:\s+(\S+))?\s*\Z")
_BEST = re.compile(r"\s*(?:sav(?:ed|ing) )?(?:the )?(?:new )?best", re.IGNORECASE)
_TRIAL = re.compile(r".*\bTrial (\d+) finished with values?: \[?([-+.\deE]+|nan|inf)")
_END_OF_TRAINER = "train_runtime"
_LONGEST = 4000  # characters of a line that are looked at
_PROGRAM = re.compile(r"import \w+|from [\w.]+ import |\"{3}|#!/")
"""How a log begins whose program prints its own source first."""
_AFTER_SOURCE = re.compile(
    r"\s*={20,}\s*|.*\b(?:step|iter|iteration|epoch)\b\W{0,3}\d+ ?/ ?\d+\b.*"
    r"|\s*(?:step|iter|iteration|epoch)[\s:(\[]+\d.*",
    re.IGNORECASE,
)
"""A rule, or a line that says where the training is."""
_OF_CLASS = re.compile(r"\s*(?P<label>[A-Z][A-Z\d_-]+): +(?=[^\W\d]\w*: )")
"""What conlleval prints of one class: "  ORG: precision: 97.34%"."""
_DIGIT = re.compile(r"\d|nan|inf", re.IGNORECASE)

_MOST_UNCOUNTED = 100
_SETTINGS = 4
"""So many lines of names and values without a metric among them are settings."""
_JUDGED = (MetricRole.LOSS, MetricRole.SCORE)
_STANDS = ("step", "unit", "epoch", "total_epochs", "total_steps")

Pairs = list[tuple[str, Any]]


def recognise(head: LogHead) -> LogParser | None:
    """Any text: this form comes last in the table."""
    return StepLog()


class StepLog(LineParser):
    """One row for each line with a position and a value.

    Lines of names and values below a position are one row of it. A line with a position alone says
    where the following ones stand.
    """

    name = "step log"

    def __init__(self) -> None:
        super().__init__()
        self._after_rule = False
        self._rows = 0
        self._once: dict[tuple[str, ...], Pairs] = {}
        """Names of a line without a counter -> its values, until such a line comes again."""
        self._source: bool | None = None
        """Whether the lines are the program's own source; None before the first."""
        self._place: Row = {}
        """The newest position."""
        self._block: Pairs | None = None
        """Values of the lines below it."""
        self._box: Pairs | None = None
        """Names and values of the table that is being printed."""
        self._section = ""
        self._over = False
        """Whether the program has said that its training is over."""
        self._table: PrintedTable | None = None
        self._label = self._phase = ""
        """What the lines below belong to: said in a line of words, or at the last position."""
        self._epoch_row: Row | None = None
        """The newest row of an epoch that goes on, as Keras prints it again and again."""

    def feed(self, data: bytes) -> list[Row]:
        rows = super().feed(data)
        whole, cut, rest = self._feed.rest.rpartition(b"\r")
        # A progress bar may never end its line: before its last carriage return all is complete.
        if cut:
            self._feed.rest = rest
            rows += self.line(whole)
            self.understood = self.understood or self._rows > 0
        return rows

    def finish(self) -> list[Row]:
        rows = super().finish() + self._end_of_epoch() + self._end_of_block()
        self.understood = self.understood or bool(rows)
        return rows

    def line(self, raw: bytes) -> Iterable[Row]:
        text = self.text(raw)
        parts = SEGMENTS.split(text) if "\r" in text or "\b" in text else [text]
        rows: list[Row] = []
        for part in parts:
            rows += self._line(part[:_LONGEST])
        self._rows += len(rows)
        return rows

    def _line(self, raw: str) -> list[Row]:
        if not raw or raw.isspace():
            return self._end_of_block()
        if self._source is not False:
            first = self._source is None
            self._source = self._is_program(raw, first=first)
            if self._source:
                return []
        if _RULE.fullmatch(raw):
            self._after_rule = self._rows > 0 and raw.strip() == _SUMMARY_RULE
            return self._end_of_block()
        inner = _INNER.match(raw) if self._box is not None else None
        if inner is not None:
            self._box_pair(inner[1], inner[2])
            return []
        if _DIGIT.search(raw) is None and "|" not in raw:
            return self._words(raw)
        text = cleaned(raw)
        if _TITLE.match(text):
            rows = self._end_of_block()
            self._table = header(text) or self._table
            self._box = [] if text.startswith("Result") else None
            return rows
        boxed = key_value(text) if "|" in text or "│" in text else None
        if boxed is not None:
            return self._boxed(*boxed)
        if self._table is not None and (cells := self._table.row(text)) is not None:
            return self._end_of_block() + self._cells(cells)
        return self._printed(text)

    @staticmethod
    def _is_program(raw: str, *, first: bool) -> bool:
        """Whether a line of the source begins the log, or goes on below one."""
        return bool(_PROGRAM.match(raw)) if first else not _AFTER_SOURCE.fullmatch(raw)

    def _cells(self, cells: Pairs) -> list[Row]:
        """The row of a table, at its own position or else at the last one."""
        if not _is_placed(cells):
            return self._row(cells, self._place)
        rows = self._row(cells, {})
        for row in rows:
            self._place = {key: row[key] for key in _STANDS if key in row}
        return rows

    def _words(self, raw: str) -> list[Row]:
        """A line without a number."""
        text = cleaned(raw)
        rows = self._end_of_block()
        self._table = header(text) or self._table
        label = LABEL.search(text)
        self._label = label["label"] if label and label["label"].lower() != "train" else ""
        return rows + self._ended(text)

    def _ended(self, text: str) -> list[Row]:
        if not is_end(text):
            return []
        self._over = True
        return [*self._end_of_epoch(), {"event": "end", "status": "completed"}]

    def _printed(self, text: str) -> list[Row]:
        if is_end(text):
            return self._end_of_block() + self._ended(text)
        if "{" in text and (document := _json_in(text)) is not None:
            return self._end_of_block() + self._row([*flattened(document)], {})
        trial = _TRIAL.match(text) if "Trial " in text else None
        if trial is not None:
            self.is_ledger = self.is_ledger or not self._rows
            return self._row(
                [("value", trial[2])],
                {"step": int(trial[1]), "unit": "trial"},
            )
        special = dialect(text)
        if special is not None and special[0]:
            special_place, pairs, at = special
            return self._placed(
                special_place,
                [*pairs, *values(text[at:])],
            )
        found = place_of(text, within="epoch" in self._place)
        if found is None:
            return self._unplaced(text)
        if is_source(text):
            return self._end_of_block()
        if _BEST.match(text):
            return self._end_of_block()
        place, rest = found
        labelled = LABEL.search(rest)
        self._phase = labelled["label"] if labelled and labelled.start() == 0 else ""
        if self._phase.lower() == "train":
            self._phase = ""
        return self._placed(place, [*values(rest)])

    def _placed(
        self,
        place: Row,
        pairs: Pairs,
    ) -> list[Row]:
        rows = self._end_of_block()
        self._after_rule = False
        self._label = ""
        leads, ends = place.pop("leads", False), place.pop("ends", False)
        known = self._place.get("epoch")
        if "epoch" in place:
            rows += self._end_of_epoch()
        elif known is not None and ("batch" in place or not pairs):
            place = self._epoch_place() | place
        if self._over and not pairs and not self._goes_on(place):
            # What stands below the end is the result.
            self._after_rule = True
            return rows
        if not pairs:
            self._place = place
            self._block = []
            return rows
        # After its end LightGBM prints the best iteration once more.
        best = self._over and place.get("step", 0) <= self._place.get("step", -1)
        if best or _END_OF_TRAINER in dict(pairs):
            summary = make_row(pairs) or {"metrics": {}}
            self._over = True
            return [*rows, {"event": "summary", "metrics": summary["metrics"]}]
        self._over = False
        earlier = {} if "epoch" in place else self._epoch_place()
        self._place = earlier | {key: place[key] for key in _STANDS if key in place}
        self._block = None
        if leads:
            if ends:
                self._hold(pairs, place)
            return rows
        return rows + self._row(pairs, place)

    def _goes_on(self, place: Row) -> bool:
        """Whether it is beyond the newest position."""
        counters = ("step", "epoch")
        return any(place[c] > self._place.get(c, -1) for c in counters if c in place)

    def _epoch_place(self) -> Row:
        """What the line said that began the epoch."""
        kept = ("epoch", "total_epochs")
        return {key: self._place[key] for key in kept if key in self._place}

    def _hold(
        self,
        pairs: Pairs,
        place: Row,
    ) -> None:
        place.pop("batch", None)
        self._epoch_row = make_row(pairs, place)

    def _end_of_epoch(self) -> list[Row]:
        row, self._epoch_row = self._epoch_row, None
        return [] if row is None else [row]

    def _unplaced(self, text: str) -> list[Row]:
        """A line without a position: values of the one before, or the header of a table."""
        found = header(text)
        if found is not None:
            self._table = found
            return self._end_of_block()
        if self.damaged or is_source(text):
            return self._end_of_block()
        of_class = _OF_CLASS.match(text)
        label = of_class["label"] if of_class else self._label or self._phase
        pairs = [*values(text, placed=False, label=label)]
        if not (self._place or self._after_rule):
            return self._uncounted(text, pairs)
        alone = len(pairs) == 1 and _LINE.fullmatch(text) is not None
        if self._after_rule and alone:
            row = make_row(pairs)
            return [] if row is None else [{"event": "summary", "metrics": row["metrics"]}]
        measured = alone or any(is_measure(name) for name, _ in pairs)
        if not pairs:
            return []
        if not self._place or not measured or _BEST.match(text):
            return self._end_of_block()
        self._label = ""
        block = self._block or []
        if not {name for name, _ in block}.isdisjoint(name for name, _ in pairs):
            # The same names again: the next row at this position.
            self._block = pairs
            return self._row(block, self._place)
        self._block = [*block, *pairs]
        return []

    def _uncounted(self, text: str, pairs: Pairs) -> list[Row]:
        """A line of a log without any counter: a row where lines of the same names recur."""
        names = tuple(name for name, _ in pairs)
        judged = any(role_of(name) in _JUDGED for name in names)
        if not judged or not all(map(is_measure, names)) or _BEST.match(text):
            return []
        if names not in self._once:
            if len(self._once) < _MOST_UNCOUNTED:
                self._once[names] = pairs
            return []
        first, self._once[names] = self._once[names], []
        rows: list[Row] = []
        for each in (first, pairs):
            rows += self._row(each, {"step": self._rows + len(rows)}) if each else []
        return rows

    def _end_of_block(self) -> list[Row]:
        """The row of the values below a position, or of a table that has ended."""
        box, self._box, self._section = self._box, None, ""
        if box:
            return self._row(
                box,
                {} if _is_placed(box) else self._place,
            )
        block, self._block = self._block or [], None
        roles = {role_of(name) for name, _ in block}
        if len(block) >= _SETTINGS and roles <= {MetricRole.OTHER, MetricRole.LEARNING_RATE}:
            return []
        return self._row(block, self._place) if block else []

    def _boxed(
        self,
        name: str,
        value: str,
    ) -> list[Row]:
        if self._box is None:
            self._box = []
        if not value:
            self._section = name.strip() if name.strip().endswith("/") else ""
            return []
        indented = name.startswith("  ") or not self._section
        prefix = self._section if indented and name[:1].isspace() else ""
        self._box_pair(f"{prefix}{name.strip()}", value)
        return []

    def _box_pair(
        self,
        name: str,
        value: str | None,
    ) -> None:
        if self._box is not None and value and name not in dict(self._box):
            self._box.append((name, value))

    def _row(
        self,
        pairs: Pairs,
        place: Row,
    ) -> list[Row]:
        row = make_row(pairs, place)
        return [] if row is None else [row]


def _is_placed(pairs: Pairs) -> bool:
    row = make_row(pairs)
    return row is not None and ("step" in row or "epoch" in row)


def _json_in(text: str) -> dict[str, Any] | None:
    """The JSON object that ends a line."""
    start = text.find('{"')
    if start < 0 or not text.rstrip().endswith("}"):
        return None
    found = parse_line(text[start:].encode())
    alone = len(found.rows) == 1 and not found.lost
    return found.rows[0] if alone else None
