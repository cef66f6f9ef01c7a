"""The classes that a metric takes: which is the positive one, and what plan check refuses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.domain.metrics import METRICS
from harness.plans.approval import PlanCheck, check_plan
from harness.plans.prediction_form import predictions_told
from harness.plans.tables import write_table
from tests.blobs import PLAN

Check = Callable[..., PlanCheck]


@pytest.fixture
def check(root: Path, environment: dict[str, str]) -> Check:
    """Check the plan with a metric; `labels` of each split take the place of 0 and 1."""

    def checked(metric: str, *, positive: str = "", **labels: list[object]) -> PlanCheck:
        more = f"  positive: {positive}\n" if positive else ""
        text = PLAN.replace("metric: accuracy", f"metric: {metric}")
        text = text.replace("  scorer: accuracy\n", f"  scorer: {metric}\n{more}")
        if METRICS[metric].direction == "minimize":
            text = text.replace("maximize", "minimize")
            text = text.replace("must: 0.90, should: 0.92", "must: 0.92, should: 0.90")
        (root / "plan.md").write_text(text)
        for seed, (name, rows) in enumerate([("train", 60), ("validation", 30), ("held_out", 40)]):
            if labels:
                draw = np.random.default_rng(seed)
                write_table(
                    root / f"data/{name}.npz",
                    {
                        "x": draw.normal(size=(rows, 2)),
                        "y": np.resize(labels.get(name, labels["train"]), rows),
                        "row": np.arange(rows),
                    },
                )
        return check_plan(root, root / "plan.md", environment, by_person=True)

    return checked


def told(checked: PlanCheck) -> str:
    assert checked.plan is not None
    return predictions_told(checked.plan, checked.splits)


@pytest.mark.parametrize(
    ("metric", "positive", "labels", "words"),
    [
        ("roc_auc", "", [0, 1], "likelier '1'), or `p_1`; positive class '1', the greater label"),
        ("roc_auc", "0", [0, 1], "likelier '0'), or `p_0`; positive class '0', oracle.positive"),
        ("roc_auc", "no", ["no", "yes"], "or `p_no`; positive class 'no', oracle.positive"),
        ("average_precision", "", ["10", "9"], "positive class '10', the greater label"),
        ("f1", "", ["no", "yes"], "`prediction` (a class); positive class 'yes'"),
        ("f1_macro", "", ["a", "b", "c"], "`id` and `prediction` (a class)"),
        ("roc_auc", "", ["a", "b", "c"], "p_a, p_b, p_c (probabilities); each class against"),
        ("accuracy", "", ["a", "b", "c"], "`id` and `prediction` (a class)"),
    ],
)
def test_plan_check_says_what_to_write_and_which_class_is_positive(
    check: Check, metric: str, positive: str, labels: list[object], words: str
) -> None:
    checked = check(metric, positive=positive, train=labels)
    assert checked.problems == ()
    assert words in told(checked)


@pytest.mark.parametrize(
    ("metric", "positive", "labels", "words"),
    [
        ("f1", "", ["a", "b", "c"], "f1 takes two classes, and there are 3: 'a', 'b', 'c'"),
        ("f1", "", ["a"], "f1 takes two classes, and there is 1: 'a'"),
        ("roc_auc", "", ["a"], "roc_auc takes two classes or more, and there is 1: 'a'"),
        ("roc_auc", "maybe", ["no", "yes"], "oracle.positive is 'maybe', which no label is"),
        ("roc_auc", "a", ["a", "b", "c"], "oracle.positive is for two"),
        ("top_3_accuracy", "", ["a", "b", "c"], "it is 1 whatever is predicted"),
    ],
)
def test_classes_that_the_metric_does_not_take_are_refused(
    check: Check, metric: str, positive: str, labels: list[object], words: str
) -> None:
    (problem,) = check(metric, positive=positive, train=labels).problems
    assert (problem.code, problem.exit_code) == ("classes_unfit", 2)
    assert words in problem.message
    assert problem.hint


def test_a_split_without_one_of_two_classes_or_with_a_third_is_refused(check: Check) -> None:
    (alone,) = check("roc_auc", train=[0, 1], validation=[1]).problems
    assert "The validation rows" in alone.message
    assert "all are of the class '1', of which roc_auc is not known" in alone.message
    (third,) = check("f1", train=["a", "b"], held_out=["a", "b", "c"]).problems
    assert "The held_out rows" in third.message
    assert "the class 'c' is not among the two of training ('a', 'b')" in third.message


@pytest.mark.parametrize(
    ("scorer", "words"),
    [("accuracy", "accuracy has no positive class"), ("judge.py", "a script knows its classes")],
)
def test_a_positive_class_where_there_is_none_is_refused(
    root: Path, environment: dict[str, str], scorer: str, words: str
) -> None:
    (root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    text = PLAN.replace("  scorer: accuracy\n", f"  scorer: {scorer}\n  positive: 1\n")
    (root / "plan.md").write_text(text)
    (problem,) = check_plan(root, root / "plan.md", environment, by_person=True).problems
    assert f"oracle.positive: found 1, expected nothing: {words}" in problem.message


@pytest.mark.parametrize("metric", ["recall", "ece"])
def test_a_metric_that_rewards_no_knowledge_is_noted(check: Check, metric: str) -> None:
    (note,) = [one for one in check(metric).findings if one.code == "metric_weak"]
    assert f"{metric} rewards what knows nothing of a row" in note.message


@pytest.mark.parametrize(
    ("metric", "direction", "said"),
    [
        ("val_error", "maximize", "smaller"),
        ("auroc", "minimize", "larger"),
        ("my_f1", "minimize", "larger"),
        ("val_error", "minimize", None),
        ("quality", "minimize", None),
    ],
)
def test_a_direction_against_the_metrics_name_is_noted(
    root: Path, environment: dict[str, str], metric: str, direction: str, said: str | None
) -> None:
    """../shared/cases/second/reports/21-direction-against-the-name."""
    text = PLAN.replace("metric: accuracy", f"metric: {metric}")
    text = text.replace("scorer: accuracy", "scorer: sc.py")
    text = text.replace("direction: maximize", f"direction: {direction}")
    if direction == "minimize":
        text = text.replace("must: 0.90, should: 0.92", "must: 0.92, should: 0.90")
    (root / "plan.md").write_text(text)
    (root / "sc.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    checked = check_plan(root, root / "plan.md", environment, by_person=True)
    assert checked.problems == ()
    notes = [one for one in checked.findings if one.code == "direction_against_name"]
    assert [f"is better the {said} it is" in one.message for one in notes] == [True] * bool(said)
