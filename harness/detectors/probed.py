"""The detector of what `harness.training.probes` measures, one number at a time."""

from typing import NamedTuple

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
)
from harness.detectors.rows import WatchedRow

PREFIX = "probe/"


class _Rule(NamedTuple):
    threshold: str
    says: str
    note: bool = False
    below: bool = False


_RULES: dict[str, tuple[_Rule, ...]] = {
    "frozen": (_Rule("unmoved_parameters.frozen", "of the parameters are frozen", note=True),),
    "left_out": (_Rule("unmoved_parameters.left_out", "of the parameters are in no optimizer"),),
    "unused": (_Rule("unmoved_parameters.unused", "of the parameters get no gradient"),),
    "still": (_Rule("unmoved_parameters.still", "of the parameters do not move"),),
    "dead_units": (_Rule("dead_units.dead_units", "of a layer's units are off for every row"),),
    "update_ratio": (
        _Rule("update_size.update_ratio", "of a weight's norm by one step"),
        _Rule("update_size.least", "of a weight's norm by one step", note=True, below=True),
    ),
    "evaluation_in_train_mode": (
        _Rule("wrong_mode.evaluation_in_train_mode", "of the evaluations in training mode"),
    ),
    "training_in_eval_mode": (
        _Rule("wrong_mode.training_in_eval_mode", "of the steps in evaluation mode", note=True),
    ),
    "overlap": (_Rule("batch_overlap.overlap", "of the evaluated rows were trained on"),),
    "same_order": (
        _Rule("data_order.same_order", "of the rows in the order of the epoch before", note=True),
    ),
    "distinct": (_Rule("data_order.distinct", "of the rows are different ones", below=True),),
}


class Probed(SeriesDetector):
    """A number of a probe beyond its threshold, in several rows."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.key.removeprefix(PREFIX) in _RULES and metric.key.startswith(PREFIX)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._rules = [
            (rule, Episode(limits[f"{rule.threshold.partition('.')[0]}.rows"]))
            for rule in _RULES[metric.key.removeprefix(PREFIX)]
        ]

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        for rule, episode in self._rules:
            limit = self._limits[rule.threshold]
            change = episode.step(value < limit if rule.below else value > limit)
            if change is EpisodeChange.NOTHING:
                continue
            shown = f"{value:.3g}" if "norm" in rule.says else f"{value:.0%}"
            alarm = self._alarm(rule.threshold, change, row, series, f"{shown} {rule.says}")
            return alarm.at_most(Severity.NOTE) if rule.note else alarm
        return None
