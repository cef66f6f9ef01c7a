"""How the demo ends, wherever its seeds trained."""

import re
from collections.abc import Mapping
from typing import Any


def assert_target_hit(summary: Mapping[str, Any]) -> None:
    first, broken, second, third = summary["experiments"]
    assert summary["target_hit"]
    assert first["findings"][0]["code"] == "run_logger_bypassed"
    assert first["scores"]["validation"] is None
    assert "stopped by the alarm" in broken["findings"][0]["message"]
    assert broken["scores"]["validation"] is None
    fatal = [line for line in broken["alarms"] if "fatal" in line]
    assert fatal
    assert all("non_finite" in line for line in fatal)
    # One session explains all seeds that broke.
    (explained_by,) = broken["diagnosed_by"]
    assert re.fullmatch(r"training-mlp-checker-2-run-01-1-[0-9a-f]{6}", explained_by)
    assert 0.6 < second["scores"]["validation"]["mean"] < 0.8
    assert third["scores"]["held_out"]["mean"] > 0.9
    assert [item["decision"] for item in summary["experiments"]] == ["DISCARD"] * 3 + ["KEEP"]
