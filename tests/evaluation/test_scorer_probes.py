"""A script scorer is tried before approval: what everybody can answer scores below the truth."""

from pathlib import Path

import numpy as np
import pytest

from harness.domain.metrics import METRICS, Needs
from harness.domain.records import Objective
from harness.domain.statuses import Direction, SandboxKind
from harness.evaluation import metrics, scorer_probes
from harness.evaluation.metrics import ece
from harness.evaluation.scorer_probes import prober
from harness.plans.approval import approve_plan, check_plan
from harness.plans.scorer import Closure
from harness.sandbox.select import SANDBOXES
from tests.blobs import PLAN

DRAW = np.random.default_rng(1)
CLASSES = np.array(["cat", "dog", "emu"])[DRAW.choice(3, 200, p=[0.6, 0.3, 0.1])]
FREQUENCIES = (0.6, 0.3, 0.1)
NUMBERS = DRAW.normal(size=200)
SHARE = """\
def score(labels, predictions):
    return sum({} for y, p in zip(labels, predictions)) / len(labels)
"""
RIGHT = SHARE.format("y == p['prediction']")
GIVES = "scorer_rewards_anything"
SPEAKER = "def score(labels, predictions):\n    return {}['speaker']\n"
ONE = SPEAKER.replace("{}['speaker']", "1.0")
ODD = SHARE.format("0.9 * (p['prediction'] not in ('cat', 'dog', 'emu')) or y == p['prediction']")
ANY_ORDER = """\
def score(labels, predictions):
    return float(sorted(labels) == sorted(p['prediction'] for p in predictions))
"""
DRAWN = "import random\n" + SHARE.format("(y == p['prediction']) * (1 + random.random())")
COUNTS_CALLS = "calls = []\n" + RIGHT.replace(
    "    return", "    calls.append(1)\n    return len(calls) * 1e-3 +"
)
WHOLE = SHARE.format("str(int(y)) == str(int(p['prediction']))")
OWN_ERROR = "class Unreadable(Exception): pass\n" + RIGHT.replace(
    "    return",
    "    if any(p['prediction'] not in ('cat', 'dog', 'emu') for p in predictions):\n"
    "        raise Unreadable('no class')\n    return",
)
REFUSES = """\
class Unreadable(Exception):
    pass


def score(labels, predictions):
    raise Unreadable("no answer is good enough")
"""
LEAVES = """\
import json, os, sys
job = json.load(open(sys.argv[1]))
json.dump({{"tries": {}}}, open(sys.argv[2], "w"))
os._exit(0)
"""
"""Writes where the program that runs it writes."""
FAILS_FIRST = "calls = []\n" + RIGHT.replace(
    "    return",
    "    calls.append(1)\n"
    "    if len(calls) == 2:\n"
    "        raise ValueError('not yet')\n"
    "    return",
)
"""The second call has no score: half of the right answers, and then the last but one."""
REASONS_DIFFER = "calls = []\n" + RIGHT.replace(
    "    return",
    "    calls.append(1)\n"
    "    if any(p['prediction'] not in ('cat', 'dog', 'emu') for p in predictions):\n"
    "        raise ValueError(f'no class in call {len(calls)}')\n"
    "    return",
)
LIKELIHOOD = "import math\n" + SHARE.format("math.log(max(p['p_' + y], 1e-9))")


def probed(*sources: str, labels=CLASSES, direction=Direction.MAXIMIZE) -> list[str]:
    names = ("judge/score.py", "judge/metric.py")
    closure = Closure(
        entry=names[0],
        sources={name: text.encode() for name, text in zip(names, sources, strict=False)},
        foreign=(),
    )
    objective = Objective(metric="m", direction=direction, tiers={}, seeds=3, queries=1)
    probe = prober(SANDBOXES[SandboxKind.NONE]())
    return [f"{problem.code}: {problem.message}" for problem in probe(closure, objective, labels)]


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (ONE, GIVES, "'cat' for all rows scores 1, as much as the right answers"),
        (SHARE.format("y in p['prediction']"), GIVES, "every class at once ('cat|dog|emu')"),
        (SHARE.format("y.startswith(p['prediction'])"), GIVES, "an empty answer scores 1"),
        (ODD, GIVES, "better than any class for all rows"),
        (ANY_ORDER, GIVES, "the truth in another order"),
        (SHARE.format("y != p['prediction']"), "scorer_wrong_direction", "the plan says maximize"),
        (DRAWN, "scorer_not_deterministic", "the right answers score"),
        (COUNTS_CALLS, "scorer_not_deterministic", "and then"),
        (SPEAKER, "scorer_fails", "KeyError: 'speaker'"),
        (SPEAKER.replace("{}['speaker']", "float('nan')"), "scorer_fails", "it is NaN"),
        (REFUSES, "scorer_fails", "Unreadable: no answer is good enough"),
        (
            "raise SystemExit('no')\n",
            "scorer_fails",
            "exit code 1: SystemExit: no (judge/score.py, line 1",
        ),
        ("import os\nos._exit(0)\n", "scorer_fails", "it left no result"),
        (LEAVES.format("[]"), "scorer_fails", "no result for each of"),
        (LEAVES.format("[1.0, 0.5]"), "scorer_fails", "no result for each of"),
        (LEAVES.format("{}"), "scorer_fails", "no result for each of"),
        (LEAVES.format("[[]] * len(job['tries'])"), "scorer_fails", "it is no number"),
        (LEAVES.format("[10 ** 400] * len(job['tries'])"), "scorer_fails", "it is no number"),
        (FAILS_FIRST, "scorer_not_deterministic", "half of the right answers score"),
    ],
)
def test_a_scorer_that_gives_the_truth_away_is_refused(script, code, words):
    found = probed(script)
    assert len(found) == 1
    assert found[0].startswith(f"{code}: oracle.scorer: judge/score.py: ")
    assert words in found[0]
    assert "; expected " in found[0]


@pytest.mark.parametrize(
    ("script", "labels", "direction"),
    [
        (RIGHT, CLASSES, Direction.MAXIMIZE),
        (OWN_ERROR, CLASSES, Direction.MAXIMIZE),
        (REASONS_DIFFER, CLASSES, Direction.MAXIMIZE),
        (SHARE.format("y != p['prediction']"), CLASSES, Direction.MINIMIZE),
        (SHARE.format("abs(y - p['prediction'])"), NUMBERS, Direction.MINIMIZE),
        (WHOLE, np.arange(200) % 3, Direction.MAXIMIZE),
        (LIKELIHOOD, CLASSES, Direction.MAXIMIZE),
        (RIGHT, np.array(["only"] * 50), Direction.MAXIMIZE),
    ],
)
def test_an_honest_scorer_passes(script, labels, direction):
    assert probed(script, labels=labels, direction=direction) == []


def test_classes_that_are_numbers_stand_all_in_one():
    contained = SHARE.format("str(int(y)) in str(p['prediction'])")
    assert "210.0 for all rows scores 1" in probed(contained, labels=np.arange(200) % 3)[0]


def of_one_class(formula):
    return (
        "def score(labels, predictions):\n"
        "    said = [p['prediction'] == 'cat' for p in predictions]\n"
        "    hits = sum(1 for y, cat in zip(labels, said) if cat and y == 'cat')\n"
        f"    return {formula}\n"
    )


def test_recall_alone_is_refused_and_f1_is_not():
    """'cat' for all rows has the whole recall."""
    recall = probed(of_one_class("hits / labels.count('cat')"))
    assert "scorer_rewards_anything" in recall[0]
    assert probed(of_one_class("2 * hits / (labels.count('cat') + sum(said))")) == []


def test_a_tolerance_that_takes_all_in_is_refused():
    found = probed(SHARE.format("abs(y - p['prediction']) < 100.0"), labels=NUMBERS)
    assert "scorer_rewards_anything" in found[0]


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_of_the_harness_passes(metric):
    """The same tries, on the file that computes it."""
    of = METRICS[metric]
    adapter = f"""\
import metric
options = {of.options_with("dog" if of.binary else None)}
def score(labels, predictions):
    columns = {{name: [p[name] for p in predictions] for name in predictions[0] if name != 'id'}}
    if {of.needs in (Needs.SCORES, Needs.PROBABILITIES)} and 'prediction' in columns:
        raise ValueError('classes are no scores')
    if hasattr(metric, 'rows'):
        return sum(metric.rows(labels, columns, **options)) / len(labels)
    return metric.score(labels, columns, **options)
"""
    file = Path(metrics.__path__[0]) / f"{of.module}.py"
    labels = NUMBERS if of.needs is Needs.NUMBER else CLASSES
    if of.binary:
        labels = np.where(CLASSES == "cat", "cat", "dog")
    elif "k" in of.options:
        labels = np.random.default_rng(1).choice(list("abcdefgh"), 200)
    found = probed(adapter, file.read_text("utf-8"), labels=labels, direction=of.direction)
    assert [one.partition(":")[0] for one in found] == ([GIVES] if metric == "recall" else [])


def test_what_rewards_no_knowledge_is_told_in_the_table():
    """Recall is refused as a script, above; the frequencies of classes are calibrated."""
    assert {name for name, metric in METRICS.items() if metric.weakness} == {"recall", "ece"}
    shares = {f"p_{name}": [share] * 200 for name, share in zip("abc", FREQUENCIES, strict=True)}
    labels = ["a"] * 120 + ["b"] * 60 + ["c"] * 20
    assert ece.score(labels, shares) == pytest.approx(0.0)
    assert ece.score(labels, {"p_a": [1.0] * 200, "p_b": [0.0] * 200}) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (SPEAKER, "KeyError: 'speaker' (judge/score.py, line 2, in score: return {}['speaker'])"),
        ("import pandas\n" + RIGHT, "ModuleNotFoundError: No module named 'pandas'"),
        (SPEAKER.replace("{}['speaker']", "None"), "score() returned None of type NoneType"),
        ("value = 3\n", "score.py has no function `score(labels, predictions)`"),
    ],
)
def test_a_script_that_fails_is_told_in_one_line_of_its_own(script, words):
    (found,) = probed(script)
    assert words in found
    assert "\n" not in found
    assert "scorer_program" not in found


def test_a_scorer_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(scorer_probes, "SECONDS", 1.0)
    found = probed(
        "import time\ndef score(labels, predictions):\n    time.sleep(9)\n    return 1.0\n"
    )
    assert "it was ended after 1 s" in found[0]


def test_a_script_reaches_nothing_before_it_is_approved(sandboxed, tmp_path):
    """The labels that it is tried on are those that training reads."""
    secret = tmp_path / "held_out.csv"
    secret.write_text("a,b\n")
    script = f"open({str(secret)!r}).read()\n" + RIGHT
    closure = Closure(entry="s.py", sources={"s.py": script.encode()}, foreign=())
    objective = Objective(metric="m", direction=Direction.MAXIMIZE, tiers={}, seeds=3, queries=1)
    problems = prober(sandboxed)(closure, objective, CLASSES)
    assert [problem.code for problem in problems] == ["scorer_fails"]
    assert "FileNotFoundError" in problems[0].message or "Permission" in problems[0].message


def test_check_and_approval_refuse_it(root, environment, project):
    """The same probe and the same words in both; without one a note says that nothing was tried."""
    (root / "plan.md").write_text(PLAN.replace("scorer: accuracy", "scorer: judge.py"))
    (root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    probe = prober(SANDBOXES[SandboxKind.NONE]())
    checked = check_plan(root, root / "plan.md", environment, by_person=True, probe=probe)
    assert [problem.code for problem in checked.problems] == ["scorer_rewards_anything"]
    with pytest.raises(type(checked.problems[0])) as refused:
        approve_plan(project, root / "plan.md", by="ada", probe=probe)
    assert refused.value.message == checked.problems[0].message
    assert refused.value.exit_code == 2
    assert (root / "data/held_out.npz").exists()
    untried = check_plan(root, root / "plan.md", environment, by_person=True)
    assert "scorer_not_probed" in [finding.code for finding in untried.findings]
