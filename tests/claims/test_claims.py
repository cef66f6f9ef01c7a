"""Planted false claims are found, and honest lines stay quiet."""

from dataclasses import replace

import pytest

from harness.claims.checks import of_plan
from harness.claims.judge import JudgedClaim, judged
from harness.claims.known_facts import HOLDS, ClaimKind, KnownExperiment, KnownFacts, KnownScore
from harness.claims.sentences import sentences

OURS, PARENT = "exp-0002", "exp-0001"


def score(mean: float, values: tuple[float, ...], rows: int = 1000) -> KnownScore:
    return KnownScore(
        mean=mean,
        spread=0.0031,
        values=values,
        rows=rows,
        interval=(mean - 0.012, mean + 0.012),
        baseline=0.1034,
    )


KNOWN = KnownFacts(
    experiments={
        PARENT: KnownExperiment(
            id=PARENT,
            parent=None,
            metric="accuracy",
            maximize=True,
            tiers=(0.9, 0.95),
            launches=3,
            seconds=84.0,
            scores={"validation": score(0.9112, (0.9087, 0.9112, 0.9137))},
            logged={"train/loss": (0.9, 0.35)},
        ),
        OURS: KnownExperiment(
            id=OURS,
            parent=PARENT,
            metric="accuracy",
            maximize=True,
            tiers=(0.9, 0.95),
            launches=4,
            seconds=40.0,
            scores={
                "validation": score(0.9413, (0.9382, 0.9413, 0.9444)),
                "held_out": score(0.9276, (0.9251, 0.9276, 0.9301), 2000),
            },
            logged={"train/loss": (1.2, 0.41, 0.1873), "val/accuracy": (0.52, 0.88, 0.9433)},
        ),
    },
    evidence={
        "docs/evidence/bench.json": {"status_ratio": 18.4, "minutes": 12.0, "memory_saved": 0.31}
    },
    programs=frozenset({"bench/memory.py"}),
)


def claims(text: str, *, experiment: str | None = OURS, report: bool = True) -> list[JudgedClaim]:
    return judged(sentences(text, experiment=experiment, report=report), KNOWN, file="text.md")


FALSE_IN_A_RESULT = {
    "a fraction": "The accuracy is 0.9613 on validation.",
    "a percentage": "It ends at an accuracy of 96.1 %.",
    "percent of a fraction": "Accuracy: 0.9413 %",
    "a decimal comma": "The accuracy was 96,1 %.",
    "words": "Validation accuracy came out at ninety-six percent.",
    "words with a point": "Accuracy reached ninety-six point one percent on validation.",
    "full-width digits": "accuracy ０.９６１",
    "emphasis": "Accuracy is **0.961** now.",
    "in code": "The accuracy is `0.961`.",
    "a row of a table": "| metric | value |\n|---|---|\n| accuracy | 0.961 |",
    "a column of a table": (
        "| experiment | validation accuracy |\n|---|---|\n| exp-0001 | 0.911 |"
        "\n| exp-0002 | 0.961 |"
    ),
    "experiments as columns": (
        "| | exp-0001 | exp-0002 |\n|---|---|---|\n| accuracy | 0.911 | 0.961 |"
    ),
    "printed output": "It printed:\n\n```text\nvalidation accuracy: 0.961\n```",
    "number before metric": "We see 0.961 validation accuracy.",
    "over two lines": "After a few changes the accuracy on the\nvalidation split is\n0.961.",
    "no metric at all": "The network reached 0.961.",
    "complement": "The error rate fell to 3.9 %.",
    "points gained": "This improved accuracy by 5 points.",
    "points in words": "It is three point nine points better than exp-0001.",
    "a signed difference": "That is +0.05 over exp-0001.",
    "a loss sold as a gain": "Accuracy is 3 points worse than exp-0001.",
    "another experiment": "exp-0001 had 0.94 on validation.",
    "swapped experiments": "exp-0001 and exp-0002 reach 0.941 and 0.911.",
    "swapped in brackets": "exp-0001 (0.941) loses to exp-0002.",
    "no such experiment": "exp-0009 reached an accuracy of 0.93.",
    "held-out called validation": "The validation accuracy is 0.9276.",
    "validation called held-out": "On held-out the accuracy is 0.9413.",
    "the best seed as the score": "Validation accuracy is 0.9444.",
    "best of more seeds": "The best of 5 seeds reached 0.9444.",
    "a best that none had": "The best seed has an accuracy of 0.9513.",
    "spread": "Accuracy 0.9413 ± 0.0005 on validation.",
    "interval": "Accuracy 0.9413 on validation, 95 % interval [0.939, 0.944].",
    "seeds": "The mean is over 5 seeds.",
    "seeds in words": "We trained five seeds.",
    "launches": "There were 3 runs.",
    "rows": "It was tested on 10,000 validation rows.",
    "at least": "Validation accuracy is above 0.95.",
    "a target that is none": "The target accuracy of 0.97 was met.",
    "a training metric": "The train loss ended at 0.05.",
    "another metric": "F1 is 0.93.",
    "faster": "It trains 3.4x faster than exp-0001, measured.",
    "saving without how": "The new loader saves 40 % memory.",
    "twice": "It is twice as fast as before.",
    "too coarse": "Accuracy is 1.",
}


@pytest.mark.parametrize("text", FALSE_IN_A_RESULT.values(), ids=FALSE_IN_A_RESULT)
def test_a_false_claim_in_a_result_is_found(text):
    assert [item for item in claims(text) if item.kind not in HOLDS] != []


FALSE_IN_DOCUMENTS = {
    "README": "Models reach 97 % accuracy.",
    "CHANGELOG line": "- `harness status` starts 2.1x faster.",
    "halved": "- The ledger's memory is halved.",
    "measured without evidence": "Measured: the cache saves 40 % of the time.",
    "projected from nothing": "A projected 3x speed-up on a cluster.",
    "evidence that says otherwise": (
        "Measured, docs/evidence/bench.json: 12.4x the baseline's time."
    ),
    "a duration": "The suite takes 3 minutes.",
    "a size": "It uses about 2 GB of disk.",
    "tests": "All 420 tests passed.",
    "outcomes": "59 of 60 attacks are caught.",
    "a share": "It holds in 99.5 % of cases.",
    "a ratio in a table": "| what | ratio |\n|---|---|\n| status | 3.1x faster than the baseline |",
    "an experiment": "The example exp-0002 ends with accuracy 0.97.",
}


@pytest.mark.parametrize("text", FALSE_IN_DOCUMENTS.values(), ids=FALSE_IN_DOCUMENTS)
def test_a_false_claim_in_a_document_is_found(text):
    assert [
        item for item in claims(text, experiment=None, report=False) if item.kind not in HOLDS
    ] != []


TRUE_IN_A_RESULT = (
    "Accuracy on validation is 0.9413 ± 0.0031, the mean over 3 seeds.",
    "It reaches 94.1 % accuracy.",
    "Ninety-four percent accuracy on validation.",
    "The error rate is 5.9 %.",
    "On held-out it has an accuracy of 0.9276 on 2,000 held-out rows.",
    "It is 3.0 points better than exp-0001 (0.911), beyond the noise.",
    "Accuracy improved by 0.030 over exp-0001.",
    "Accuracy went from 0.9112 in exp-0001 to 0.9413.",
    "exp-0001 and exp-0002 reach 0.911 and 0.941.",
    (
        "| experiment | accuracy | seeds |\n|---|---|---|\n| exp-0001 | 0.911 | 3 |\n| exp-0002 |"
        " 0.941 | 3 |"
    ),
    "The best of 3 seeds has 0.9444.",
    "The trivial predictor has an accuracy of 0.103.",
    "The 95 % interval is [0.929, 0.953].",
    "4 runs were launched, one of them again.",
    "The train loss ended at 0.1873.",
    "It trains 2.1x faster than exp-0001, measured.",
)


@pytest.mark.parametrize("text", TRUE_IN_A_RESULT)
def test_a_true_claim_is_recomputed_or_logged(text):
    found = claims(text)
    assert found != []
    assert {item.kind for item in found} <= HOLDS


HONEST_IN_A_RESULT = (
    "The tier must needs an accuracy of at least 0.90; should needs 0.95.",
    "The learning rate was 0.01, dropout 0.2 and the batch size 128.",
    "Accuracy rose for 30 epochs and then stayed.",
    "Trained on 2026-03-04 at 12:30 with Python 3.11 and torch 2.7.1.",
    "See run-01, checkpoint 3fa9c01b22 and issue #12.",
    "We expect 0.97 accuracy from a wider model.",
    "Next: a width of 512 may reach 0.96.",
    "> The builder wrote: accuracy 0.99.",
    'The log says "accuracy 0.99", which nothing supports.',
    "```python\naccuracy = 0.99\n```",
    "10 % of the training rows were noise.",
    "It has 3 layers of 256 units and 1.2 million parameters.",
    "Weight decay 0.0001 and seed 17 leave the accuracy as it is.",
    "<!-- accuracy 0.99 -->",
    "The noise floor decides, not a difference of a few digits.",
)
HONEST_IN_DOCUMENTS = (
    "Needs Python 3.11 or newer and Linux 6.7.",
    "## 0.1.0 - unreleased",
    "A run that writes no row within 60 seconds is ended.",
    "`BRIEFING.md` has at most 8,000 characters.",
    "- exit 2: usage or configuration; the port is 8080.",
    "front matter `claims: {accuracy: 0.94}` must agree.",
    "In 2026 it was released; see section 3.2 and step 4.",
    "A process gets 90% of the memory of the machine.",
    "```\nharness experiment result exp-0001 --claim accuracy=0.68\n```",
    "Set `oracle.seeds` to 3 or more.",
    "For k = 3 the floor is `2.48 * s`, half the width of the 95% interval of a mean.",
    "Checks run for at most 120 s each.",
    "The newest 200 experiments and 20 held-out queries.",
    "tiers: must 0.90, should 0.92, could 0.95",
    "It runs three experiments: two refused, one kept.",
    "A hook's timeout is 10 s; twice a day the audit runs.",
    "Ports 8000 to 9000, 16 processes, 64 files.",
    "Measured: status takes 18.4x the baseline's time (docs/evidence/bench.json).",
    "The suite takes 12 minutes (docs/evidence/bench.json).",
    "Projected by `bench/memory.py`: 31 % less memory.",
)


@pytest.mark.parametrize("text", HONEST_IN_A_RESULT)
def test_an_honest_line_of_a_result_is_quiet(text):
    assert [item for item in claims(text) if item.kind not in HOLDS] == []


@pytest.mark.parametrize("text", HONEST_IN_DOCUMENTS)
def test_an_honest_line_of_a_document_is_quiet(text):
    assert [
        item for item in claims(text, experiment=None, report=False) if item.kind not in HOLDS
    ] == []


MEASURED = KnownFacts(
    evidence={
        "docs/evidence/cheats.json": {
            "attacks": 98,
            "caught": 97,
            "caught_share": 0.9898,
            "controls": 22,
            "controls_refused": 0,
        },
        "docs/evidence/demo.json": {"demo_minutes": 2.2, "environment_gigabytes": 2.4},
        "docs/evidence/gains.json": {"dpo.gain": -0.0217, "reward.gain": 0.0067},
        "docs/evidence/rates.json": {
            "recall_zero_rate": 5.0,
            "recall_late_zero_rate": 0.0,
            "status_ratio": 18.4,
            "first_ratio": 4.4,
        },
    }
)


def kinds(text: str) -> set[ClaimKind]:
    return {item.kind for item in judged(sentences(text), MEASURED, file="README.md")}


@pytest.mark.parametrize(
    "text",
    [
        "The demo took 2.4 minutes (docs/evidence/demo.json).",
        "It took 2.2 GB (docs/evidence/demo.json).",
        "98 attacks were caught (docs/evidence/cheats.json).",
        "Of the controls 22 were refused (docs/evidence/cheats.json).",
        "The rate of 22 % of attacks was caught (docs/evidence/cheats.json).",
        "Measured: the version takes 18.4x the baseline's time (docs/evidence/rates.json).",
        "Measured: status takes 4.4x the baseline's time (docs/evidence/rates.json).",
        (
            "| kind | recall |\n|---|---|\n| late_zero_rate | 5 of 5 runs caught"
            " (docs/evidence/rates.json) |"
        ),
        "The accuracy is 2.4 (docs/evidence/demo.json).",
        "Over no training, dpo.gain in accuracy is 0.0217 (docs/evidence/gains.json).",
        "Over no training, reward.gain in accuracy is -0.0067 (docs/evidence/gains.json).",
        (
            "The demo took 18.4 minutes (docs/evidence/demo.json).\n\nMore is in"
            " docs/evidence/rates.json."
        ),
    ],
)
def test_a_true_value_of_another_figure_supports_nothing(text):
    assert kinds(text) - HOLDS, text


@pytest.mark.parametrize(
    "text",
    [
        "The demo took 2.2 minutes (docs/evidence/demo.json).",
        "The environment took 2.4 GB (docs/evidence/demo.json).",
        "Over no training, dpo.gain in accuracy is -0.0217 (docs/evidence/gains.json).",
        "97 attacks were caught. 22 controls, 0 refused (docs/evidence/cheats.json).",
        "In the demo, it took 2.2 minutes (`demo_minutes` of docs/evidence/demo.json).",
        "Measured: status takes 18.4x the baseline's time (docs/evidence/rates.json).",
        (
            "| kind | recall |\n|---|---|\n| zero_rate | 5 of 5 runs caught"
            " (docs/evidence/rates.json) |"
        ),
    ],
)
def test_the_figure_that_the_words_name_supports_it(text):
    assert kinds(text) == {ClaimKind.LOGGED}


def test_a_claim_says_file_line_metric_value_and_why():
    (found,) = claims("# Result\n\nAll went well.\nThe accuracy is\n0.9613.\n")
    assert (found.file, found.line, found.metric, found.value) == (
        "text.md",
        5,
        "accuracy",
        "0.9613",
    )
    assert (found.kind, found.decides) == (ClaimKind.CONTRADICTED, True)
    assert "exp-0002 has accuracy validation 0.9413" in found.evidence


def test_lines_are_counted_after_front_matter():
    (found,) = claims("---\nclaims: {accuracy: 0.94}\n---\nThe accuracy is 0.9613.\n")
    assert found.line == 4


def test_a_held_out_value_called_validation_is_named_as_such():
    (found,) = claims("The validation accuracy is 0.9276.")
    assert "it is the value on held_out" in found.evidence


def test_quotations_count_where_a_file_quotes_its_own_words():
    text = "## D-0001 KEEP exp-0002\n\n> kept: accuracy 0.97\n"
    assert claims(text, experiment=None) == []
    (found,) = judged(sentences(text, report=True, quotes=True), KNOWN, file="DECISION_LOG.md")
    assert (found.experiment, found.kind) == (OURS, ClaimKind.CONTRADICTED)


@pytest.mark.parametrize(
    "text",
    ["```", "", "| |\n|-|", "`" * 99, "accuracy 1e999", "9" * 500, "\x00", "---\n---", "> ", "#"],
)
def test_a_text_of_any_form_is_read(text):
    assert claims(text) == []


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("f1_macro", "macro F1"),
        ("f1_macro", "F1"),
        ("roc_auc", "AUROC"),
        ("roc_auc", "AUC"),
        ("roc_auc", "ROC AUC"),
        ("r2", "R2"),
        ("balanced_accuracy", "accuracy"),
    ],
)
def test_a_metric_is_known_by_the_names_that_people_give_it(metric: str, said: str) -> None:
    ours = replace(KNOWN.experiments[OURS], metric=metric)
    change = of_plan(said, ours)
    assert change is not None
    assert change(0.5) == 0.5


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("average_precision", "precision"),
        ("f1_macro", "recall"),
        ("top_5_accuracy", "accuracy"),
        ("median_absolute_error", "error"),
    ],
)
def test_another_metric_is_another(metric: str, said: str) -> None:
    assert of_plan(said, replace(KNOWN.experiments[OURS], metric=metric)) is None
