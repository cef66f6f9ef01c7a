"""Who pays late? Boosted trees on a table with texts and numbers; each round is an epoch."""

import os

import joblib
import lightgbm
import pandas as pd

ROUNDS, RATE, LEAVES = 60, 0.05, 7
REGIONS = ["east", "north", "south"]
ANSWERS = ["no", "yes"]


def inputs(table):
    table = table[["region", "income", "debt", "age"]]
    return table.assign(region=pd.Categorical(table["region"], REGIONS))


def main():
    from harness.run_logger import RunLogger

    table = pd.read_csv(os.environ.get("HARNESS_TRAIN", "data/loans.train.csv"))
    with RunLogger.from_environment() as log:
        own = table.sample(
            frac=0.2, random_state=log.seed
        )  # validation is hidden: a fifth to look at
        kept = table.drop(own.index)

        def report(now):
            values = {name: value for _, name, value, _ in now.evaluation_result_list}
            log.epoch(now.iteration, values)

        log.start(total_epochs=ROUNDS, config={"rate": RATE, "leaves": LEAVES})
        model = lightgbm.LGBMClassifier(
            n_estimators=ROUNDS,
            learning_rate=RATE,
            num_leaves=LEAVES,
            subsample=0.8,
            subsample_freq=1,
            random_state=log.seed,
            n_jobs=1,
            verbose=-1,
        )
        model.fit(
            inputs(kept),
            kept["late"].map(ANSWERS.index),
            eval_X=inputs(own),
            eval_y=own["late"].map(ANSWERS.index),
            callbacks=[report],
        )
        path = log.checkpoint_dir / "model.joblib"
        joblib.dump(model, path)
        log.checkpoint_saved(path, epoch=ROUNDS - 1, final=True)


if __name__ == "__main__":
    main()
