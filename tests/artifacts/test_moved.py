"""Folders and pages after a merge: what gets the new ids, what stays, and a second call."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts import moved
from harness.artifacts.locate import Layout
from harness.artifacts.moved import Renaming, move_experiments
from harness.settings import Settings

OURS = ("exp-0001", "exp-0003", "exp-0005")
MERGE = Renaming(9, {"exp-0002": "exp-0005", "d-0001": "d-0004"}, OURS)
WORDS = "parent: exp-0002, by d-0001\n"
NEW_WORDS = "parent: exp-0005, by d-0004\n"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    settings = Settings(
        root=tmp_path / "p",
        state=tmp_path / "s",
        project_id="x",
        interpreter=None,
        memory_dir="m",
        readable=(),
    )
    for name in ("exp-0001", "exp-0002", "exp-0003", "exp-0004"):
        folder = tmp_path / "p" / ".harness" / "experiments" / name
        state = folder / "runs" / "run-01" / "checkpoints" / "last"
        state.mkdir(parents=True)
        for path in (
            folder / "hypothesis.md",
            folder / "code.json",
            folder / "config.yaml",
            folder / "runs" / "run-01" / "run.json",
            folder / "runs" / "run-01" / "spec.json",
            folder / "runs" / "run-01" / "stdout.log",
            state / "trainer_state.json",
            state / "README.md",
        ):
            path.write_text(WORDS)
    (tmp_path / "s").mkdir()
    return Layout(settings)


def renamed(layout: Layout, experiment: str) -> set[str]:
    folder = layout.experiment(experiment)
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert len(files) == 8
    texts = {path: path.read_text() for path in files}
    assert set(texts.values()) <= {WORDS, NEW_WORDS}
    return {path.name for path, text in texts.items() if text == NEW_WORDS}


def test_named_pages_of_this_writers_own_get_the_new_ids_and_nothing_else(layout: Layout) -> None:
    folder = layout.relative(layout.experiment("exp-0005"))
    assert move_experiments(layout, [MERGE], {*OURS, "exp-0004"}) == [folder]
    assert not layout.experiment("exp-0002").exists()
    for name in OURS:
        assert renamed(layout, name) == {"hypothesis.md", "run.json"}
    assert renamed(layout, "exp-0004") == set()


def test_what_another_tree_opened_stays(layout: Layout) -> None:
    assert move_experiments(layout, [MERGE], {"exp-0001"}) == []
    assert renamed(layout, "exp-0001") == {"hypothesis.md", "run.json"}
    for name in ("exp-0002", "exp-0003"):
        assert renamed(layout, name) == set()


def test_a_merge_that_was_cut_is_finished_and_then_left(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(moved, "write_below", cut)
        with pytest.raises(KeyboardInterrupt):
            move_experiments(layout, [MERGE], OURS)
    assert layout.experiment("exp-0005").exists()
    assert move_experiments(layout, [MERGE], OURS) == []
    for name in OURS:
        assert renamed(layout, name) == {"hypothesis.md", "run.json"}
    # From here on exp-0002 is the other clone's, also in pages of ours.
    page = layout.experiment("exp-0003", "result")
    page.write_text(WORDS)
    layout.experiment("exp-0002").mkdir()
    assert move_experiments(layout, [MERGE], OURS) == []
    assert page.read_text() == WORDS
    other = Layout(replace(layout.settings, root=layout.root.with_name("linked")))
    assert other.renamed != layout.renamed
