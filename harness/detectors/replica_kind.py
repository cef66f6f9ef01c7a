"""The row of the table of kinds about replicas of one run."""

from harness.detectors.alarm_kind import AlarmKind, Threshold, persistent

_CHOSEN = "chosen: equal replicas on equal shares differ by less; not measured"
REPLICA_APART = AlarmKind(
    "One replica takes much longer for a round, or goes much further in it, than the others.",
    {
        "seconds": Threshold(2.0, "times the median of the others' seconds", _CHOSEN),
        "drift": Threshold(4.0, "times the median of the others' drift", _CHOSEN),
        "rows": persistent(3),
    },
    ("Look at that replica's processor and data, or at its rows and learning rate.",),
    ("harness.detectors.replicas:ReplicaLags", "harness.detectors.replicas:ReplicaDrifts"),
)
