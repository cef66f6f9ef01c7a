"""The kinds of alarm that `harness.training.probes` makes possible: rows alone do not show them."""

from collections.abc import Mapping

from harness.detectors.alarm_kind import AlarmKind, Threshold, persistent

_CLASS = ("harness.detectors.probed:Probed",)
_ROWS = persistent(2)
_CHOSEN = "chosen; probes"

PROBE_KINDS: Mapping[str, AlarmKind] = {
    "unmoved_parameters": AlarmKind(
        "Parameters that should be trained are not.",
        {
            "frozen": Threshold(0.0, "of the parameters need no gradient: a note", _CHOSEN),
            "left_out": Threshold(0.01, "of the parameters are in no optimizer", _CHOSEN),
            "unused": Threshold(0.01, "of the parameters get no gradient", _CHOSEN),
            "still": Threshold(0.01, "of the parameters do not move by a step", _CHOSEN),
            "rows": _ROWS,
        },
        (
            "Give the optimizer the parameters of the model that is trained, after it was moved"
            " and wrapped.",
            "Look for detach(), no_grad() and layers whose output nothing uses.",
        ),
        _CLASS,
    ),
    "dead_units": AlarmKind(
        "Units of a layer are off for every row.",
        {
            "dead_units": Threshold(0.9, "of the units of one layer", "neuroscope: 90% zeros"),
            "rows": _ROWS,
        },
        ("Lower the learning rate; look at the initialization, and at biases far below 0.",),
        _CLASS,
    ),
    "update_size": AlarmKind(
        "A step changes the weights by too much or hardly at all.",
        {
            "update_ratio": Threshold(0.3, "of a weight's norm by one step", _CHOSEN),
            "least": Threshold(1e-8, "of a weight's norm by one step: a note", _CHOSEN),
            "rows": _ROWS,
        },
        ("Healthy steps are near 0.001 of the weights: change the learning rate.",),
        _CLASS,
    ),
    "wrong_mode": AlarmKind(
        "Dropout or batch norm are in the wrong mode.",
        {
            "evaluation_in_train_mode": Threshold(0.0, "of the evaluating forwards", _CHOSEN),
            "training_in_eval_mode": Threshold(0.5, "of the training forwards: a note", _CHOSEN),
            "rows": _ROWS,
        },
        ("Call model.eval() before an evaluation and model.train() after it.",),
        _CLASS,
    ),
    "batch_overlap": AlarmKind(
        "Rows that are evaluated were trained on.",
        {"overlap": Threshold(0.01, "of the evaluated rows", _CHOSEN), "rows": _ROWS},
        (
            "Split by row before anything is shuffled or repeated; put an evaluation on training"
            " rows into `with probes.off():`.",
        ),
        _CLASS,
    ),
    "data_order": AlarmKind(
        "Rows come in the same order in each epoch, or few rows again and again.",
        {
            "same_order": Threshold(0.9, "of the places have the row of before: a note", _CHOSEN),
            "distinct": Threshold(0.1, "of an epoch's rows are different ones", _CHOSEN),
            "rows": _ROWS,
        },
        ("Shuffle; with a DistributedSampler call set_epoch(epoch); look at the sampler.",),
        _CLASS,
    ),
}
