import os
import shutil
import time

import pytest

from harness.artifacts.content import hash_path
from harness.evaluation.checkpoint_copy import copy_checkpoint, marks_of, require_unchanged
from harness.evaluation.problems import Unscorable


@pytest.fixture
def place(tmp_path):
    for name in ("project", "vault", "copies"):
        (tmp_path / name).mkdir()
    (tmp_path / "vault" / "labels.csv").write_text("id,y\n")
    return tmp_path


def refused(place, source, expected):
    with pytest.raises(Unscorable) as caught:
        copy_checkpoint(source, place / "copies", root=place / "project", expected=expected)
    return caught.value.finding.code


def test_a_file_is_copied_under_its_hash_read_only(place):
    source = place / "project" / "model.pt"
    source.write_bytes(b"weights")
    copy = copy_checkpoint(
        source, place / "copies", root=place / "project", expected=hash_path(source)
    )
    assert copy.name == f"{hash_path(source)}.pt"
    assert copy.read_bytes() == b"weights"
    assert copy.stat().st_mode & 0o222 == 0


def test_links_to_the_vault_are_not_followed_even_with_the_right_hash(place):
    labels = place / "vault" / "labels.csv"
    expected = hash_path(labels)
    link = place / "project" / "model.pt"
    link.symlink_to(labels)
    assert refused(place, link, expected) == "checkpoint_missing"
    (place / "project" / "runs").symlink_to(place / "vault")
    assert (
        refused(place, place / "project" / "runs" / "labels.csv", expected) == "checkpoint_missing"
    )
    folder = place / "project" / "folder"
    folder.mkdir()
    (folder / "w.bin").symlink_to(labels)
    assert refused(place, folder, hash_path(folder)) == "checkpoint_missing"


def test_a_link_to_another_file_of_the_folder_is_a_part_of_it(place):
    folder = place / "project" / "folder"
    (folder / "steps").mkdir(parents=True)
    (folder / "steps" / "1.pt").write_bytes(b"weights")
    (folder / "latest.pt").symlink_to("steps/1.pt")
    (folder / "best").symlink_to("steps")
    expected = hash_path(folder)
    copy = copy_checkpoint(folder, place / "copies", root=place / "project", expected=expected)
    (folder / "steps" / "1.pt").write_bytes(b"exchanged")
    assert (copy / "latest.pt").read_bytes() == (copy / "best/1.pt").read_bytes() == b"weights"
    require_unchanged(copy, expected)
    (folder / "steps" / "1.pt").write_bytes(b"weights")
    (folder / "latest.pt").unlink()
    (folder / "latest.pt").symlink_to("best/1.pt")
    shutil.rmtree(copy)
    assert refused(place, folder, expected) == "checkpoint_changed"


@pytest.mark.parametrize(
    "links",
    [
        {"w.pt": "absent.pt"},
        {"w.pt": "../other.pt"},
        {"w.pt": "@PROJECT@/folder/a.pt"},
        {"w.pt": "w.pt"},
        {"w.pt": "v.pt", "v.pt": "../other.pt"},
        # Each alone stays inside by its words; together they lead out.
        {"deep/er/d": "../../a", "w.pt": "deep/er/d/../../other.pt"},
    ],
    ids=lambda links: " ".join(links.values()),
)
def test_a_link_that_leads_out_of_the_folder_is_refused(place, links):
    folder = place / "project" / "folder"
    (folder / "deep/er").mkdir(parents=True)
    (folder / "a").mkdir()
    for path in (folder / "a.pt", folder / "deep/other.pt", place / "project/other.pt"):
        path.write_bytes(b"weights")
    (place / "copies" / "other.pt").write_bytes(b"weights")
    for name, target in links.items():
        (folder / name).symlink_to(target.replace("@PROJECT@", str(place / "project")))
    assert refused(place, folder, hash_path(folder)) == "checkpoint_missing"


def test_a_pipe_is_refused_and_not_waited_for(place):
    folder = place / "project" / "folder"
    folder.mkdir()
    os.mkfifo(folder / "w.bin")
    assert refused(place, folder, "0" * 64) == "checkpoint_missing"


def test_a_folder_is_hashed_while_it_is_copied_as_it_is_hashed_in_its_place(place):
    folder = place / "project" / "folder"
    for name in ("b", "a/c", "a/b/d", "a.b"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    expected = hash_path(folder)
    copy = copy_checkpoint(folder, place / "copies", root=place / "project", expected=expected)
    assert hash_path(copy) == expected


@pytest.mark.parametrize("how", ["bytes", "added", "removed", "mode"])
def test_marks_tell_every_change_also_under_the_old_time(place, how):
    folder = place / "project" / "folder"
    folder.mkdir()
    one = folder / "w.bin"
    one.write_bytes(b"weights")
    marks = marks_of(folder)
    assert marks_of(folder) == marks
    assert len(marks) == 2
    known = one.stat()
    time.sleep(0.02)  # the clock of the file system ticks
    if how == "bytes":
        one.write_bytes(b"WEIGHTS")
        os.utime(one, ns=(known.st_atime_ns, known.st_mtime_ns))
    elif how == "added":
        (folder / "x").touch()
    elif how == "removed":
        one.unlink()
    else:
        one.chmod(0o600)
    assert marks_of(folder) != marks


def test_changes_before_and_after_are_named(place):
    source = place / "project" / "model.pt"
    source.write_bytes(b"weights")
    expected = hash_path(source)
    copy = copy_checkpoint(source, place / "copies", root=place / "project", expected=expected)
    require_unchanged(copy, expected)
    copy.chmod(0o644)
    copy.write_bytes(b"better")
    with pytest.raises(Unscorable, match="changed by the predict command"):
        require_unchanged(copy, expected)
    source.write_bytes(b"swapped")
    (place / "copies" / copy.name).unlink()
    assert refused(place, source, expected) == "checkpoint_changed"
