"""A newer harness over an older one, and files that a person changed meanwhile, on the way in and
on the way out."""

import json
from pathlib import Path

import pytest

from harness.contract.installation import AGENTS, COMMANDS, VENDORED
from harness.errors import ConfigError, NotFoundError, RefusedError, UsageError
from harness.install import manifest as manifests
from harness.install import wanted_files
from harness.install.manifest import read_manifest
from harness.ledger.project import open_project
from harness.plans.approval import approve_plan
from harness.rendering import prompts
from harness.rendering import render as rendering
from harness.rendering.claude_files import project_hooks
from harness.rendering.render import render
from harness.rendering.vendored_hooks import vendored_files
from tests.blobs import make_root
from tests.install.repository import BY, Person, sklearn_like, tree

ROOT = Path(__file__).parents[2]
SETTINGS = ".claude/settings.json"
GUARD = f"{VENDORED}/run.py"
PROGRAMS_OF_BEFORE = {
    "pre_tool_use.py": "PreToolUse",
    "config_change.py": "ConfigChange",
    "stop.py": "Stop",
    "session_start.py": "SessionStart",
}
"""Once each event had a program of its own."""


@pytest.fixture
def older(repository: Path, person: Person) -> Path:
    """A repository in which an older version was installed: other bytes, a file more, another
    timeout."""
    with pytest.MonkeyPatch.context() as patch:
        files = {
            **vendored_files(),
            "run.py": b"old\n",
            **dict.fromkeys(PROGRAMS_OF_BEFORE, b"old\n"),
            "lib/harness/guard/policy/gone.py": b"gone\n",
        }
        section = wanted_files.project_hooks("/usr/bin/python3")
        for name, event in PROGRAMS_OF_BEFORE.items():
            section[event][0]["hooks"][0]["args"][2:] = [
                f"${{CLAUDE_PROJECT_DIR}}/{VENDORED}/{name}"
            ]
        section["PreToolUse"][0]["hooks"][0]["timeout"] = 5
        section["Notification"] = section.pop("SessionEnd")
        texts = {path: text + "old\n" for path, text in wanted_files.installed_texts().items()}
        patch.setattr(wanted_files, "vendored_files", lambda: files)
        patch.setattr(wanted_files, "installed_texts", lambda: texts)
        patch.setattr(wanted_files, "project_hooks", lambda _interpreter: section)
        person.install(repository)
    return repository


def test_all_that_is_unchanged_is_replaced(older: Path, person: Person, tmp_path: Path) -> None:
    done = person.install(older)
    assert done.conflicts == ()
    assert (older / GUARD).read_bytes() == vendored_files()["run.py"]
    assert not (older / VENDORED / "lib/harness/guard/policy/gone.py").exists()
    hooks = json.loads((older / SETTINGS).read_text())["hooks"]
    assert "Notification" not in hooks
    assert [group["hooks"][0].get("timeout") for group in hooks["PreToolUse"]] == [None, 30]
    assert person.install(older).changes == ()


def test_no_program_of_before_is_left_in_files_or_settings(older: Path, person: Person) -> None:
    folder = older / VENDORED
    assert all((folder / name).is_file() for name in PROGRAMS_OF_BEFORE)
    assert "pre_tool_use.py" in (older / SETTINGS).read_text()
    assert person.install(older).conflicts == ()
    assert sorted(path.name for path in folder.glob("*.py")) == ["mcp.py", "run.py"]
    entries = [
        (event, entry["args"][2:])
        for event, groups in json.loads((older / SETTINGS).read_text())["hooks"].items()
        for group in groups
        for entry in group["hooks"]
        if "args" in entry
    ]
    program = f"${{CLAUDE_PROJECT_DIR}}/{VENDORED}/run.py"
    assert entries == [(event, [program, event]) for event in project_hooks("python3")]
    manifest = read_manifest(older)
    assert manifest is not None
    assert not {*PROGRAMS_OF_BEFORE} & {*manifest.files}


def test_an_older_installation_is_taken_out_exactly(
    older: Path, person: Person, tmp_path: Path
) -> None:
    person.install(older)
    person.remove(older)
    assert tree(older) == tree(sklearn_like(tmp_path / "as it was"))


def test_an_edited_file_is_kept_and_named_again_and_again(older: Path, person: Person) -> None:
    edited = {GUARD, f"{AGENTS}/oracle.md", f"{VENDORED}/lib/harness/guard/policy/gone.py"}
    for path in edited:
        (older / path).write_text((older / path).read_text() + "# mine\n")
    before = tree(older)
    for _ in range(2):
        done = person.install(older)
        assert {item.path for item in done.conflicts} >= edited - {
            f"{VENDORED}/lib/harness/guard/policy/gone.py"
        }
        assert all(item.hint for item in done.conflicts)
        assert {path: tree(older)[path] for path in edited} == {
            path: before[path] for path in edited
        }
    (older / GUARD).unlink()
    (older / AGENTS / "oracle.md").unlink()
    person.install(older)
    assert person.install(older).conflicts == ()
    assert (older / GUARD).read_bytes() == vendored_files()["run.py"]


def test_our_banner_is_no_proof_that_nobody_edited_the_file(
    repository: Path, person: Person
) -> None:
    path = repository / AGENTS / "oracle.md"
    path.parent.mkdir()
    path.write_text(f"---\nname: oracle\n---\n{prompts.AGENT_BANNER}\nmine\n")
    for done in (
        person.install(repository),
        person.install(repository),
        person.remove(repository),
    ):
        assert [item.path for item in done.conflicts] == [f"{AGENTS}/oracle.md"]
        assert "Delete" in done.conflicts[0].hint or "delete" in done.conflicts[0].hint
        assert path.read_text().endswith("mine\n")


def test_what_a_harness_between_the_two_rendered_is_no_edit(older: Path, person: Person) -> None:
    with pytest.MonkeyPatch.context() as patch:
        texts = {path: text + "between\n" for path, text in rendering.installed_texts().items()}
        patch.setattr(rendering, "installed_texts", lambda: texts)
        assert Path(COMMANDS, "gate.md") in render(older)
    assert person.install(older).conflicts == ()
    assert not (older / COMMANDS / "gate.md").read_text().endswith("between\n")


def test_a_damaged_manifest_is_written_anew(repository: Path, person: Person) -> None:
    person.install(repository)
    (repository / manifests.PATH).write_text("{")
    assert person.install(repository).conflicts == ()
    assert read_manifest(repository) is not None


def test_a_settings_file_that_was_edited_since_keeps_the_edit_on_the_way_out(
    repository: Path, person: Person
) -> None:
    original = (repository / SETTINGS).read_bytes()
    person.install(repository)
    text = (
        (repository / SETTINGS)
        .read_bytes()
        .replace(b'"unknown"', b'"added": true,\r\n    "unknown"')
    )
    (repository / SETTINGS).write_bytes(text)
    done = person.remove(repository)
    assert [item.path for item in done.conflicts] == [SETTINGS]
    wanted_bytes = original.replace(b'"unknown"', b'"added": true,\r\n    "unknown"')
    assert (repository / SETTINGS).read_bytes() == wanted_bytes


def test_an_edit_between_two_installations_is_kept_on_the_way_out(
    older: Path, person: Person
) -> None:
    edit = (b'"unknown"', b'"added": true,\r\n    "unknown"')
    (older / SETTINGS).write_bytes((older / SETTINGS).read_bytes().replace(*edit))
    person.install(older)
    assert person.remove(older).conflicts == ()
    value = json.loads((older / SETTINGS).read_bytes())
    assert value["added"] is True
    assert value["hooks"] == {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}
        ]
    }


def test_edited_files_of_ours_stay_on_the_way_out_and_are_named(
    repository: Path, person: Person
) -> None:
    person.install(repository)
    edited = {GUARD, f"{COMMANDS}/gate.md"}
    for path in edited:
        (repository / path).write_text("mine\n")
    (repository / "plan.md").write_text("my plan\n")
    done = person.remove(repository)
    assert {item.path for item in done.conflicts} == edited
    assert {
        path
        for path in tree(repository)
        if path.startswith(".claude/") and (repository / path).is_file()
    } == {
        *edited,
        SETTINGS,
        ".claude/commands/mine.md",
    }
    assert (repository / "plan.md").read_text() == "my plan\n"
    assert any("plan.md stays" in note for note in done.notes)


def test_however_often_it_is_removed_edits_and_earlier_folders_stay(
    tmp_path: Path, person: Person
) -> None:
    root = make_root(tmp_path / "root")
    (root / ".claude" / "commands").mkdir(parents=True)
    person.install(root)
    with open_project(root, person.environment) as project:
        approve_plan(project, root / "plan.md", by=BY)
    (root / ".harness" / "experiments" / "notes").mkdir(parents=True)
    edited = {f"{AGENTS}/oracle.md", f"{COMMANDS}/train.md", GUARD}
    for path in edited:
        (root / path).write_text((root / path).read_text() + "# mine\n")
    for _ in range(3):
        done = person.remove(root)
        assert {item.path for item in done.conflicts} == edited
        assert {
            path for path in edited if (root / path).read_text().endswith("# mine\n")
        } == edited
    assert {item.path for item in person.install(root).conflicts} == edited
    assert {path for path in edited if (root / path).read_text().endswith("# mine\n")} == edited
    for path in edited:
        (root / path).unlink()
    for _ in range(2):
        assert person.remove(root).conflicts == ()
    assert (root / ".claude" / "commands").is_dir()
    assert (root / ".harness" / "experiments" / "notes").is_dir()


def test_an_empty_folder_that_was_there_stays_when_nothing_is_installed_any_more(
    tmp_path: Path, person: Person
) -> None:
    root = make_root(tmp_path / "root")
    person.install(root)
    with open_project(root, person.environment) as project:
        approve_plan(project, root / "plan.md", by=BY)
    person.remove(root)
    assert not (root / ".claude").exists()
    (root / ".claude" / "commands").mkdir(parents=True)
    person.remove(root)
    assert (root / ".claude" / "commands").is_dir()


def test_removal_refuses_settings_that_are_no_json_and_changes_nothing(
    repository: Path, person: Person
) -> None:
    person.install(repository)
    (repository / SETTINGS).write_text('{"a": 1,}')
    before = tree(repository)
    with pytest.raises(UsageError, match="line 1"):
        person.remove(repository)
    assert tree(repository) == before


def test_a_copy_that_is_damaged_or_gone_is_said(repository: Path, person: Person) -> None:
    person.install(repository)
    (folder,) = (person.home / "state" / "harness").glob("*/undo/*")
    for copy in folder.iterdir():
        if copy.name != "record.json":
            copy.unlink()
    before = tree(repository)
    with pytest.raises(ConfigError, match="damaged or missing"):
        person.remove(repository)
    assert tree(repository) == before


def test_without_the_record_our_entries_are_taken_out_all_the_same(
    repository: Path, person: Person
) -> None:
    before = tree(repository)
    person.install(repository)
    (record,) = (person.home / "state" / "harness").glob("*/undo/*/record.json")
    record.write_text("{")
    with pytest.raises(ConfigError, match="Move it away"):
        person.remove(repository)
    record.unlink()
    person.remove(repository)
    assert tree(repository) == before


def test_where_nothing_is_installed_there_is_nothing_to_remove(
    repository: Path, person: Person
) -> None:
    with pytest.raises(NotFoundError, match="Nothing of the harness"):
        person.remove(repository)


def test_the_harness_own_repository_is_not_taken_apart(person: Person) -> None:
    with pytest.raises(RefusedError, match="own repository"):
        person.remove(ROOT)
