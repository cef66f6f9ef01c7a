"""The demo's content is valid by the harness's own readers; the whole demo is a slow test."""

import ast
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.contract.roles import ROLE_BY_NAME
from harness.demo import data
from harness.demo.run import CONTENT, SCENARIO, free_directory, prepare, run_demo
from harness.domain.statuses import Tier
from harness.errors import MissingExtraError, UsageError
from harness.model_gateway.scenario import ScenarioToolCall, read_scenario
from harness.plans.parse import read_plan
from tests.demo.demo_end import assert_target_hit

WITH_TRAIN = all(importlib.util.find_spec(name) for name in data.NEEDED)
needs_train = pytest.mark.skipif(not WITH_TRAIN, reason="the train extra is not installed")


def tools() -> list[tuple[str, ScenarioToolCall]]:
    return [
        (s.role, tool)
        for s in read_scenario(SCENARIO).sessions
        for turn in s.turns
        for tool in turn.tools
    ]


def test_the_plan_has_three_tiers_and_three_seeds() -> None:
    plan = read_plan(CONTENT / "plan.md")
    assert plan.objective().tiers == {Tier.MUST: 0.90, Tier.SHOULD: 0.92, Tier.COULD: 0.95}
    assert plan.oracle.seeds == 3
    assert plan.alarms.off == ("throughput_drop",)  # no session of the demo explains it


def test_the_scenario_uses_only_what_its_roles_have() -> None:
    assert [
        (role, tool.name)
        for role, tool in tools()
        if tool.name not in ROLE_BY_NAME[role].allowed_tools
    ] == []


def test_the_scenario_plays_four_experiments_and_a_checker_in_the_second() -> None:
    sessions = [(item.role, item.experiment) for item in read_scenario(SCENARIO).sessions]
    expected = [
        (role, str(number)) for number in (1, 2, 3, 4) for role in ("model-builder", "oracle")
    ]
    assert sessions == [*expected[:3], ("training-checker", "2"), *expected[3:]]


def test_each_edit_of_the_scenario_finds_what_it_replaces() -> None:
    written: dict[str, str] = {}
    for _, tool in tools():
        if tool.name == "Write":
            written[tool.input["file_path"]] = tool.input["content"]
        elif tool.name == "Edit":
            path, old = tool.input["file_path"], tool.input["old_string"]
            assert written[path].count(old) == 1
            written[path] = written[path].replace(old, tool.input["new_string"])


def test_programs_in_the_scenario_are_python_and_load_weights_only() -> None:
    written = [tool.input for _, tool in tools() if tool.name == "Write"]
    sources = [given["content"] for given in written if given["file_path"].endswith(".py")]
    assert len(sources) == 5
    for source in sources:
        ast.parse(source)
        assert source.count("torch.load(") == source.count("weights_only=True")


def test_every_file_is_read_before_it_is_written_so_that_a_cut_session_can_be_replayed() -> None:
    for session in read_scenario(SCENARIO).sessions:
        read: set[str] = set()
        for turn in session.turns:
            paths = [(tool.name, tool.input.get("file_path")) for tool in turn.tools]
            assert [
                path for name, path in paths if name in ("Write", "Edit") and path not in read
            ] == []
            read |= {str(path) for name, path in paths if name == "Read"}


def test_without_the_extra_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(data, "NEEDED", ("torch", "no_such_package_at_all"))
    with pytest.raises(MissingExtraError, match=r"pip install 'experiment-harness\[train\]'"):
        run_demo(tmp_path / "demo", sandbox=None, seed=1, environment={})
    assert not (tmp_path / "demo").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="not an empty folder"):
        prepare(tmp_path, seed=1, environment=os.environ, on_progress=lambda _event: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_next_free_folder_is_taken(tmp_path: Path) -> None:
    wanted = tmp_path / "demo-project"
    assert free_directory(wanted) == wanted
    wanted.mkdir()
    (tmp_path / "demo-project-2").mkdir()
    assert free_directory(wanted) == tmp_path / "demo-project-3"


@needs_train
def test_tables_have_the_right_shape_and_only_held_out_follows_the_seed(tmp_path: Path) -> None:
    drawn: list[dict[str, Any]] = []
    for seed in (5, 6, 5):
        folder = tmp_path / f"{len(drawn)}"
        data.write_tables(folder, held_out_seed=seed, environment=os.environ)
        drawn.append(
            {
                name: dict(np.load(folder / f"{name}.npz"))
                for name in ("train", "validation", "held_out")
            }
        )
    for name, rows in (("train", 4000), ("validation", 1000), ("held_out", 1000)):
        table = drawn[0][name]
        assert table["x"].shape == (rows, 40)
        assert (table["x"].dtype, table["y"].dtype) == (np.float32, np.int64)
        assert sorted(table["id"]) == list(range(rows))
        assert np.bincount(table["y"]).tolist() == [rows // 10] * 10
        assert np.array_equal(drawn[2][name]["x"], table["x"])
        assert np.array_equal(drawn[1][name]["x"], table["x"]) == (name != "held_out")


@needs_train
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_demo_hits_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    summary = run_demo(tmp_path / "demo", sandbox=None, seed=None, environment=os.environ)
    assert_target_hit(summary)
    _, broken, *_ = summary["experiments"]
    assert len([line for line in broken["alarms"] if "fatal" in line]) == 1
