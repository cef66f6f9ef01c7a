"""What a person accepted: which files, which parts of them, and what a new acceptance leaves as it
was."""

import fcntl
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.artifacts.locate import Layout
from harness.errors import ConfigError
from harness.guard.accepted import (
    accept,
    accept_on_record,
    accepted_list,
    control_listing,
    note_receipts,
    of_file,
    read_accepted,
    seen_receipts,
)
from harness.guard.control_files import file_and_part
from harness.guard.hooks.table import EVENTS
from harness.ledger import Ledger
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.rendering.claude_files import project_hooks
from harness.settings import create_config, load_settings

SETTINGS = ".claude/settings.json"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    root = tmp_path / "project"
    create_config(root, name="p", token="cafe")
    for name in (".claude/agents/a.md", ".git/config", ".mcp.json", "train.py"):
        write(root / name, "{}\n")
    write(root / SETTINGS, json.dumps({"hooks": project_hooks("/usr/bin/python3")}))
    return Layout(load_settings(root, {"XDG_STATE_HOME": str(tmp_path / "state")}))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def test_control_files_are_listed_and_others_are_not(layout: Layout):
    write(layout.root / ".claude/worktrees/agent-1/.claude/settings.json", "{}")
    assert {file_and_part(entry)[0] for entry in control_listing(layout.root)} == {
        SETTINGS,
        ".claude/agents/a.md",
        ".git/config",
        ".harness/config.toml",
        ".mcp.json",
    }


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (None, '{"permissions": {"allow": ["Bash(ls)"]}}', True),
        ('{"permissions": {"allow": []}}', '{"permissions": {"allow": ["Bash(ls)"]}}', True),
        (None, '{"enabledMcpjsonServers": ["harness"]}', True),
        (None, "{}", True),
        (None, "", True),
        (None, '{"disableAllHooks": true}', False),
        ('{"env": {}, "permissions": {}}', '{"env": {"A": "b"}, "permissions": {}}', True),
        ('{"env": {}}', '{"env": {"LD_PRELOAD": "b"}}', False),
        ('{"hooks": {}}', '{"hooks": {}', False),
        (None, "[]", False),
    ],
)
def test_what_decides_nothing_is_no_change(
    layout: Layout, before: str | None, after: str, same: bool
):
    path = layout.root / ".claude/settings.local.json"
    if before is not None:
        write(path, before)
    was = control_listing(layout.root)
    write(path, after)
    assert (control_listing(layout.root) == was) is same


def test_of_a_settings_file_each_part_that_counts_has_an_entry(layout: Layout):
    path = layout.root / SETTINGS
    settings = json.loads(path.read_text())
    was = control_listing(layout.root)
    write(path, json.dumps({"model": "opus", **settings, "theme": "dark"}, indent=4))
    assert control_listing(layout.root) == was
    settings["hooks"]["PreToolUse"][0]["hooks"][0].pop("onFailure")
    write(path, json.dumps({**settings, "disableAllHooks": True}))
    now = control_listing(layout.root)
    assert {entry for entry in {*was, *now} if was.get(entry) != now.get(entry)} == {
        f"{SETTINGS}#hooks.PreToolUse",
        f"{SETTINGS}#disableAllHooks",
    }
    path.unlink()
    left = control_listing(layout.root)
    assert {file_and_part(entry)[0] for entry in was} - set(left) == {SETTINGS}
    path.symlink_to("../train.py")
    assert SETTINGS in control_listing(layout.root), "a link counts by its target"


@pytest.mark.parametrize(
    ("added", "same"),
    [
        ('[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n', True),
        ('[remote "origin"]\n\turl = /elsewhere\n\tfetch = +refs/*:refs/*\n', True),
        ('[remote "origin"]\n\tuploadpack = evil\n', False),
        ("[core]\n\tfsmonitor = evil\n", False),
        ('[branch "x"]\n[core]\n\thooksPath = evil\n', False),
        ('[branch "x"] fsmonitor = a\n', False),
        ('[branch "x"]\n\tdescription = a\\\n', False),
        ("[alias]\n\tst = !evil\n", False),
        ('[branch "a]\n[core]\nfsmonitor=x', False),
    ],
)
def test_branches_and_addresses_of_remotes_are_no_change(layout: Layout, added: str, same: bool):
    path = layout.root / ".git/config"
    write(path, "[core]\n\tbare = false\n")
    was = control_listing(layout.root)
    write(path, path.read_text() + added)
    assert (control_listing(layout.root) == was) is same


def test_what_was_accepted_is_read_back(layout: Layout):
    assert read_accepted(layout) is None
    write(layout.project("receipts") / "s.jsonl", "{}\n")
    made = accept(layout, by="human:ada", at=NOW)
    assert read_accepted(layout) == made
    assert (made.at, made.by) == ("2026-01-01T00:00:00.000Z", "human:ada")
    assert made.receipts["s.jsonl"].bytes == 3
    assert not layout.accepted.is_relative_to(layout.root)


def test_a_part_that_is_accepted_leaves_the_rest_as_it_was(layout: Layout):
    first = accept(layout, by="a", at=NOW)
    for name in (SETTINGS, ".mcp.json"):
        write(layout.root / name, '{"disableAllHooks": true}')
    (layout.root / ".claude/agents/a.md").unlink()
    second = accept(layout, by="b", at=NOW, paths=[".mcp.json", ".claude/agents/a.md"])
    kept = of_file(first.files, SETTINGS)
    assert len(kept) == len(EVENTS)
    assert of_file(second.files, SETTINGS) == kept
    assert second.files[".mcp.json"] == control_listing(layout.root)[".mcp.json"]
    assert ".claude/agents/a.md" not in second.files
    assert (second.at, second.by) == (first.at, "a")


def test_a_settings_file_is_accepted_as_a_whole(layout: Layout):
    accept(layout, by="a", at=NOW)
    write(layout.root / SETTINGS, '{"disableAllHooks": true}')
    made = accept(layout, by="b", at=NOW, paths=[SETTINGS])
    assert set(of_file(made.files, SETTINGS)) == {f"{SETTINGS}#disableAllHooks"}
    assert made.files == control_listing(layout.root)


def test_the_first_part_that_is_accepted_takes_all(layout: Layout):
    assert accept(layout, by="a", at=NOW, paths=[".mcp.json"]).files == control_listing(
        layout.root
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "files": 3}'])
def test_a_damaged_list_is_named_and_replaced_only_as_a_whole(layout: Layout, text: str):
    write(layout.accepted, text)
    with pytest.raises(ConfigError, match=r"accepted\.json"):
        read_accepted(layout)
    with pytest.raises(ConfigError):
        accept(layout, by="a", at=NOW, paths=[".mcp.json"])
    accept(layout, by="a", at=NOW)
    assert read_accepted(layout) is not None


def test_receipts_are_remembered_as_they_grow_and_a_cut_one_as_it_was(layout: Layout):
    folder = layout.project("receipts")
    for name in ("a.jsonl", "b.jsonl"):
        write(folder / name, "{}\n{}\n")
    before = accept(layout, by="a", at=NOW)
    write(folder / "a.jsonl", "{}\n{}\n{}\n")
    write(folder / "b.jsonl", "{}\n")
    write(folder / "c.jsonl", "{}\n")
    note_receipts(layout, cut=["b.jsonl"])
    after = read_accepted(layout)
    assert after is not None
    assert {name: seen.bytes for name, seen in after.receipts.items()} == {
        "a.jsonl": 9,
        "b.jsonl": 6,
        "c.jsonl": 3,
    }
    assert after.files == before.files
    assert json.loads(layout.accepted.read_text())["receipts"]["a.jsonl"]["bytes"] == 9
    assert set(seen_receipts(layout)) == {"a.jsonl", "b.jsonl", "c.jsonl"}


def test_what_a_person_accepts_meanwhile_is_kept(layout: Layout):
    accept(layout, by="a", at=NOW)
    write(layout.project("receipts") / "a.jsonl", "{}\n")
    held = os.open(layout.state, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    noting = threading.Thread(target=note_receipts, args=(layout,), kwargs={"cut": []})
    noting.start()
    noting.join(0.3)
    assert noting.is_alive()  # it waits for whoever changes the list now
    changed = json.loads(layout.accepted.read_text())
    layout.accepted.write_text(json.dumps({**changed, "by": "b"}))
    os.close(held)
    noting.join()
    after = read_accepted(layout)
    assert after is not None
    assert (after.by, set(after.receipts)) == ("b", {"a.jsonl"})


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    "step", ["before the list", "after the list", "after the fact", "after all"]
)
def test_an_acceptance_that_is_cut_took_place_or_did_not_and_the_next_finishes_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, step: str
):
    layout, ledger = project.layout, project.ledger
    approve_plan(project, layout.root / "plan.md", by="ada")
    write(layout.root / ".mcp.json", "{}")
    append, moved = Ledger.append, os.replace

    def appended(ledger: Ledger, fact: object) -> None:
        if step == "after the list":
            raise Killed
        append(ledger, fact)
        if step == "after the fact":
            raise Killed

    def replaced(source: object, target: object, **folders: int) -> None:
        if step == "before the list":
            raise Killed
        moved(source, target, **folders)
        if step == "after all" and Path(str(target)).name == layout.accepted.name:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", appended)
        patch.setattr(os, "replace", replaced)
        with pytest.raises(Killed):
            accept_on_record(project, by="human:ada")
    found = accepted_list(project)
    assert found is not None
    assert found.sha256 == ledger.accepted_list(ledger.writer)
    took_place = ".mcp.json" in found.files
    assert took_place is (step in {"after the fact", "after all"})
    write(layout.root / SETTINGS, '{"disableAllHooks": true}')
    accept_on_record(project, by="human:bob", paths=[SETTINGS])
    after = read_accepted(layout)
    assert after is not None
    assert after.sha256 == ledger.accepted_list(ledger.writer)
    assert {".mcp.json", SETTINGS} & after.paths == {
        SETTINGS,
        *([".mcp.json"] if took_place else []),
    }
    assert not layout.accepted_next.exists()


def test_of_two_acceptances_at_once_the_list_and_the_last_fact_are_of_the_same(
    project: Project, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    layout, ledger, append = project.layout, project.ledger, Ledger.append
    approve_plan(project, layout.root / "plan.md", by="ada")

    def other() -> None:
        with open_project(layout.root, environment) as opened:
            write(layout.root / SETTINGS, '{"disableAllHooks": true}')
            accept_on_record(opened, by="human:bob")

    second = threading.Thread(target=other)

    def appended(one: Ledger, fact: object) -> None:
        if second.ident is None:
            second.start()
            second.join(0.3)  # it waits, or it has put its list and fact before this one's fact
        append(one, fact)

    monkeypatch.setattr(Ledger, "append", appended)
    write(layout.root / ".mcp.json", "{}")
    accept_on_record(project, by="human:ada")
    second.join()
    found = read_accepted(layout)
    assert found is not None
    assert found.sha256 == ledger.accepted_list(ledger.writer)
