"""What people call a metric: `AUROC`, `val/acc`, `neg_root_mean_squared_error`, `macro F1`.

A name is understood when it can only be one metric of the table; else the nearest by meaning are
named.
"""

import difflib
import re
from typing import Any

from harness.domain.metrics import METRICS

_SPLITS = ("val", "valid", "validation", "eval", "evaluation", "dev", "test", "heldout")
_BEFORE = re.compile(rf"\A(?:{'|'.join(_SPLITS)}|held[-_]out)[-_/.:\s]+", re.IGNORECASE)
_MARKS = re.compile(r"[^a-z0-9]+")

_SPELLINGS = {
    "accuracy": "acc top1 top1accuracy top1acc accuracyat1 accat1 categoricalaccuracy",
    "balanced_accuracy": "balancedacc bacc macroaccuracy",
    "top_k_accuracy": "topk top2 top2accuracy topkaccuracy",
    "top_3_accuracy": "top3 top3acc acc3 accat3 accuracyat3",
    "top_5_accuracy": "top5 top5acc acc5 accat5 accuracyat5",
    "f1": "f1binary binaryf1 fscore fmeasure dice",
    "f1_micro": "microf1",
    "f1_macro": "macrof1 macroaveragedf1",
    "f1_weighted": "weightedf1",
    "precision": "ppv binaryprecision positivepredictivevalue",
    "precision_micro": "microprecision",
    "precision_macro": "macroprecision",
    "precision_weighted": "weightedprecision",
    "recall": "sensitivity tpr truepositiverate binaryrecall",
    "recall_micro": "microrecall",
    "recall_macro": "macrorecall uar unweightedaveragerecall",
    "recall_weighted": "weightedrecall",
    "jaccard": "iou jaccardindex intersectionoverunion",
    "jaccard_macro": "macrojaccard meaniou miou",
    "jaccard_micro": "microjaccard",
    "jaccard_weighted": "weightedjaccard",
    "matthews_corrcoef": "mcc matthews matthewscorrelation matthewscorrelationcoefficient phi",
    "cohen_kappa": "kappa cohenskappa",
    "roc_auc": "auc auroc rocaucovr areaunderroc areaunderthecurve rocaucmacro macroauc",
    "average_precision": "ap auprc prauc aucpr averageprecisionmacro meanaverageprecision map",
    "log_loss": "logloss crossentropy crossentropyloss ce bce nll nllloss negativeloglikelihood",
    "brier": "brierloss brierscoreloss",
    "ece": "expectedcalibrationerror calibrationerror",
    "r2": "rsquared rsq coefficientofdetermination",
    "spearman": "spearmanr spearmanrho spearmancorrelation rankcorrelation srcc",
    "mse": "meansquarederror l2loss",
    "rmse": "rootmeansquarederror rootmse",
    "mae": "meanabsoluteerror l1loss l1",
    "mape": "meanabsolutepercentageerror",
    "median_absolute_error": "medianae medae medianabsoluteerror",
}
_BY_WORD = {
    word: name
    for name, words in _SPELLINGS.items()
    for word in (*words.split(), _MARKS.sub("", name))
}
_NEAR = {
    "loss": ("log_loss", "mse", "mae"),
    "error": ("accuracy", "mae", "rmse"),
    "errorrate": ("accuracy",),
    "classificationerror": ("accuracy",),
    "exactmatch": ("accuracy",),
    "hitrate": ("recall", "top_k_accuracy"),
    "score": ("accuracy", "roc_auc", "r2"),
    "correlation": ("spearman", "matthews_corrcoef"),
    "corr": ("spearman", "matthews_corrcoef"),
    "pearson": ("spearman", "r2"),
    "pearsonr": ("spearman", "r2"),
    "kendalltau": ("spearman",),
    "f2": ("f1",),
    "fbeta": ("f1",),
    "specificity": ("recall", "balanced_accuracy"),
    "tnr": ("recall", "balanced_accuracy"),
    "gini": ("roc_auc",),
    "rocaucovo": ("roc_auc",),
    "rocaucovrweighted": ("roc_auc",),
    "rocaucovoweighted": ("roc_auc",),
    "rocaucweighted": ("roc_auc",),
    "rocaucmicro": ("roc_auc",),
    "perplexity": ("log_loss",),
    "ppl": ("log_loss",),
    "likelihood": ("log_loss",),
    "qwk": ("cohen_kappa",),
    "quadraticweightedkappa": ("cohen_kappa",),
    "calibration": ("ece", "brier"),
    "explainedvariance": ("r2",),
    "adjustedr2": ("r2",),
    "smape": ("mape",),
    "wape": ("mape", "mae"),
    "msle": ("mse",),
    "rmsle": ("rmse",),
    "huber": ("mae",),
    "maxerror": ("mae", "rmse"),
}
"""Words that no metric of the table is, or several are, and what is nearest in meaning."""


def understood(written: Any) -> str | None:
    """The table's name of what somebody wrote; None when it is none, or cannot be decided."""
    if not isinstance(written, str):
        return None
    if written in METRICS:
        return written
    key = _key(written)
    # scikit-learn's functions end in _score, its scorers of losses begin with neg_.
    plain = key.removeprefix("neg")
    forms = (key, key.removesuffix("score"), plain, plain.removesuffix("score"))
    return next((_BY_WORD[form] for form in forms if form in _BY_WORD), None)


def nearest(written: str) -> tuple[str, ...]:
    """Names of the table, the nearest in meaning first, then by letters; at most three."""
    key = _key(written)
    known = understood(written)
    if known is not None:
        return (known,)
    if key in _NEAR:
        return _NEAR[key]
    matcher, ratios = difflib.SequenceMatcher(b=key), dict[str, float]()
    for word in (*_BY_WORD, *_NEAR):
        matcher.set_seq1(word)
        ratios[word] = matcher.ratio()
    least = max(0.75, max(ratios.values()) - 0.05)
    words = sorted(
        (word for word in ratios if ratios[word] >= least), key=lambda one: -ratios[one]
    )
    names = (name for word in words for name in _NEAR.get(word) or (_BY_WORD[word],))
    return tuple(dict.fromkeys(names))[:3]


def negated(written: str) -> bool:
    """Whether it is scikit-learn's name of a loss with its sign turned."""
    sign = written.strip().lower().startswith("neg_")
    return sign and understood(written) is not None


def _key(written: str) -> str:
    text = re.sub(r"@\s*(\d)", r" at \1", written.strip())
    return _MARKS.sub("", _BEFORE.sub("", text.lower()))
