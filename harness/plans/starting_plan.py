"""The first plan of a project, as `harness init --data` writes it: it can be approved as it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml  # type: ignore[import-untyped]

from harness.artifacts.front_matter import plain_scalar
from harness.domain.metrics import METRICS
from harness.domain.words import some
from harness.plans.drawing import are_classes
from harness.plans.tables import Column

EXPERIMENTS = 8
_BITS = 20
"""Of hidden labels: for a number first, and better or not for each further experiment."""
_MORE_BITS = 8 + 6 * (EXPERIMENTS - 1)
"""For a number each time that one is better."""
_PLAN = """\
---
schema: 1
name: {name}
workflow: classical-ml                # deep-learning asks for checkpoints on the way too
objective: {objective}
{data}oracle:
  metric: {metric}
  direction: {direction}
  scorer: {metric}
  predict: {predict}
  # A start, yours to change: {why}
  tiers: {tiers}
  seeds: 3
  queries: 20                         # held-out evaluations
{bits}training: {{entry: {entry}}}
# With agents and a real model endpoint also usd.
budget: {{experiments: {experiments}, run_minutes: 10, total_minutes: 240}}
loop: {{stop_tier: must, patience: 3}}
gates: {{mode: auto}}                   # supervised | auto | full-auto
agents: {{profile: default}}
sandbox: preferred                    # required refuses to run without a sandbox
---

# What is wanted

Write for people what the keys above say for the machine: what the data is, what is known already,
what would count as cheating.
"""
_BITS_LINE = """\
  # What answers may tell of hidden labels: a number for the first of {count} experiments, better or
  # not for the others, and one look at held-out; {more} bits are a number for each that is better.
  bits: {bits}
"""


@dataclass(frozen=True, kw_only=True)
class FirstPlan:
    folder: str
    """Its name: the plan gets it."""
    table: str
    data: Mapping[str, Any]
    """The plan's `data`."""
    metric: str
    tiers: Mapping[str, float]
    trivial: float | None
    """The score of the predictor that knows no row."""
    entry: str
    predict: str


def proposed_metric(label: Column) -> str:
    """By what the label holds."""
    return "mae" if label.dtype.kind in "fiu" and not are_classes(label) else "accuracy"


def first_plan(plan: FirstPlan) -> str:
    held_out = plan.data["held_out"]
    label, inputs = held_out["label"], held_out["inputs"]
    hidden = plan.data.get("validation") == "hidden"
    tiers = ", ".join(f"{name}: {value:.12g}" for name, value in plan.tiers.items())
    return _PLAN.format(
        name=_name(plan.folder),
        objective=_quoted(f"Predict {label} from {some(len(inputs), 'column')} of {plan.table}"),
        data=block(plan.data),
        metric=plan.metric,
        direction=METRICS[plan.metric].direction,
        predict=_word(plan.predict),
        why=_why(plan),
        tiers=f"{{{tiers}}}",
        bits=_BITS_LINE.format(bits=_BITS, more=_MORE_BITS, count=EXPERIMENTS) if hidden else "",
        entry=_word(plan.entry),
        experiments=EXPERIMENTS,
    )


def _why(plan: FirstPlan) -> str:
    if plan.trivial is None:
        return "nothing of these rows says what is good."
    return (
        f"a quarter and half of the way from {plan.trivial:.12g}, which knowing no row gives, to"
        " the best."
    )


def block(data: Mapping[str, Any]) -> str:
    """The plan's lines of `data`."""
    # Lists and mappings of plain values stand on a line of their own, as people write them.
    text: str = yaml.dump(
        {"data": dict(data)},
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=100,
        allow_unicode=True,
    )
    return text


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """It quotes what the plan's parser would read as something else than text: PyYAML's own rules
    are those of YAML 1.1, where `1e3` is text."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None if isinstance(plain_scalar(text), str) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _name(folder: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.lower()).strip("-._")[:63] or "plan"
    return _word(name)


def _word(text: str) -> str:
    plain = re.fullmatch(r"\w[\w./ -]*", text) and isinstance(plain_scalar(text), str)
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    # A JSON string is a YAML string: a column may have any name.
    return orjson.dumps(text).decode()
