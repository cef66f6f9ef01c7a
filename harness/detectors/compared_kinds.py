"""Rows of the table of kinds about what is compared: replicas of one run, a run and its parent."""

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
BEHIND_PARENT = AlarmKind(
    "The plan's metric trails the parent's at the same epoch or step. A note; only where"
    " `alarms.stop_on` names it, and the run ends then.",
    {
        "spreads": Threshold(2.0, "times the spread of the parent's seeds", "chosen"),
        "rows": persistent(5),
    },
    ("Let it train to its end where it learns slowly at first and well later.",),
    ("harness.detectors.behind:BehindParent",),
)
