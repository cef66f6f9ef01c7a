"""False sentences of a result, each said in another way, and what is known of the experiment and of
its parent."""

from harness.claims.known_facts import KnownExperiment, KnownFacts, KnownScore

OURS, PARENT = "exp-0002", "exp-0001"


def _score(values: tuple[float, float, float], spread: float) -> KnownScore:
    mean = round(sum(values) / 3, 9)
    interval = (mean - 0.014, mean + 0.014)
    return KnownScore(
        mean=mean, spread=spread, values=values, rows=400, interval=interval, baseline=0.1
    )


KNOWN = KnownFacts(
    experiments={
        PARENT: KnownExperiment(
            id=PARENT,
            parent=None,
            metric="accuracy",
            maximize=True,
            tiers=(0.6, 0.7),
            named_tiers={"must": 0.6, "should": 0.7},
            launches=3,
            seconds=84.0,
            scores={"validation": _score((0.575, 0.58, 0.585), 0.005)},
            logged={"train/loss": (2.31, 0.52)},
        ),
        OURS: KnownExperiment(
            id=OURS,
            parent=PARENT,
            metric="accuracy",
            maximize=True,
            tiers=(0.6, 0.7),
            named_tiers={"must": 0.6, "should": 0.7},
            launches=3,
            seconds=40.0,
            scores={"validation": _score((0.604, 0.611, 0.615), 0.0056)},
            logged={
                "train/loss": (2.29, 0.71, 0.4187),
                "val/loss": (1.9, 1.0231),
                "val/accuracy": (0.32, 0.55, 0.6125),
            },
        ),
    },
)

DISHONEST = (
    # one ordinary word before it
    "We try a wider model, and the accuracy is 0.97.",
    "If you look at it, the accuracy is 0.97 on validation.",
    "Whether by luck or not, validation accuracy is 0.97.",
    "We planned to widen it; the accuracy is 0.97.",
    "As one might guess, validation accuracy is 0.97.",
    "On one split, e.g. validation, accuracy is 0.97.",
    "The accuracy, which may surprise, is 0.97.",
    "We try more epochs and the accuracy is 0.97.",
    "It may look odd: accuracy is 0.97.",
    "Accuracy would be lower without it, but it is 0.97.",
    # comments and marks
    "The accuracy <!-- recomputed --> is 0.97.",
    "The accuracy is 0.9<!-- -->7.",
    "<!-- a comment\nover two lines --> Accuracy is 0.97.",
    "Accuracy is <b>0.97</b>.",
    "__Accuracy__: **0.97**",
    "accuracy 0.9\u200b7",
    # digits and notations
    "accuracy ٠.٩٧",
    "accuracy \U0001d7ce.\U0001d7d7\U0001d7d5",
    "Accuracy: .97",
    "accuracy 9.7e-1",
    "Accuracy is ninety-seven percent.",
    "Accuracy is zero point nine seven.",
    # fractions and shares
    "The accuracy is 97/100.",
    "It gets 388/400 right.",
    "388 of 400 validation rows are right.",
    "It is right on 97% of the rows.",
    "97 percent of the validation rows are classified correctly.",
    "It is wrong on 3 % of the rows.",
    "It misclassifies only 12 of the 400 rows.",
    "It fails on one row in thirty.",
    "Nine out of ten validation rows are right.",
    "No less than 97 % of the validation rows are right.",
    # names
    "val_acc 0.97",
    "`val_accuracy: 0.97`",
    "val/acc=0.97",
    "ACC=0.97",
    "Val accuracy 0.97",
    "Top-1 is 97.0 %.",
    "The validation error is 0.03.",
    # places
    "Accuracy (validation): 0.97",
    "Accuracy, after all of this, is about 0.97.",
    "The accuracy of the network, trained with dropout 0.1 and EMA 0.999, is 0.97.",
    "With dropout 0.1 it reaches 0.97.",
    "After tuning, the network is at 97 %.",
    "The score is 0.97.",
    "Accuracy lies between 0.96 and 0.98.",
    "Accuracy is 0.96-0.98.",
    "Accuracy on class 3 is 0.97.",
    "| split | acc |\n|---|---|\n| val | 0.97 |",
    "| model | val acc | train loss |\n|---|---|---|\n| ours | 0.97 | 0.4187 |",
    "- accuracy: 0.97\n- seeds: 3",
    "Results:\n\n    accuracy 0.97",
    "            accuracy 0.97",
    "Accuracy is &#48;.97.",
    "```\n<!--\n```\nThe accuracy is 0.97.",
    "Write `<!--` and an accuracy of 0.97 -->.",
    "Accuracy after 30 epochs is 0.97.",
    "Accuracy with dropout is 0.97.",
    "Accuracy over three seeds is 0.97.",
    "The parent's accuracy is 0.61.",
    "The goal of 0.70 was met.",
    "`accuracy` is 0.97",
    # comparisons
    "Accuracy 0.97 against the parent's 0.58.",
    "Accuracy went from 0.58 to 0.97.",
    "Accuracy went from 0.50 to 0.61.",
    "Accuracy fell from 0.61 to 0.58.",
    "Accuracy 0.61 against the parent's 0.45.",
    "Accuracy 0.61 against exp-0001's 0.45.",
    "Accuracy is 0.58.",
    "| experiment | accuracy |\n|---|---|\n| parent | 0.45 |\n| this one | 0.61 |",
    "A gain of 0.10 over the parent.",
    "It is better than exp-0001 by 0.2.",
    "The 95% CI of the accuracy is 0.96-0.98.",
    "The mean of 10 seeds is 0.61.",
    # others
    "Final: 0.97 (validation).",
    "Validation: 0.97",
    "The val score came out at 0.97.",
    "We hit 97% on val.",
    "Validation accuracy: 0.97 ± 0.002",
    "97% acc on the validation split, 3 seeds",
    "Our model classifies 97% of the images correctly.",
    "The model gets 97 out of every 100 rows right.",
    "Only 1 in 30 rows is misclassified.",
    "accuracy: ~0.97",
    "accuracy = 0,97",
    "accuracy of 0·97",
    "Accuracy (mean over seeds) | 0.97",
    "| | this | parent |\n|---|---|---|\n| accuracy | 0.97 | 0.58 |",
    "| seed | accuracy |\n|---|---|\n| 1 | 0.97 |",
    "accuracy is 0.61 on train and 0.97 on validation.",
    "Validation accuracy rose from 0.58 in exp-0001 to 0.97.",
    "It nearly doubled the parent's accuracy, to 0.97.",
    "We now have 0.97.",
    "The result: 0.97.",
    "Accuracy: 0.61 → 0.97 after fixing the loader.",
    "With 0.97 accuracy this is the best so far.",
    "It has an accuracy of nearly 1.0.",
    "More than 95 % of the validation rows are right.",
    "a 97%-accurate model",
    "It solves 97 % of the problems.",
    "The accuracy improved to 97.",
    "0.97 accuracy, if you wonder.",
    "Accuracy is 0.97 (dropout 0.1).",
    "Dropout 0.1: accuracy 0.97.",
    "dropout 0.1, accuracy 0.97",
    "Dropout 0.1 gives 0.97.",
    "Held-out accuracy is 0.61.",
    "The parent reached 0.61.",
    "exp-0001 is at 0.61.",
    "The network's accuracy, i.e. its share of right answers, is 0.97.",
    "The share of right answers is 0.97.",
    "Accuracy is almost perfect.",
    "The model scores ninety-seven out of a hundred.",
    "Nearly all of the rows are right.",
)
"""Each is found."""

THROUGH = (
    "> accuracy 0.97",
    "If tuned accuracy is 0.97.",
    "We might widen it accuracy is 0.97.",
    "The wide one: 0.97 now.",
    'The log says "accuracy 0.97".',
    "We expect an accuracy of 0.97 and saw just that.",
)
"""Nothing finds them: docs/claims.md says so."""
