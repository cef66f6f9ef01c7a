"""Names that people write are those of the table; others are answered with the nearest ones."""

import pytest

from harness.domain.metric_words import _NEAR, _SPELLINGS, nearest, understood
from harness.domain.metrics import METRICS
from harness.errors import PlanError
from harness.plans.metric_names import metric_called
from harness.plans.parse import parse_plan
from tests.blobs import PLAN


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("AUROC", "roc_auc"),
        ("auc", "roc_auc"),
        ("ROC AUC", "roc_auc"),
        ("roc_auc_score", "roc_auc"),
        ("R2", "r2"),
        ("R^2", "r2"),
        ("val/acc", "accuracy"),
        ("eval_accuracy", "accuracy"),
        ("held-out AUC", "roc_auc"),
        ("F1", "f1"),
        ("f1-score", "f1"),
        ("macro_f1", "f1_macro"),
        ("Macro F1", "f1_macro"),
        ("weighted-F1", "f1_weighted"),
        ("rmse", "rmse"),
        ("neg_root_mean_squared_error", "rmse"),
        ("neg_brier_score", "brier"),
        ("neg_log_loss", "log_loss"),
        ("cross-entropy", "log_loss"),
        ("acc@5", "top_5_accuracy"),
        ("MCC", "matthews_corrcoef"),
        ("PR-AUC", "average_precision"),
        ("mAP", "average_precision"),
    ],
)
def test_it_is_understood(written, name):
    assert understood(written) == name
    assert metric_called(written) is METRICS[name]
    text = PLAN.replace("metric: accuracy", f'metric: "{written}"')
    text = text.replace("scorer: accuracy", f'scorer: "{written}"')
    if METRICS[name].direction == "minimize":
        text = text.replace("maximize", "minimize").replace(TIERS, "{must: 0.2}")
    oracle = parse_plan(text, where="plan.md").oracle
    assert (oracle.metric, oracle.scorer) == (name, name)


TIERS = PLAN[PLAN.index("tiers: ") + 7 : PLAN.index("}", PLAN.index("tiers: ")) + 1]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("loss", ("log_loss", "mse", "mae")),
        ("val_error", ("accuracy", "mae", "rmse")),
        ("perplexity", ("log_loss",)),
        ("pearson", ("spearman", "r2")),
        ("roc_auc_ovo", ("roc_auc",)),
        ("rocauk", ("roc_auc",)),
        ("acurracy", ("accuracy",)),
        ("bleu", ()),
    ],
)
def test_another_word_is_answered_with_the_nearest(written, names):
    assert understood(written) is None
    assert nearest(written) == names
    with pytest.raises(PlanError) as error:
        metric_called(written)
    assert error.value.exit_code == 2
    assert repr(written) in error.value.message
    assert all(name in error.value.hint for name in names)
    with pytest.raises(PlanError) as refused:
        parse_plan(PLAN.replace("scorer: accuracy", f"scorer: {written}"), where="plan.md")
    assert f"found {written!r}" in refused.value.message
    meant = f"Did you mean {' or '.join(map(repr, names))}?"
    assert (meant in refused.value.message) == bool(names)


def test_each_name_of_the_table_and_each_spelling_is_one_metric():
    words = [word for some in _SPELLINGS.values() for word in some.split()]
    assert len(words) == len(set(words))
    assert set(_SPELLINGS) <= set(METRICS)
    assert {name for names in _NEAR.values() for name in names} <= set(METRICS)
    assert not set(words) & set(_NEAR)
    for name in METRICS:
        assert understood(name) == name == understood(name.upper().replace("_", "-"))


def test_the_sign_of_scikit_learn_is_told():
    text = PLAN.replace("metric: accuracy", "metric: neg_mean_squared_error")
    with pytest.raises(PlanError) as error:
        parse_plan(text.replace("scorer: accuracy", "scorer: neg_mean_squared_error"), where="p")
    assert "expected minimize, because mse gets better that way" in error.value.message
    assert "neg_ is scikit-learn's sign" in error.value.message


def test_a_scripts_metric_keeps_its_own_name():
    text = PLAN.replace("metric: accuracy", "metric: auroc")
    oracle = parse_plan(text.replace("scorer: accuracy", "scorer: judge.py"), where="p").oracle
    assert (oracle.metric, oracle.scorer) == ("auroc", "judge.py")
