"""One path, many spellings: relative, `..`, links, hard links, case, slashes, home, other
worktrees."""

import os

import pytest
from policy_project import CONTROL, FROZEN, OWN

from harness.guard.policy.paths import inside, matches, may_meet, places


@pytest.mark.parametrize("tool", ["Write", "Edit", "NotebookEdit"])
@pytest.mark.parametrize("path", [*CONTROL, *FROZEN])
def test_control_and_frozen_files_are_not_written(project, tool, path):
    key = "notebook_path" if tool == "NotebookEdit" else "file_path"
    assert project.ask(tool, {key: path})["permission"] == "deny"
    assert project.ask(tool, {key: f"{project.root}/{path}"})["permission"] == "deny"
    assert project.ask(tool, {key: f"../{path}"}, cwd=project.root / "sub")["permission"] == "deny"


def spellings(project):
    root = str(project.root)
    return [
        ".harness/policy.json",
        "./.harness//policy.json",
        "sub/../.harness/policy.json",
        ".harness/experiments/../policy.json",
        ".HARNESS/Policy.JSON",
        ".harness/policy.json/",
        f"{root}/.harness/policy.json",
        f"file://{root}/.harness/policy.json",
        ".harness/new/deep/file.txt",
        "sub/.claude/settings.json",
        "/elsewhere/other/.harness/policy.json",
    ]


def test_spellings_of_a_protected_file(project):
    for path in spellings(project):
        assert project.ask("Write", {"file_path": path})["permission"] == "deny", path


def test_links_lead_where_they_lead(project):
    (project.root / "alias").symlink_to(".harness")
    (project.root / "chain").symlink_to("alias")
    (project.root / "one.json").symlink_to(".harness/policy.json")
    (project.root / "dangling").symlink_to(".harness/not-there-yet.json")
    (project.root.parent / "other name").symlink_to(project.root)
    for path in (
        "alias/policy.json",
        "chain/policy.json",
        "one.json",
        "dangling",
        "alias/new.txt",
    ):
        said = project.ask("Write", {"file_path": path})
        assert said["permission"] == "deny", path
    renamed = project.root.parent / "other name"
    assert project.ask("Write", {"file_path": "plan.md"}, cwd=renamed)["permission"] == "deny"
    assert (
        project.ask("Write", {"file_path": f"{renamed}/.harness/policy.json"})["permission"]
        == "deny"
    )
    assert project.ask("Write", {"file_path": "model.py"}, cwd=renamed)["permission"] == "allow"
    assert project.ask("Write", {"file_path": OWN}, cwd=renamed)["permission"] == "allow"


def test_dot_dot_behind_a_link_is_followed_as_the_kernel_does(project):
    (project.root / ".harness" / "deep").mkdir()
    (project.root / "sub" / "into").symlink_to("../.harness/deep")
    assert project.ask("Write", {"file_path": "sub/into/../policy.json"})["permission"] == "deny"


def test_own_artifact_that_is_a_link_to_another_file_is_denied(project):
    (project.root / OWN).unlink()
    (project.root / OWN).symlink_to(project.root / "plan.md")
    assert project.ask("Write", {"file_path": OWN})["permission"] == "deny"


def test_hard_links_are_the_file_itself(project):
    os.link(project.root / "plan.md", project.root / "sub" / "copy.md")
    os.link(project.root / ".harness/experiments/exp-0001/result.md", project.root / "r.md")
    for path in ("sub/copy.md", "r.md"):
        said = project.ask("Write", {"file_path": path})
        assert (said["permission"], said["rule"]) == ("deny", "hard_link"), path
    os.link(project.root / "notes.txt", project.root / "notes2.txt")
    assert project.ask("Write", {"file_path": "notes2.txt"})["permission"] == "allow"
    assert project.ask("Write", {"file_path": OWN})["permission"] == "allow"


def test_own_artifact_that_is_a_hard_link_of_a_protected_file_is_denied(project):
    (project.root / OWN).unlink()
    os.link(project.root / "plan.md", project.root / OWN)
    assert project.ask("Write", {"file_path": OWN})["permission"] == "deny"


def test_too_many_files_to_compare_a_hard_link_with_is_a_denial(project, monkeypatch):
    monkeypatch.setattr("harness.guard.policy.paths.SCANNED", 2)
    os.link(project.root / "notes.txt", project.root / "notes2.txt")
    said = project.ask("Write", {"file_path": "notes2.txt"})
    assert (said["permission"], said["rule"]) == ("deny", "hard_link")


def test_state_is_neither_read_nor_written(project):
    for path in (
        "ledger.db",
        "vault/held_out/rows.npz",
        "",
        "sessions/s1/cli.pid",
        "sessions/s1/inside.txt",
    ):
        for tool in ("Read", "Write"):
            said = project.ask(tool, {"file_path": f"{project.state}/{path}"})
            assert (said["permission"], said["rule"]) == ("deny", "state_out_of_reach"), (
                tool,
                path,
            )
    (project.root / "way").symlink_to(project.state)
    assert project.ask("Read", {"file_path": "way/ledger.db"})["permission"] == "deny"
    assert (
        project.ask("Read", {"file_path": f"{project.state}/sessions/s1/in/tmp/note.txt"})[
            "permission"
        ]
        is None
    )
    away = f"{project.state}/sessions/s1/in/../../../ledger.db"
    assert project.ask("Read", {"file_path": away})["permission"] == "deny"


def test_home_is_expanded(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project.state))
    assert project.ask("Read", {"file_path": "~/ledger.db"})["permission"] == "deny"


def test_held_out_rows_are_not_read_where_they_stood(project):
    assert project.ask("Read", {"file_path": "data/held_out.npz"})["rule"] == "held_out_hidden"


def test_ordinary_files_pass(project):
    for path in (
        "model.py",
        "new/deep/file.py",
        "data/derived.npz",
        "harness_notes.md",
        "plans.md",
        "claude/x",
    ):
        assert project.ask("Write", {"file_path": path})["permission"] == "allow", path
    for path in ("plan.md", ".harness/experiments/exp-0001/result.md", "data/train.npz"):
        assert project.ask("Read", {"file_path": path})["permission"] == "allow", path
    assert project.ask("Write", {"file_path": "/tmp/x"})["permission"] is None


def test_names_that_only_begin_alike_are_not_inside():
    assert inside("/a/b", "/a/b")
    assert inside("/a/b/c", "/a/B")
    assert not inside("/a/bc", "/a/b")
    assert inside("/a/stra\u00dfe/x", "/a/STRASSE")


def test_matches_counts_components():
    assert matches("e/exp-1/result.md", "e/*/result.md", whole=True)
    assert not matches("e/x/y/result.md", "e/*/result.md", whole=False)
    assert matches("e/x/result.md/below", "e/*/result.md", whole=False)
    assert not matches("e/x/result.md/below", "e/*/result.md", whole=True)


@pytest.mark.parametrize(
    ("pattern", "below", "met"),
    [
        ("/p/*", False, False),  # a star does not name dot files
        ("/p/.*", False, True),
        ("/p/.h*/x", False, True),
        ("/p/[.]h", False, True),
        ("/*/.h", False, True),
        ("/*", False, False),
        ("/*", True, True),
        ("/q/*", True, False),
    ],
)
def test_wildcards_meet_what_they_may_name(pattern, below, met):
    assert may_meet(pattern, "/p/.h", below=below) is met


def test_places_resolve_the_deepest_existing_ancestor(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert places("link/a/b", str(tmp_path)) == (f"{tmp_path}/link/a/b", f"{tmp_path}/real/a/b")
    with pytest.raises(ValueError, match="NUL"):
        places("a\0", "/")
