"""The real logs of tests/detectors/inputs, and the label that the watch gives each."""

import re
from collections.abc import Sequence
from pathlib import Path

from harness.detectors.alarm import Alarm, open_alarms
from harness.detectors.watch import RunWatch
from harness.foreign.reader import read_whole

INPUTS = Path(__file__).resolve().parents[2] / "tests" / "detectors" / "inputs"


def label(alarms: Sequence[Alarm]) -> str:
    """healthy: no alarm that asks for a diagnosis, ever; spike and recover: all that were are
    over."""
    if open_alarms(alarms):
        return "broken"
    spiked = any(alarm.code in ("loss_spike", "spike_recovered") for alarm in alarms)
    if spiked:
        return "spike and recover"
    return "disturbed" if any(alarm.open for alarm in alarms) else "healthy"


def labels() -> dict[str, tuple[str, str]]:
    """File -> (the label that SOURCES.md gives, the label of the watch)."""
    rows = re.findall(
        r"^\| (\w+\.\w+) \|.*\| ([a-z ]+) \|$", (INPUTS / "SOURCES.md").read_text("utf-8"), re.M
    )
    found = {}
    for name, given in rows:
        watch, (_, log) = RunWatch(), read_whole(INPUTS / name)
        found[name] = (given, label([alarm for row in log for alarm in watch.feed(row)]))
    return found
