"""Two working trees of one small repository on one ledger, and a clone: each says whose an
experiment is, and what may be done where. As a person or a session types it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.journey import Answer, Journey, make_project
from tests.working_trees import add_worktree, clone, commit_all, git


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """A project with an approved plan; all of it but data and receipts in git."""
    base = tmp_path_factory.mktemp("prepared")
    made = make_project(base / "main", base / "home")
    for words in (("init",), ("plan", "approve")):
        assert made.harness(*words).exit_code == 0
    commit_all(made.root)
    return made


@pytest.fixture
def main(prepared: Journey, tmp_path: Path) -> Journey:
    shutil.copytree(prepared.root.parent, tmp_path / "own")
    return Journey(tmp_path / "own" / "main", tmp_path / "own" / "home")


@pytest.fixture
def side(main: Journey, tmp_path: Path) -> Journey:
    return Journey(add_worktree(main.root, tmp_path / "side"), main.home)


def begin(tree: Journey, hypothesis: str = "centroids") -> Answer:
    answer = tree.harness("experiment", "new", "--hypothesis", hypothesis, "--json")
    assert answer.exit_code == 0, answer.stdout
    return answer


def rows(tree: Journey) -> list[dict[str, object]]:
    found: list[dict[str, object]] = tree.harness("experiment", "list", "--json").document[
        "experiments"
    ]
    return found


@pytest.mark.parametrize("turned", [False, True], ids=["main looks", "the worktree looks"])
def test_another_trees_experiment_is_told_and_refused(
    main: Journey, side: Journey, turned: bool
) -> None:
    here, there = (side, main) if turned else (main, side)
    words = "the main tree (branch main)" if turned else "worktree side (branch trial)"
    begin(there)
    status = here.harness("status").stdout
    assert f"of       {words}: exp-0001 is open in {there.root}" in status
    assert f"open, of {words.split()[0]}" in " ".join(status.split())
    shown = here.harness("experiment", "show", "exp-0001").stdout
    assert f"of       {words}: `cd {there.root}`" in shown
    answer = here.harness("train", "exp-0001", "--json")
    error = answer.document["error"]
    assert (answer.exit_code, error["code"]) == (2, "other_tree")
    assert f"`cd {there.root}`" in error["hint"]
    assert words in error["message"]
    begin(here, "another")
    first, second = rows(here)
    assert (first["tree"]["words"], first["tree"]["here"]) == (words, False)  # type: ignore[index]
    assert first["tree"]["folder"] == str(there.root)  # type: ignore[index]
    assert second["tree"]["here"] is True  # type: ignore[index]


def test_hooks_of_each_tree_know_what_is_in_work_there(main: Journey, side: Journey) -> None:
    begin(main)
    begin(side, "another")
    said = json.loads((main.root / ".harness/policy.json").read_text())
    assert said["open_experiment"]["id"] == "exp-0001"
    (root,) = said["trees"]
    assert root == str(side.root)
    assert said["standing"]["command"] == "harness train exp-0001"
    assert said["trees"][root]["standing"]["command"] == "harness train exp-0002"
    state = (side.root / ".harness/memory/STATE.md").read_text("utf-8")
    assert (
        "- next step: `harness train exp-0002`; in the main tree (branch main): `harness train"
        " exp-0001`\n"
    ) in state
    assert said["trees"][root]["open_experiment"]["id"] == "exp-0002"
    writes = said["trees"][root]["roles"]["model-builder"]["writes"]
    assert all("exp-0002" in path for path in writes)
    assert not (side.root / ".harness/policy.json").exists()
    assert side.harness("gate", "reject", "exp-0002", "--reason", "no").exit_code == 0
    said = json.loads((main.root / ".harness/policy.json").read_text())
    assert said["trees"] == {}
    assert said["open_experiment"]["id"] == "exp-0001"


def test_pages_of_each_tree_show_all_and_the_audit_accuses_none(
    main: Journey, side: Journey
) -> None:
    begin(main)
    begin(side, "another")
    for tree in (main, side):
        assert tree.harness("handoff", "--note", "half done").exit_code == 0
        text = (tree.root / ".harness/memory/BRIEFING.md").read_text()
        assert "exp-0001 is open (opened in the main tree (branch main))" in text
        assert "exp-0002 is open (opened in worktree side (branch trial))" in text
    for tree in (main, side):
        assert tree.harness("audit", "--json").document["changes"] == []
    page = side.root / ".harness/memory/STATE.md"
    page.write_text(page.read_text() + "more\n")
    changes = side.harness("audit", "--json").document["changes"]
    assert [change["path"] for change in changes] == [".harness/memory/STATE.md"]


def test_a_merge_brings_the_files_and_the_tree_stays_the_worktrees(
    main: Journey, side: Journey
) -> None:
    begin(side)
    commit_all(side.root, "an experiment")
    git(main.root, "merge", "-q", "trial")
    assert (main.root / ".harness/experiments/exp-0001/hypothesis.md").is_file()
    assert main.harness("train", "exp-0001", "--json").document["error"]["code"] == "other_tree"
    assert main.harness("ledger", "verify", "--json").document["waiting"] == []


def test_facts_of_a_merge_that_kept_ours_are_named(main: Journey, tmp_path: Path) -> None:
    other = Journey(clone(main.root, tmp_path / "clone"), tmp_path / "machine")
    other.home.mkdir()
    assert other.harness("ledger", "import").exit_code == 0
    assert other.harness("handoff", "--note", "Theirs.").exit_code == 0
    commit_all(other.root, "theirs")
    commit_all(main.root, "ours")
    git(main.root, "fetch", "-q", str(other.root), "main:theirs")
    git(main.root, "merge", "-q", "-s", "ours", "-m", "m", "theirs")
    answer = main.harness("ledger", "verify", "--json")
    (left,) = answer.document["waiting"]
    assert (answer.exit_code, answer.document["verified"]) == (0, True)
    told = main.harness("ledger", "verify").stdout
    restore, take = told.split("`")[1::2]
    assert left["commit"][:12] in restore
    git(main.root, *restore.split()[1:])
    assert f"facts of writer {left['writer']} came with git" in main.harness("status").stdout
    assert take == "harness ledger import"
    assert main.harness(*take.split()[1:], "--json").document["imported"] == 1
    assert "came with git" not in main.harness("status").stdout
    assert main.harness("ledger", "verify", "--json").document["waiting"] == []


def on_this_machine(main: Journey, folder: Path) -> Journey:
    return Journey(clone(main.root, folder / "clone"), main.home)


def on_another(main: Journey, folder: Path) -> Journey:
    other = Journey(clone(main.root, folder / "clone"), folder / "machine")
    other.home.mkdir()
    assert other.harness("ledger", "import").exit_code == 0
    return other


@pytest.mark.parametrize(
    ("cloned", "way"),
    [(on_this_machine, "`cd "), (on_another, "Go on in the clone that opened it; or a person")],
)
def test_a_clone_reads_and_opens_its_own(
    main: Journey, tmp_path: Path, cloned: Callable[[Journey, Path], Journey], way: str
) -> None:
    begin(main)
    commit_all(main.root)
    other = cloned(main, tmp_path)
    status = other.harness("status")
    assert status.exit_code == 0
    assert "of       the main tree (branch main): exp-0001 is open" in status.stdout
    refused = other.harness("train", "exp-0001", "--json")
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "other_tree")
    assert error["hint"].startswith(way)
    begin(other, "mine")
    missing = other.harness("train", "exp-0002", "--json").document["error"]
    assert missing["code"] == "data_not_here"
    assert "data/train.npz is not in this working tree" in missing["message"]
