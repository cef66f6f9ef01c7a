"""Facts that git brought and the ledger lacks are named, also behind a merge that kept ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ledger import text_parts
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.facts import HandOffWritten
from harness.ledger.project import Project, open_project
from harness.ledger.travelling import Ahead, facts_ahead, facts_left_out
from tests.blobs import own_environment
from tests.working_trees import clone, commit_all, git


@pytest.fixture
def ours(root: Path, project: Project) -> Project:
    """A project whose facts are in git."""
    say(project, "ours")
    commit_all(root)
    return project


@pytest.fixture
def theirs(ours: Project, tmp_path: Path) -> Iterator[Project]:
    """A clone on another machine, which wrote facts of its own on a branch, and committed them."""
    place = clone(ours.layout.root, tmp_path / "clone")
    git(place, "checkout", "-q", "-b", "theirs")
    environment = own_environment(tmp_path / "machine")
    with open_project(place, environment, restore=True) as opened:
        import_facts(opened.ledger, opened.layout.facts_dir)
    with open_project(place, environment) as opened:
        for text in ("theirs", "more"):
            say(opened, text)
            commit_all(place)
        yield opened


def say(project: Project, text: str) -> None:
    project.ledger.append(HandOffWritten(by="agent", session=None, text=text, experiment=None))
    export_facts(project.ledger, project.layout.facts_dir)


def fetched(ours: Project, theirs: Project) -> Path:
    root = ours.layout.root
    git(root, "fetch", "-q", str(theirs.layout.root), "theirs:theirs")
    return root


def looked(project: Project) -> tuple[list[Ahead], list[Ahead]]:
    return facts_ahead(project.ledger, project.layout), facts_left_out(
        project.ledger, project.layout
    )


def test_nothing_waits_where_all_is_in_the_ledger(ours: Project) -> None:
    assert looked(ours) == ([], [])


def test_without_a_repository_nothing_waits(project: Project) -> None:
    say(project, "ours")
    assert looked(project) == ([], [])


def test_facts_of_a_merged_branch_wait_until_they_are_imported(
    ours: Project, theirs: Project
) -> None:
    root = fetched(ours, theirs)
    git(root, "merge", "-q", "--no-ff", "-m", "m", "theirs")
    writer = theirs.ledger.writer
    (ahead,), left_out = looked(ours)
    assert (ahead.writer, ahead.last, ahead.commit) == (writer, 2, "")
    assert ahead.way == "`harness ledger import`"
    assert left_out == []
    assert import_facts(ours.ledger, ours.layout.facts_dir) == 2
    assert looked(ours) == ([], [])


def test_a_merge_that_kept_ours_is_named_where_parts_were_closed(
    ours: Project, theirs: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest text is shorter than the one before it."""
    monkeypatch.setattr(text_parts, "LIMIT", 700)
    for text in ("x" * 300, "y"):
        say(theirs, text)
        commit_all(theirs.layout.root)
    assert list(theirs.layout.facts_dir.glob("*.gz"))
    root = fetched(ours, theirs)
    git(root, "merge", "-q", "-s", "ours", "-m", "m", "theirs")
    _, (left,) = looked(ours)
    assert (left.writer, left.last) == (theirs.ledger.writer, 4)
    git(root, *left.way.split("`")[1].split()[1:])
    assert import_facts(ours.ledger, ours.layout.facts_dir) == 4
    assert looked(ours) == ([], [])


@pytest.mark.parametrize("known", [0, 1], ids=["never seen", "seen in part"])
def test_a_merge_that_kept_ours_is_named_with_the_way(
    ours: Project, theirs: Project, known: int
) -> None:
    root = fetched(ours, theirs)
    if known:
        git(root, "merge", "-q", "theirs~1")
        assert import_facts(ours.ledger, ours.layout.facts_dir) == 1
    git(root, "merge", "-q", "-s", "ours", "-m", "m", "theirs")
    git(root, "branch", "-q", "-D", "theirs")
    waiting, (left,) = looked(ours)
    assert waiting == []
    assert (left.writer, left.last) == (theirs.ledger.writer, 2)
    assert left.words.endswith("and are not in the ledger")
    restore = left.way.split("`")[1]
    assert restore.startswith("git checkout ")
    git(root, *restore.split()[1:])
    assert import_facts(ours.ledger, ours.layout.facts_dir) == 2 - known
    assert looked(ours) == ([], [])


def test_what_is_no_chain_of_its_name_is_passed_over(ours: Project) -> None:
    root, folder = ours.layout.root, ours.layout.facts_dir
    (own,) = folder.glob("*.jsonl")
    (folder / "other.jsonl").write_bytes(own.read_bytes())
    (folder / "text.jsonl").write_text("no fact\n")
    (folder / "empty.jsonl").write_text("")
    commit_all(root)
    assert looked(ours) == ([], [])


def test_a_file_that_git_does_not_track_did_not_come_with_it(
    ours: Project, theirs: Project
) -> None:
    (text,) = theirs.layout.facts_dir.glob(f"{theirs.ledger.writer}.jsonl")
    placed = ours.layout.facts_dir / text.name
    placed.write_bytes(text.read_bytes())
    (ahead,) = facts_ahead(ours.ledger, ours.layout)
    assert "are in a file that git does not track" in ahead.words
    git(ours.layout.root, "add", str(placed))
    (ahead,) = facts_ahead(ours.ledger, ours.layout)
    assert "came with git" in ahead.words
