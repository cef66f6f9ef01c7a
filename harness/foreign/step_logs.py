"""Printed logs: "step 00010 (1.6%) | loss: 2.98 | dt: 50ms", progress bars, printed dicts.

Carriage returns often join many steps in one physical line; each of them is a line here.
"""

import re
from collections.abc import Iterable

from harness.foreign.log_rows import Row, as_number, make_row, whole
from harness.foreign.parser import LineParser, LogHead, LogParser

# A comma groups thousands. The look-ahead refuses "0,93" as a whole: a part of it would be wrong.
_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?!\d|,\d)"
# "step 10", "Step: 10/100", "iter=10", "{'global_step': 10", "[step (10)"; not "steps per second".
_STEP = re.compile(
    r"\b(?:global[_ ]?step|step|iteration|iter|update)s?\b['\"]?"
    rf"[\s:=#\[(]*({_WHOLE})(?:\s*/\s*({_WHOLE}))?",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"\bepoch\b['\"]?[\s:=#\[(]*['\"]?(\d+(?:\.\d+)?)(?:\s*/\s*(\d+))?", re.IGNORECASE
)
# tqdm: " 45%|####   | 45/100 [00:12<00:10, 4.3it/s, loss=0.5]"
_BAR = re.compile(r"\|\s*(\d+)/(\d+)\s*\[")
_NUMBER = rf"[-+]?(?:{_WHOLE}\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
# "loss: 2.98", "'loss': '2.98'", "lr=1e-3", "dt: 50ms". The look-ahead refuses "10:15:30" as 10.
_VALUE = re.compile(
    rf"['\"]?([A-Za-z_][\w./@-]*)['\"]?\s*[:=]\s*['\"]?({_NUMBER})(?![\d:])\s*(ms\b|s\b|%)?",
    re.IGNORECASE,
)
# A whole line "final accuracy: 93.1%": only below a rule, where no step is named.
_SUMMARY = re.compile(rf"([A-Za-z_][\w./@ -]*?)\s*[:=]\s*({_NUMBER})\s*%?\s*", re.IGNORECASE)
_RULE = re.compile(r"\s*(?:-{3,}|={3,})\s*")
_PLACES = frozenset(
    {"step", "global_step", "iteration", "iter", "update", "epoch", "steps", "eta", "remaining"}
)
_LONGEST = 4000  # characters of a line that are looked at


def recognise(head: LogHead) -> LogParser | None:
    """Any text: this form comes last in the table."""
    return StepLog()


class StepLog(LineParser):
    """One row for each line with a step or an epoch and a value; lines of single values below a
    rule are the run's summary."""

    name = "step log"

    def __init__(self) -> None:
        super().__init__()
        self._after_rule = False
        self._totals: dict[str, int] = {}
        self._reported: dict[str, int] = {}

    def feed(self, data: bytes) -> list[Row]:
        rows = super().feed(data)
        whole, cut, rest = self._feed.rest.rpartition(b"\r")
        # A progress bar may never end its line: before its last carriage return all is complete.
        if cut:
            self._feed.rest = rest
            rows += self.line(whole)
        return rows

    def line(self, raw: bytes) -> Iterable[Row]:
        rows = []
        for part in self.text(raw).split("\r"):
            row = self._row(part[:_LONGEST])
            if self._totals != self._reported:
                self._reported = dict(self._totals)
                rows.append({"event": "total", **self._totals})
            if row is not None:
                rows.append(row)
        return rows

    def _row(self, text: str) -> Row | None:
        if _RULE.fullmatch(text):
            self._after_rule = True
            return None
        if self._after_rule and (match := _SUMMARY.fullmatch(text.strip())):
            summary = make_row([(match[1], match[2])])
            return None if summary is None else {"event": "summary", "metrics": summary["metrics"]}
        step, epoch, bar = _STEP.search(text), _EPOCH.search(text), _BAR.search(text)
        if not (step or epoch or bar):
            return None
        values = [
            (f"{match[1]}_ms" if match[3] == "ms" else match[1], match[2])
            for match in _VALUE.finditer(text)
            if match[1].lower() not in _PLACES
        ]
        row = make_row(values)
        if row is None:
            return None
        self._after_rule = False
        for name, counted in (("step", step or bar), ("epoch", epoch)):
            number = None if counted is None else as_number(counted[1])
            if counted is None or number is None:
                continue
            row[name] = whole(number)
            if counted[2] and isinstance(total := as_number(counted[2]), int):
                self._totals[f"total_{name}s"] = total
        return row
