"""A metric in bounded memory: whatever happened once in a long run is still seen."""

import math
import sys

from hypothesis import given
from hypothesis import strategies as st

from harness.views.trace import BLOCKS, Trace


def traced(values: list[float]) -> Trace:
    trace = Trace()
    for place, value in enumerate(values):
        trace.add(value, place)
    return trace


def test_a_falling_line_falls() -> None:
    assert traced([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]).sparkline(8) == BLOCKS[::-1]
    assert traced([1.0] * 5).sparkline(5) == BLOCKS[4] * 5


def test_one_spike_and_one_nan_in_a_long_run_are_seen() -> None:
    values = [1.0 + (row % 7) / 100 for row in range(200_000)]
    values[60_000], values[140_000] = 50.0, math.nan
    trace = traced(values)
    line = trace.sparkline(40)
    assert (len(line), line.index("▲"), line.index("!")) == (40, 12, 28)
    assert line.count("▲") == line.count("!") == 1
    assert trace.largest is not None
    assert (trace.largest.value, trace.largest.place, trace.bad) == (50.0, 60_000, 1)
    assert len(trace._buckets) <= 512


def test_what_a_resume_logs_again_is_forgotten() -> None:
    trace = traced([5.0, 4.0, 3.0, math.nan, 1.0])
    trace.drop_from(3)
    assert (trace.bad, trace.smallest and trace.smallest.value) == (0, 3.0)
    trace.add(2.5, 3)
    assert "!" not in trace.sparkline(9)


@given(st.lists(st.floats(width=64), max_size=60), st.integers(0, 70))
def test_any_numbers_fit_any_width(values: list[float], width: int) -> None:
    trace = traced(values)
    for ascii_only in (False, True):
        line = trace.sparkline(width, ascii_only=ascii_only)
        assert len(line) == min(width, len(values))
        assert not ascii_only or line.isascii()
    assert ("!" in trace.sparkline(len(values))) == any(
        not math.isfinite(value) for value in values
    )


def test_extremes_of_floats_are_no_error() -> None:
    most = sys.float_info.max
    assert len(traced([most, -most, 0.0, 5e-324, most]).sparkline(5)) == 5
