"""What `harness init` writes into a repository."""

from pathlib import Path

from harness.contract.artifacts import BY_NAME
from harness.files import atomic_write
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
budget: {experiments: 8, run_minutes: 5, total_minutes: 40}   # tokens or usd: for a real model
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
