"""The watch as its users see it: settings, recovered alarms, JSON, memory, and reported cases.

`case_NN` in a name is the number of a reported case: a log or a habit of a real project that an
earlier tool misjudged. What was reported stands in the test itself.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, cast

import pytest

from bench.detectors.real_logs import labels
from harness.detectors.alarm import Alarm, Severity, open_alarms
from harness.detectors.alarm_kind import AlarmKind, Threshold
from harness.detectors.kinds import KINDS
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings, known_thresholds
from harness.domain.statuses import Direction
from harness.errors import UsageError
from tests.metrics_rows import read_rows

ROOT = Path(__file__).resolve().parents[2]
NAN = float("nan")


def fed(
    rows: list[dict[str, Any]], settings: WatchSettings | None = None
) -> tuple[RunWatch, list[Alarm]]:
    watch = RunWatch(settings)
    return watch, [alarm for row in rows for alarm in watch.feed(row)]


def losses(*values: float) -> list[dict[str, Any]]:
    return [{"step": step, "loss": value} for step, value in enumerate(values)]


def test_an_alarm_that_is_over_is_told_and_no_longer_open():
    watch, alarms = fed(losses(2.0, 1.9, NAN, NAN, 1.8, 1.7, 1.6))
    assert [(a.code, a.recovered, a.open) for a in alarms] == [
        ("non_finite", False, True),
        ("non_finite", True, False),
    ]
    assert watch.open == open_alarms(alarms) == []


def test_a_spike_that_recovers_ends_its_alarm():
    watch, alarms = fed(
        losses(
            *(1 + i % 2 / 50 for i in range(20)),
            9,
            9,
            9,
            9,
            9,
            *(1 + i % 2 / 50 for i in range(9)),
        )
    )
    assert [alarm.code for alarm in alarms if "spike" in alarm.code] == [
        "loss_spike",
        "spike_recovered",
    ]
    assert watch.open == open_alarms(alarms) == []


def test_fatal_after_three_rows_and_only_where_the_plan_says_so():
    rows = losses(2.0, NAN, NAN, NAN)
    watch, _ = fed(rows[:3])
    assert watch.fatal() is None
    watch, _ = fed(rows)
    fatal = watch.fatal()
    assert fatal is not None
    assert (fatal.code, fatal.severity) == ("non_finite", Severity.FATAL)
    assert fed(rows, WatchSettings(stop_on=frozenset()))[0].fatal() is None


def test_a_code_that_is_off_is_not_told():
    assert fed(losses(2.0, NAN, NAN, NAN), WatchSettings(off=frozenset({"non_finite"})))[1] == []


def test_thresholds_of_the_plan_are_used():
    rows = losses(2.0, NAN, NAN, NAN, NAN, NAN)
    _, alarms = fed(rows, WatchSettings(thresholds={"non_finite.rows": 5}))
    assert [alarm.row for alarm in alarms if alarm.severity is Severity.WARNING] == [6]
    assert next(a for a in alarms if a.severity is Severity.WARNING).limit == 5


@pytest.mark.parametrize(
    "given",
    [
        {"off": frozenset({"nan"})},
        {"stop_on": frozenset({"nan"})},
        {"thresholds": {"stall.row": 1}},
    ],
)
def test_an_unknown_code_or_threshold_is_refused(given: dict[str, Any]):
    with pytest.raises(UsageError, match="There is no"):
        WatchSettings(**given)


def test_the_plan_says_the_direction_of_its_metric():
    rows = [
        {"epoch": i, "train_loss": 2.0 * 0.9**i, "val_q": 0.5 + 0.05 * abs(i - 6)}
        for i in range(20)
    ]
    assert fed(rows)[1] == []
    _, alarms = fed(rows, WatchSettings(directions={"val_q": Direction.MINIMIZE}))
    assert {(alarm.code, alarm.metric) for alarm in alarms} == {("overfit", "val_q")}


def test_json_is_strict_and_goes_both_ways():
    _, alarms = fed(losses(2.0, NAN, math.inf, -math.inf, 1.0, 1.0, 1.0))
    assert len(alarms) == 3
    for alarm in alarms:
        text = json.dumps(alarm.plain(), allow_nan=False)
        again = Alarm.from_plain(json.loads(text))
        assert json.dumps(again.plain()) == text
        assert dataclasses.replace(again, evidence=()) == dataclasses.replace(alarm, evidence=())


def test_memory_is_bounded_in_rows_and_in_metrics():
    watch = RunWatch()
    sizes = []
    for i in range(3_000):
        watch.feed(
            {
                "epoch": i,
                "t": float(i),
                "lr": 1e-3,
                "loss": 1 + i % 7 / 9,
                "val_loss": 1.0 + i % 5 / 7,
            }
        )
        if i in (500, 2_999):
            sizes.append(_size(watch))
    assert sizes[0] == sizes[1]
    for i in range(1_000):
        watch.feed({"epoch": i, f"metric_{i}": 1.0})
    assert len(watch._metrics) == 200


def _size(thing: object, seen: set[int] | None = None) -> int:
    """How many things hang on it, settings aside."""
    seen = set() if seen is None else seen
    if (
        id(thing) in seen
        or isinstance(thing, (type, WatchSettings, str, float, int))
        or thing is None
    ):
        return 0
    seen.add(id(thing))
    names = (
        [n for k in type(thing).__mro__ for n in getattr(k, "__slots__", ())]
        if hasattr(thing, "__class__")
        else []
    )
    parts = [getattr(thing, name) for name in names if hasattr(thing, name)] + list(
        getattr(thing, "__dict__", {}).values()
    )
    if isinstance(thing, dict):
        parts += list(thing.values())
    elif hasattr(thing, "__iter__") and hasattr(thing, "__len__"):
        parts += list(thing)
    return 1 + len(parts) + sum(_size(part, seen) for part in parts)


def test_real_logs_have_the_label_that_a_person_gave_them():
    found = labels()
    assert len(found) == 4
    assert {name: got for name, (_, got) in found.items()} == {
        name: given for name, (given, _) in found.items()
    }


def test_case_11_a_repeated_loss_and_a_nan_gradient_are_two_faults():
    rows = [
        {
            "step": i,
            "loss": 2.0 - i / 100 if i < 20 else 1.8123,
            "grad_norm": 1.1 if i < 20 else NAN,
        }
        for i in range(60)
    ]
    watch, alarms = fed(rows)
    assert {(alarm.code, alarm.metric) for alarm in watch.open} == {
        ("stall", "loss"),
        ("non_finite", "grad_norm"),
    }
    assert all(alarm.row > 20 for alarm in alarms)
    zero = [
        {"step": 10 * i, "loss": 0.0 if i else 14577.98, "grad_norm": NAN, "eval_loss": NAN}
        for i in range(40)
    ]
    watch, alarms = fed(zero)
    assert alarms[0].row == 2
    assert {alarm.metric for alarm in watch.open} == {"grad_norm", "eval_loss"}


def test_case_20_a_resume_and_counters_of_other_streams_are_no_spike(tmp_path: Path):
    rows = [{"step": i, "loss": 2.0 - i / 50} for i in range(30)] + [
        {"step": i, "loss": 2.0 - i / 50} for i in range(20, 35)
    ]
    assert fed(rows)[1] == []
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    effective = read_rows(path).effective
    assert len(effective) == 35
    assert fed(effective)[1] == []
    assert (
        fed(
            [
                {"step": 8073, "inference/latency": 1.2},
                {"step": 0, "loss": 2.0},
                {"step": 1, "loss": 1.9},
            ]
        )[1]
        == []
    )


def test_case_24_a_nan_is_neither_the_best_nor_an_alarm_by_itself():
    watch, alarms = fed(
        [{"step": s, "eval_acc": v} for s, v in ((100, NAN), (200, 0.61), (300, NAN), (400, 0.70))]
    )
    assert alarms == []
    assert watch._metrics["eval_acc"].series.best == 0.70
    assert [a.code for a in fed([{"step": s, "eval_acc": NAN} for s in range(5)])[1]] == [
        "non_finite"
    ]


def test_case_41_loss_0_is_judged_by_the_spread_of_rewards():
    healthy = [
        {"step": i, "loss": 0.0, "reward": 0.4, "reward_std": 0.7, "kl": 0.01} for i in range(30)
    ]
    assert fed(healthy)[1] == []
    no_signal = [
        {"step": i, "loss": 0.0, "reward": 1.0, "reward_std": 0.0, "kl": 0.01} for i in range(30)
    ]
    assert [alarm.code for alarm in fed(no_signal)[0].open] == ["reward_spread_zero"]
    one_none = [{**row, "reward": None} if i == 7 else row for i, row in enumerate(healthy)]
    assert fed(one_none)[1] == []


def test_a_new_detector_is_one_file_and_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "negative_loss.py").write_text(
        """
from harness.detectors.base import EpisodeChange, SeriesDetector, make_alarm


class NegativeLoss(SeriesDetector):
    @staticmethod
    def watches(metric):
        return metric.whole

    def __init__(self, metric, limits):
        self._limits = limits

    def feed(self, series, row, value, around):
        if value >= self._limits["negative_loss.least"]:
            return None
        return make_alarm(
            "negative_loss",
            EpisodeChange.WARNING,
            row,
            metric=series.key,
            message=f"{value:g}",
            evidence=series.evidence(1),
            threshold="least",
            limits=self._limits,
        )
""",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    kind = AlarmKind(
        "The loss is negative.",
        {"least": Threshold(0.0, "loss", "a cross-entropy is never negative")},
        ("Check the sign of the loss.",),
        ("negative_loss:NegativeLoss",),
    )
    monkeypatch.setitem(cast(dict[str, AlarmKind], KINDS), "negative_loss", kind)
    rows = losses(2.0, 1.0, -1.0)
    watch, _ = fed(rows)
    assert [(alarm.code, alarm.row, alarm.tries) for alarm in watch.open] == [
        ("negative_loss", 3, kind.tries)
    ]
    assert fed(rows, WatchSettings(thresholds={"negative_loss.least": -2.0}))[1] == []
    assert fed(rows, WatchSettings(off=frozenset({"negative_loss"})))[1] == []


def test_the_page_has_the_table_of_kinds():
    page = (ROOT / "docs" / "detectors.md").read_text("utf-8")
    for code, kind in KINDS.items():
        assert f"| `{code}` | {kind.meaning} |" in page
    for name, value in known_thresholds().items():
        assert f"`{name} = {value:g} " in page


def test_each_fault_is_reported_as_it_was_listed_beforehand():
    pytest.importorskip("torch")
    from bench.detectors.faults import KINDS as FAULTS

    page = (ROOT / "docs" / "detectors.md").read_text("utf-8")
    figures = json.loads((ROOT / "docs/evidence/detectors.json").read_text("utf-8"))["figures"]
    for name, kind in FAULTS.items():
        listed = "visible" if kind.visible else "probe"
        assert f"| {name} | {listed} | {figures[f'recall_{name}']} |" in page
    probes = {name for name, kind in FAULTS.items() if not kind.visible}
    assert probes == {"frozen_layers", "leaked_rows", "resume_without_optimizer"}
    assert (
        figures["visible_runs"] == 5 * figures["visible_kinds"] == 5 * (len(FAULTS) - len(probes))
    )
