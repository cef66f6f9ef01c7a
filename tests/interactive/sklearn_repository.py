"""A repository as people have them: scikit-learn, data in CSV, a program that trains; it knows
nothing of a harness."""

import csv
import subprocess
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

FEATURES = 6
TRAIN = """\
\"\"\"Train the classifier: python train.py\"\"\"

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier

TREES = 20


def table(path):
    return np.genfromtxt(path, delimiter=",", names=True)


def columns(rows):
    return np.stack([rows[name] for name in rows.dtype.names if name.startswith("f")], axis=1)


def main():
    rows = table("data/train.csv")
    model = RandomForestClassifier(n_estimators=TREES, random_state=0).fit(columns(rows), rows["benign"])
    print("accuracy on the training rows:", model.score(columns(rows), rows["benign"]))
    joblib.dump(model, "model.joblib")


if __name__ == "__main__":
    main()
"""
OLD_BODY = TRAIN[TRAIN.index("    rows = table(") : TRAIN.index("\n\nif __name__")]
NEW_BODY = """\
    rows = table("data/train.csv")
    with RunLogger.from_environment() as log:
        log.start(total_epochs=1)
        model = RandomForestClassifier(n_estimators=TREES, random_state=log.seed).fit(columns(rows), rows["benign"])
        log.epoch(0, {"train_accuracy": model.score(columns(rows), rows["benign"])})
        path = log.checkpoint_dir / "model.joblib"
        joblib.dump(model, path)
        log.checkpoint_saved(path, epoch=0, final=True)
"""
"""`main` of train.py with the run logger, as an agent edits it in."""
PREDICT = """\
\"\"\"Answer the rows of HARNESS_INPUTS with the model of HARNESS_CHECKPOINT.\"\"\"

import csv
import os

import joblib

from train import columns, table

with open(os.environ["HARNESS_INPUTS"], newline="") as stream:
    ids = [row["id"] for row in csv.DictReader(stream)]  # text, and fresh ones
model = joblib.load(os.environ["HARNESS_CHECKPOINT"])
answers = model.predict(columns(table(os.environ["HARNESS_INPUTS"])))
with open(os.environ["HARNESS_PREDICTIONS"], "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["id", "prediction"])
    writer.writerows(zip(ids, answers.astype(int)))
"""
PLAN = """\
---
schema: 1
name: tumours
workflow: classical-ml
objective: Tell benign tumours from malignant ones
data:
  train: data/train.csv
  validation: data/validation.csv
  held_out: {path: data/held_out.csv, inputs: [INPUTS], label: benign, id: id}
oracle:
  metric: accuracy
  direction: maximize
  scorer: accuracy
  predict: python predict.py
  tiers: {must: 0.80, should: 0.90}
  seeds: 3
  queries: 5
training: {entry: python train.py, checkpoint_every: 1}
budget: {experiments: 4, run_minutes: 2, total_minutes: 20}
loop: {stop_tier: must, patience: 3}
gates: {mode: auto}
agents: {profile: default}
---
# Tumours
""".replace("INPUTS", ", ".join(f"f{index}" for index in range(FEATURES)))
PEOPLE = {
    "permissions": {"allow": ["Bash(git status)"]},
    "hooks": {"Notification": [{"hooks": []}]},
}
"""What the repository's people had in .claude/settings.json."""


def make_repository(root: Path) -> Path:
    """Train program, data that git ignores, and a first commit."""
    (root / "data").mkdir(parents=True)
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    for name, chosen in zip(
        ("train", "validation", "held_out"), np.split(order, (300, 430)), strict=True
    ):
        write_rows(
            root / "data" / f"{name}.csv",
            chosen,
            data.data[chosen, :FEATURES],
            data.target[chosen],
        )
    (root / "train.py").write_text(TRAIN, "utf-8")
    (root / ".gitignore").write_text("data/\n*.joblib\n__pycache__/\n", "utf-8")
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        ("commit", "-q", "-m", "A classifier"),
    ):
        git(root, *words)
    return root


def write_rows(path: Path, ids: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """One row a case: id, f0 ... (float), benign (0 or 1)."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", *(f"f{index}" for index in range(x.shape[1])), "benign"])
        writer.writerows(
            [int(row), *values.tolist(), int(label)]
            for row, values, label in zip(ids, x, y, strict=True)
        )


def git(root: Path, *words: str) -> str:
    """Run git with nobody's configuration."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{
            f"GIT_{who}_{what}": "t@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(
        ["git", *words], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout
