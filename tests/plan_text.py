"""The plan of a small, ordinary project, for the tests of several rooms."""

_PLAN = """\
---
schema: 1
name: NAME
workflow: classical-ml
objective: OBJECTIVE
data:
  train: data/train.TABLE
  validation: data/validation.TABLE
  held_out: {path: data/held_out.TABLE, inputs: [x], label: y, id: ROW}
oracle:
  metric: accuracy
  direction: maximize
  scorer: accuracy
  predict: python predict.py
  tiers: {TIERS}
  seeds: 3
  queries: QUERIES
training: {entry: python train.py}
budget: {BUDGET}
loop: {stop_tier: must, patience: 3}
---

# About NAME
"""


def plan_text(
    name: str,
    objective: str,
    *,
    tiers: str,
    budget: str,
    queries: int = 20,
    table: str = "npz",
    row: str = "id",
) -> str:
    """Classification of `y` by `x` in data/*.`table`; `tiers` and `budget` as they stand between
    their braces."""
    text = _PLAN
    values = {
        "OBJECTIVE": objective,
        "TABLE": table,
        "ROW": row,
        "TIERS": tiers,
        "QUERIES": queries,
        "BUDGET": budget,
    }
    for mark, value in {"NAME": name, **values}.items():
        text = text.replace(mark, str(value))
    return text
