"""What `harness init` writes into a repository."""

import re
from pathlib import Path

import numpy as np
import orjson

from harness.contract.artifacts import BY_NAME
from harness.domain.metrics import METRICS
from harness.files import atomic_write
from harness.plans.data_split import DataSplit
from harness.plans.drawing import are_classes
from harness.plans.tables import Column, read_table
from harness.settings import CONFIG, create_config

_IGNORED = """\
# Machine-made and large, or only of this machine.
# memory/ and the forms of experiments belong in git.
policy.json
receipts/
experiments/*/runs/
"""

PLAN_FORM = """\
---
schema: 1
name: TODO                            # short name, a-z 0-9 . _ -
workflow: TODO                        # classical-ml | deep-learning | post-training | research
objective: TODO                       # one sentence
data:
  train: TODO                         # npz without pickle, csv, jsonl or parquet
  # validation: data/validation.npz   # or hidden, in the vault too; without one train is split
  held_out: {path: TODO, inputs: [TODO], label: TODO, id: TODO}   # moved to the vault at approval
oracle:
  metric: TODO
  direction: TODO                     # maximize | minimize
  scorer: TODO                        # accuracy, roc_auc, rmse ... (docs/metrics.md), or a script
  predict: TODO                       # e.g. python predict.py
  tiers: {must: TODO, should: TODO, could: TODO}
  seeds: 3
  queries: 20                         # held-out evaluations
training: {entry: TODO, checkpoint_every: 10}   # e.g. python train.py
budget: {experiments: 8, run_minutes: 5, total_minutes: 40}   # usd: for a real model endpoint
loop: {stop_tier: must, patience: 3}
gates: {mode: auto}                   # supervised | auto | full-auto
agents: {profile: default}
sandbox: preferred                    # required refuses to run without a sandbox
---

# What is wanted

Write for people what the keys above say for the machine: what the data is, what is known already,
what would count as cheating.
"""


def scaffold(directory: Path) -> list[Path]:
    """Make `directory` a project without hooks: config.toml, .gitignore in .harness, and a plan.md
    to fill in. What exists stays. Returns the files that were written."""
    root = directory.resolve()
    root.mkdir(parents=True, exist_ok=True)
    written = []
    if not (root / CONFIG).exists():
        written.append(create_config(root, name=root.name))
    for name, text in forms(BY_NAME["plan"].path).items():
        if not (root / name).exists():
            atomic_write(root / name, text)
            written.append(root / name)
    return written


def forms(plan: str) -> dict[str, str]:
    """Path -> text of what a project gets beside config.toml; `plan` is the plan's path."""
    return {str(Path(CONFIG).with_name(".gitignore")): _IGNORED, plan: PLAN_FORM}


def filled_plan(root: Path, done: DataSplit) -> str:
    """The form with all that a split says: a plan that can be approved, its tiers a proposal."""
    label, table = done.data["held_out"]["label"], read_table(root / done.data["train"])
    metric, trivial, must, should = _proposed(table.columns[label])
    inputs = done.data["held_out"]["inputs"]
    known = {
        "name": _name(root.name),
        "workflow": "classical-ml",
        "objective": _quoted(f"Predict {label} from {len(inputs)} columns of {done.table}"),
        "metric": metric,
        "direction": METRICS[metric].direction,
        "scorer": metric,
        "predict": "python predict.py",
    }
    data, rest = PLAN_FORM.index("data:\n"), PLAN_FORM.index("oracle:\n")
    text = PLAN_FORM[:data] + done.block() + PLAN_FORM[rest:]
    lines = text.splitlines()
    for key, value in known.items():
        at = next(
            number for number, line in enumerate(lines) if line.strip().startswith(f"{key}:")
        )
        lines[at] = f"{lines[at].partition(':')[0]}: {value}"
    text = "\n".join(lines) + "\n"
    tiers = f"{{must: {must:g}, should: {should:g}}}   # a proposal; train's {trivial}"
    text = text.replace("{must: TODO, should: TODO, could: TODO}", tiers)
    return text.replace(
        "{entry: TODO, checkpoint_every: 10}   # e.g. python train.py", "{entry: python train.py}"
    )


def _proposed(label: Column) -> tuple[str, str, float, float]:
    """(metric, what the trivial predictor reaches, must, should): a quarter and half of the trivial
    predictor's error removed."""
    if label.dtype.kind in "fiu" and not are_classes(label):
        error = float(np.abs(label - np.median(label)).mean())
        return "mae", f"median has {error:.3g}", _digits(0.75 * error), _digits(0.5 * error)
    share = float(np.unique(label, return_counts=True)[1].max()) / len(label)
    told = f"commonest class has {share:.3g}"
    return "accuracy", told, _digits(1 - 0.75 * (1 - share)), _digits(1 - 0.5 * (1 - share))


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def _name(folder: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", folder.lower()).strip("-._")[:63] or "plan"


def _quoted(text: str) -> str:
    # A JSON string is a YAML string: a column may have any name.
    return orjson.dumps(text).decode()
