"""docs/diloco.md, done as it stands by a new user."""

import json
import re
from pathlib import Path

import pytest
from test_user_pages import ROOT, Newcomer, remotes, repository

from harness.domain.distributed import DiLoCoConfig
from harness.training.replicas.standing import State

PAGE = ROOT / "docs/diloco.md"
TEXT = PAGE.read_text("utf-8")


@pytest.mark.timeout(1800)
def test_the_page_leads_to_a_kept_result(tmp_path: Path) -> None:
    home, empty = tmp_path / "home", tmp_path / "empty"
    home.mkdir()
    empty.mkdir()
    for name in remotes(PAGE):
        repository(home / "remotes" / name, {})
    (home / ".gitconfig").write_text(
        f'[url "file://{home}/remotes/"]\n\tinsteadOf = https://github.com/you/\n'
    )
    newcomer = Newcomer(home, empty)
    newcomer.do(PAGE)
    newcomer.type("harness experiment list --json > listed.json")
    (listed,) = json.loads((newcomer.at / "listed.json").read_text())["experiments"]
    assert listed["status"] == "kept"
    assert "replica 1: ended" in newcomer.said
    for run in sorted((newcomer.at / ".harness/experiments/exp-0001/runs").glob("run-*")):
        lines = (run / "metrics.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        epochs = [row for row in rows if row["event"] == "epoch"]
        assert [row["epoch"] for row in epochs] == list(range(12))
        assert {row["metrics"]["participants"] for row in epochs} == {2}
        assert epochs[-1]["metrics"]["loss"] < epochs[0]["metrics"]["loss"] / 4


def test_the_page_names_every_setting_and_state() -> None:
    for name in DiLoCoConfig().plain():
        assert re.search(rf"`?\b{name}\b", TEXT), name
    for state in State:
        assert f"`{state}`" in TEXT
