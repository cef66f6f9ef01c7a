"""Which working tree this is: worktrees and clones that share a state directory are told apart."""

import shutil
from pathlib import Path

import pytest

from harness.artifacts.locate import Layout
from harness.artifacts.trees import (
    is_known,
    linked_roots,
    own_trees,
    place_of,
    this_tree,
    worktree_name,
)
from harness.settings import CONFIG, load_settings
from tests.blobs import own_environment
from tests.working_trees import add_worktree, clone, commit_all, git

CONFIG_TEXT = 'project_id = "blobs-cafe"\n'


@pytest.fixture
def main(tmp_path: Path) -> Path:
    root = tmp_path / "main"
    (root / ".harness").mkdir(parents=True)
    (root / CONFIG).write_text(CONFIG_TEXT)
    commit_all(root)
    return root


def layout(root: Path, home: Path | None = None) -> Layout:
    return Layout(load_settings(root, own_environment(home or root.parent)))


def test_a_tree_keeps_its_id_and_tells_branch_and_commit(main: Path) -> None:
    assert own_trees(layout(main)) == frozenset()
    first, again = this_tree(layout(main)), this_tree(layout(main))
    assert first == again
    assert (first.worktree, first.branch, first.commit) == (
        "",
        "main",
        git(main, "rev-parse", "HEAD"),
    )
    assert first.words == "the main tree (branch main)"
    assert own_trees(layout(main)) == {first.id}
    git(main, "checkout", "-q", "--detach")
    assert this_tree(layout(main)).branch == ""


def test_worktrees_and_clones_are_told_apart(main: Path, tmp_path: Path) -> None:
    side = add_worktree(main, tmp_path / "a side")
    copy = clone(main, tmp_path / "copy")
    trees = {root: this_tree(layout(root)) for root in (main, side, copy)}
    assert len({tree.id for tree in trees.values()}) == 3
    assert [tree.worktree for tree in trees.values()] == ["", "a-side", ""]
    for root, tree in trees.items():
        assert own_trees(layout(root)) == {tree.id}
        assert place_of(layout(main), tree.id) == root
    assert trees[side].words == "worktree a-side (branch trial)"
    assert place_of(layout(main), "elsewhere") is None
    assert not is_known(layout(main), "elsewhere")


def test_a_folder_that_moved_is_the_same_tree(main: Path, tmp_path: Path) -> None:
    side = add_worktree(main, tmp_path / "side")
    before = {root: this_tree(layout(root)).id for root in (main, side)}
    git(main, "worktree", "move", str(side), str(tmp_path / "moved"))
    assert own_trees(layout(tmp_path / "moved")) == {before[side]}
    assert this_tree(layout(tmp_path / "moved")).id == before[side]
    assert own_trees(layout(main)) == {before[main]}
    assert place_of(layout(main), before[side]) == tmp_path / "moved"


def test_a_worktree_that_is_gone_is_nobodys(main: Path, tmp_path: Path) -> None:
    side = add_worktree(main, tmp_path / "side")
    gone = this_tree(layout(side)).id
    git(main, "worktree", "remove", str(side))
    assert place_of(layout(main), gone) is None
    assert is_known(layout(main), gone)
    assert own_trees(layout(main)) == frozenset()
    other = add_worktree(main, tmp_path / "other", "another")
    assert own_trees(layout(other)) == frozenset()


def test_a_project_that_was_copied_with_its_state_is_itself(main: Path, tmp_path: Path) -> None:
    own = this_tree(layout(main)).id
    shutil.copytree(main, tmp_path / "home" / "main")
    shutil.copytree(tmp_path / "state", tmp_path / "home" / "state")
    copied = layout(tmp_path / "home" / "main")
    assert own_trees(copied) == {own}
    assert place_of(copied, own) is None
    assert this_tree(copied).id == own
    assert place_of(copied, own) == copied.root
    assert place_of(layout(main), own) == main


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "\0"])
def test_a_damaged_list_knows_nothing_and_is_made_anew(main: Path, text: str) -> None:
    before = this_tree(layout(main)).id
    layout(main).trees.write_text(text)
    assert own_trees(layout(main)) == frozenset()
    assert this_tree(layout(main)).id != before
    assert len(own_trees(layout(main))) == 1


def test_the_project_of_a_monorepo_is_found_in_each_worktree(tmp_path: Path) -> None:
    top = tmp_path / "mono"
    inner = top / "packages" / "inner"
    (inner / ".harness").mkdir(parents=True)
    (inner / CONFIG).write_text(CONFIG_TEXT)
    commit_all(top)
    side = add_worktree(top, tmp_path / "side")
    assert linked_roots(inner) == [side / "packages" / "inner"]
    assert worktree_name(side / "packages" / "inner") == "side"
    assert worktree_name(inner) == ""
    assert linked_roots(tmp_path) == []


def test_without_git_a_tree_has_an_id_and_no_branch(tmp_path: Path) -> None:
    (tmp_path / "plain" / ".harness").mkdir(parents=True)
    (tmp_path / "plain" / CONFIG).write_text(CONFIG_TEXT)
    tree = this_tree(layout(tmp_path / "plain"))
    assert (tree.worktree, tree.branch, tree.commit) == ("", "", "")
    assert tree.words == "the main tree"
    assert linked_roots(tmp_path / "plain") == []
