"""docs/statistics.md names files, tests, thresholds and figures that exist."""

import ast
import importlib
import json
import re
from pathlib import Path

from bench._covered import METRICS_MEASURED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/statistics.md").read_text("utf-8")
PATHS = re.compile(r"`((?:harness|bench|tests|docs)/[\w./-]+)(?:::(\w+))?`")
CONSTANTS = {
    "harness.evaluation.outcome": ("LEVEL",),
    "harness.evaluation.comparison": ("SPENDING",),
    "harness.evaluation.noise_floor": ("POOLED",),
    "harness.evaluation.paired": ("ENUMERATED", "TOSSES", "TOSSED"),
    "harness.plans.groups": ("LEAST_GROUPS",),
}


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_path_and_test_exists() -> None:
    named = PATHS.findall(PAGE)
    assert len(named) > 15, "the search found fewer names than there are"
    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    tests = [(path, test) for path, test in named if test]
    assert [pair for pair in tests if pair[1] not in functions(ROOT / pair[0])] == []


def test_no_file_is_named_without_its_room() -> None:
    """`evaluation/x.py` would escape the search for paths."""
    bare = [name for name in re.findall(r"`([\w/]+\.py)", PAGE) if "/" in name]
    assert [name for name in bare if not (ROOT / name).exists()] == []


def test_each_threshold_has_the_value_that_the_code_has() -> None:
    for module, names in CONSTANTS.items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            assert f"`{name}` = {value:,}" in PAGE


def test_the_table_of_coverage_is_what_was_measured() -> None:
    figures = json.loads((ROOT / "docs/evidence/coverage.json").read_text("utf-8"))["figures"]
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M)
    assert [metric for metric, *_ in rows] == list(METRICS_MEASURED)
    for metric, *shares in rows:
        for n, share in zip((30, 200, 2000, 600), shares, strict=True):
            assert float(share) == figures[f"{metric}_{n}"]
