"""A request's file is what it was when it was asked for: no link leads the judge elsewhere."""

import os
from pathlib import Path, PurePath

import pytest

from harness.errors import RefusedError
from harness.judge import handed_files
from harness.judge.handed_files import copied
from tests.judge.inside import Inside

SECRET = "step,loss\n1,0.31337\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "logs").mkdir(parents=True)
    (root / "logs/run.csv").write_text("step,loss\n1,5.5\n", "utf-8")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/run.csv").write_text(SECRET, "utf-8")
    return root


def test_a_file_and_a_folder_are_copied(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "copies"
    file = copied(place, PurePath("logs/run.csv"), target / "1")
    assert file.read_text("utf-8") == "step,loss\n1,5.5\n"
    folder = copied(place, PurePath("logs"), target / "2")
    assert [path.name for path in folder.iterdir()] == ["run.csv"]
    assert not copied(place, PurePath("logs/none.csv"), target / "3").exists()


@pytest.mark.parametrize("linked", ["logs/run.csv", "logs"])
def test_a_link_that_came_after_the_check_is_not_followed(
    place: Path, tmp_path: Path, linked: str
) -> None:
    os.rename(place / linked, tmp_path / "away")
    (place / linked).symlink_to(tmp_path / "secret" / Path(linked).relative_to("logs"))
    with pytest.raises(RefusedError, match="link"):
        copied(place, PurePath("logs/run.csv"), tmp_path / "copies")


def test_a_link_in_a_folder_is_left_out(place: Path, tmp_path: Path) -> None:
    (place / "logs/other.csv").symlink_to(tmp_path / "secret/run.csv")
    (place / "logs/inner").symlink_to(tmp_path / "secret")
    folder = copied(place, PurePath("logs"), tmp_path / "copies")
    assert [path.name for path in folder.rglob("*")] == ["run.csv"]


def test_what_is_copied_is_bounded(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed_files, "MOST_BYTES", 3)
    with pytest.raises(RefusedError, match="too much"):
        copied(place, PurePath("logs/run.csv"), tmp_path / "copies")


def test_a_swap_while_the_judge_starts_reads_nothing_else(inside: Inside) -> None:
    state = inside.journey.state
    secret = state / "anchors/run.csv"
    secret.write_text(SECRET, "utf-8")
    script = f"""
    for wait in 0.1 0.3 0.5 0.8; do
        rm -f run.csv; printf 'step,loss\\n1,5.5\\n' > run.csv
        (sleep $wait; rm -f run.csv; ln -s {secret} run.csv) &
        harness watch --once run.csv; harness claims audit run.csv; wait
    done; echo DONE
    """
    answer = inside.run(script)
    secret.unlink()
    assert "DONE" in answer.stdout, answer.stderr
    assert "31337" not in answer.stdout + answer.stderr
