"""`init` adds a status line where there is none, leaves a person's own, and takes ours out
again."""

import json
from pathlib import Path

import pytest

from harness.install.status_line import with_status_line, without_entries, without_status_line
from harness.rendering.claude_files import project_status_line
from tests.install.repository import Person
from tests.install.test_merge import PERSONS, merged

OURS = project_status_line("/usr/bin/python3")
THEIRS = {"type": "command", "command": "~/.claude/line.sh", "padding": 0}
SETTINGS = ".claude/settings.json"


def added(text: str) -> str:
    return with_status_line(text, OURS, "settings.json")


@pytest.mark.parametrize("text", PERSONS)
def test_it_is_added_once_and_taken_out_exactly(text: str) -> None:
    assert json.loads(added(text).removeprefix("\ufeff"))["statusLine"] == OURS
    assert added(added(text)) == added(text)
    assert without_status_line(added(text), "settings.json") == text
    assert without_entries(added(merged(text)), "settings.json") == text


def test_a_persons_own_stays_byte_for_byte() -> None:
    text = json.dumps({"statusLine": THEIRS, "model": "opus"}, indent=3)
    assert added(text) == text
    assert without_status_line(text, "settings.json") == text


def test_an_older_one_of_ours_is_replaced() -> None:
    older = {**OURS, "command": OURS["command"].replace("/usr/bin/python3", "/opt/python3")}
    del older["refreshInterval"]
    text = json.dumps({"statusLine": older, "model": "opus"})
    assert json.loads(added(text)) == {"statusLine": OURS, "model": "opus"}


def test_a_key_that_stands_twice_counts_as_json_readers_count_it() -> None:
    text = f'{{"statusLine": {json.dumps(THEIRS)}, "statusLine": {json.dumps(OURS)}}}'
    assert json.loads(without_status_line(text, "s"))["statusLine"] == THEIRS


def test_init_installs_it_and_remove_restores_the_file(repository: Path, person: Person) -> None:
    settings = repository / SETTINGS
    before = settings.read_bytes()
    done = person.install(repository)
    entry = json.loads(settings.read_text("utf-8"))["statusLine"]
    program = '"${CLAUDE_PROJECT_DIR}"/.claude/hooks/harness/run.py StatusLine'
    assert entry["command"].endswith(program)
    assert not [line for line in done.notes if "status line" in line]
    assert person.install(repository).changes == ()
    person.remove(repository)
    assert settings.read_bytes() == before


def test_init_leaves_a_persons_own_and_says_how_to_see_ours(
    repository: Path, person: Person
) -> None:
    settings = repository / SETTINGS
    settings.parent.mkdir(exist_ok=True)
    text = json.dumps({"statusLine": THEIRS})
    settings.write_text(text, "utf-8")
    done = person.install(repository)
    assert json.loads(settings.read_text("utf-8"))["statusLine"] == THEIRS
    (note,) = [line for line in done.notes if "status line" in line]
    assert "run.py StatusLine" in note
    person.remove(repository)
    assert settings.read_text("utf-8") == text
