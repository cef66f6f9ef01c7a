"""How numbers and times are said on a screen: short, and never longer than what they mean."""

import math

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(seconds: float | None) -> str:
    """E.g. "42 s", "3 m 20 s", "2 h 05 m", "3 d 4 h"; "?" when it is not known."""
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
    """At most nine characters for what metrics are: four significant digits, whole numbers as they
    are."""
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
