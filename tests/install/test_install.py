"""`harness init` in every kind of repository: adds what is wanted, loses nothing, and finishes what
was cut."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.contract.installation import AGENTS, COMMANDS, VENDORED
from harness.contract.roles import ROLES
from harness.contract.slash_commands import SLASH_COMMANDS
from harness.errors import RefusedError, UsageError
from harness.guard.hooks.table import EVENTS
from harness.install import file_changes as change_files
from harness.install.manifest import read_manifest
from harness.rendering.render import expected
from harness.rendering.vendored_hooks import vendored_files
from tests.install.repository import Person, git, sklearn_like, tree

SETTINGS = ".claude/settings.json"


def guard(root: Path, target: Path, *, cwd: Path | None = None) -> int:
    """The exit status of the installed guard, started as the settings say, for a write to
    `target`."""
    entry = json.loads((root / SETTINGS).read_text("utf-8"))["hooks"]["PreToolUse"][-1]["hooks"][0]
    words = [
        entry["command"],
        *(word.replace("${CLAUDE_PROJECT_DIR}", str(root)) for word in entry["args"]),
    ]
    call = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(cwd or root),
        "tool_name": "Write",
        "tool_input": {"file_path": str(target), "content": "x"},
    }
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(root.parent / "home")}
    done = subprocess.run(
        words,
        input=json.dumps(call),
        cwd=cwd or root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode


def whole(root: Path) -> None:
    """That everything is there, and that the guard guards."""
    assert {path.name for path in (root / AGENTS).glob("*.md")} >= {
        f"{role.name}.md" for role in ROLES
    }
    assert {path.name for path in (root / COMMANDS).glob("*.md")} == {
        f"{item.name}.md" for item in SLASH_COMMANDS
    }
    for name, data in vendored_files().items():
        assert (root / VENDORED / name).read_bytes() == data
    manifest = read_manifest(root)
    assert manifest is not None
    assert {
        event: found[-1:]
        for event, found in json.loads((root / SETTINGS).read_text())["hooks"].items()
    } == {**manifest.settings}
    assert set(manifest.settings) == {event.name for event in EVENTS}
    assert guard(root, root / SETTINGS) == 2
    assert guard(root, root / "notes.txt") == 0


def empty(base: Path) -> Path:
    return base / "empty"


def with_code(base: Path) -> Path:
    return sklearn_like(base / "repository")


def with_a_space(base: Path) -> Path:
    return sklearn_like(base / "my 'odd' répository")


def in_a_monorepo(base: Path) -> Path:
    root = sklearn_like(base / "monorepo") / "packages" / "model"
    root.mkdir(parents=True)
    return root


def behind_a_link(base: Path) -> Path:
    (base / "link").symlink_to(sklearn_like(base / "elsewhere"))
    return base / "link"


def in_a_worktree(base: Path) -> Path:
    git(
        sklearn_like(base / "main"),
        "worktree",
        "add",
        "--quiet",
        "-b",
        "other",
        str(base / "a worktree"),
    )
    return base / "a worktree"


KINDS: tuple[Callable[[Path], Path], ...] = (
    empty,
    with_code,
    with_a_space,
    in_a_monorepo,
    behind_a_link,
    in_a_worktree,
)
every_kind = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)


@every_kind
def test_any_repository(make: Callable[[Path], Path], tmp_path: Path, person: Person) -> None:
    root = make(tmp_path)
    before = tree(root) if root.exists() else {}
    shown = person.install(root, dry_run=True)
    assert (tree(root) if root.exists() else {}) == before, "a dry run writes nothing"
    assert not (person.home / "state").exists(), "nor outside"
    done = person.install(root)
    assert done.conflicts == ()
    assert [item.path for item in done.changes] == [item.path for item in shown.changes]
    whole(root.resolve())
    for path, (mode, data) in before.items():
        if path not in (SETTINGS, ".mcp.json"):
            assert tree(root)[path] == (mode, data)
    again = tree(root)
    assert person.install(root).changes == ()
    assert tree(root) == again
    removed = person.remove(root)
    assert removed.conflicts == ()
    assert tree(root) == before, "byte for byte, with permissions and empty folders"
    assert list((person.home / "state" / "harness").iterdir()) == []


def test_the_persons_settings_keep_every_key_order_and_permissions(
    repository: Path, person: Person
) -> None:
    person.install(repository)
    text = (repository / SETTINGS).read_bytes()
    value = json.loads(text)
    assert list(value) == ["permissions", "hooks", "unknown", "statusLine"], "ours is last"
    assert value["unknown"] == {"kept": [1, 2.5, 1e3]}
    assert b"2.50" in text
    assert value["hooks"]["PreToolUse"][0]["hooks"] == [
        {"type": "command", "command": "./check.sh"}
    ]
    assert text.count(b"\n") == text.count(b"\r\n")
    assert (repository / SETTINGS).stat().st_mode & 0o777 == 0o600
    assert set(json.loads((repository / ".mcp.json").read_text())["mcpServers"]) == {
        "files",
        "harness",
    }


@pytest.mark.parametrize("text", ['{"hooks": {},}', "// mine\n{}", "", '{"hooks": []}'])
def test_settings_that_claude_code_would_not_read_are_refused_and_nothing_changes(
    repository: Path, person: Person, text: str
) -> None:
    (repository / SETTINGS).write_text(text)
    before = tree(repository)
    with pytest.raises(UsageError) as refused:
        person.install(repository)
    assert refused.value.code == "settings_invalid"
    assert tree(repository) == before
    assert not (person.home / "state").exists()


def test_a_file_of_the_same_name_is_named_and_left(repository: Path, person: Person) -> None:
    (repository / AGENTS).mkdir()
    (repository / AGENTS / "oracle.md").write_text("mine\n")
    (repository / ".mcp.json").write_text('{"mcpServers": {"harness": {"command": "mine"}}}')
    before = tree(repository)
    done = person.install(repository)
    assert {item.path for item in done.conflicts} == {f"{AGENTS}/oracle.md", ".mcp.json"}
    assert {tree(repository)[item.path] == before[item.path] for item in done.conflicts} == {True}
    manifest = read_manifest(repository)
    assert manifest is not None
    assert f"{AGENTS}/oracle.md" not in manifest.rendered
    assert manifest.server is None
    assert {item.path for item in person.install(repository).conflicts} == {
        f"{AGENTS}/oracle.md",
        ".mcp.json",
    }
    person.remove(repository)
    assert tree(repository) == before


@pytest.mark.parametrize("link", [".claude", SETTINGS, ".mcp.json", f"{VENDORED}"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, person: Person, link: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (root / link).parent.mkdir(parents=True)
    target = outside / "file" if link.endswith(".json") else outside
    if target != outside:
        target.write_text("{}")
    (root / link).symlink_to(target)
    before, around = tree(root), tree(outside)
    with pytest.raises(RefusedError) as refused:
        person.install(root)
    assert refused.value.code == "link_in_place"
    assert (tree(root), tree(outside)) == (before, around)


def test_a_link_within_the_project_is_written_through_and_stays(
    tmp_path: Path, person: Person
) -> None:
    root = tmp_path / "root"
    (root / ".claude").mkdir(parents=True)
    (root / "settings").mkdir()
    (root / "settings" / "claude.json").write_text('{"model": "opus"}\n')
    (root / SETTINGS).symlink_to("../settings/claude.json")
    before = tree(root)
    person.install(root)
    assert (root / SETTINGS).is_symlink()
    assert json.loads((root / "settings" / "claude.json").read_text())["model"] == "opus"
    whole(root)
    person.remove(root)
    assert tree(root) == before


def test_a_link_to_nothing_is_refused(tmp_path: Path, person: Person) -> None:
    root = tmp_path / "r"
    root.mkdir()
    (root / ".claude").symlink_to("nowhere")
    with pytest.raises(RefusedError, match="a dangling link") as told:
        person.install(root)
    assert told.value.code == "path_taken"
    assert list(root.iterdir()) == [root / ".claude"]


@pytest.mark.parametrize("name", [SETTINGS, "plan.md", ".mcp.json"])
def test_a_pipe_is_refused(repository: Path, person: Person, name: str) -> None:
    (repository / name).unlink(missing_ok=True)
    os.mkfifo(repository / name)
    with pytest.raises(RefusedError, match="no ordinary file"):
        person.install(repository)
    assert not (repository / ".harness").exists()


def test_a_folder_whose_name_no_json_can_hold_is_refused(tmp_path: Path, person: Person) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff"))
    root.mkdir()
    with pytest.raises(RefusedError, match=r"x\\udcff is not UTF-8"):
        person.install(root)
    assert list(root.iterdir()) == []


class Cut(BaseException):
    """A process that ends in the middle."""


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the process die at the n-th file that an installation writes or deletes."""
    real_write, real_unlink = change_files.atomic_write, Path.unlink
    left = [0]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Cut

    def write(*given: Any, **more: Any) -> None:
        count()
        real_write(*given, **more)

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if ".claude" in path.parts:
            count()
        real_unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(change_files, "atomic_write", write)
    monkeypatch.setattr(Path, "unlink", unlink)

    def at(number: int) -> None:
        left[0] = number

    return at


def steady(found: dict[str, Any]) -> dict[str, Any]:
    """Without what names the project's random id, the place and the machine."""
    return {
        path: data
        for path, data in found.items()
        if path not in (".harness/config.toml", ".harness/policy.json")
    }


def more(*numbers: int) -> list[Any]:
    """Cases for `make proofs`."""
    return [pytest.param(number, marks=pytest.mark.slow) for number in numbers]


@pytest.mark.parametrize("at", [1, 4, 45, 63, *more(2, 3, 20, 60, 62, 64)])
def test_a_cut_installation_is_finished_by_the_next_and_can_be_taken_out(
    at: int, tmp_path: Path, person: Person, cutting: Callable[[int], None]
) -> None:
    root, other = sklearn_like(tmp_path / "one" / "r"), sklearn_like(tmp_path / "two" / "r")
    before = tree(root)
    person.install(other)
    cutting(at)
    with pytest.raises(Cut):
        person.install(root)
    cutting(0)
    assert tree(root) != before
    assert person.install(root).conflicts == ()
    assert steady(tree(root)) == steady(tree(other))
    whole(root)
    person.remove(root)
    assert tree(root) == before


@pytest.mark.parametrize("at", [1, 20, 66, *more(2, 3, 60, 64)])
def test_a_cut_removal_is_finished_by_the_next(
    at: int, repository: Path, person: Person, cutting: Callable[[int], None]
) -> None:
    before = tree(repository)
    person.install(repository)
    cutting(at)
    with pytest.raises(Cut):
        person.remove(repository)
    cutting(0)
    assert person.remove(repository).conflicts == ()
    assert tree(repository) == before


@pytest.mark.parametrize(
    ("line", "warned"), [(".claude/", True), (".claude/hooks", True), ("*.pyc", False)]
)
def test_a_repository_that_ignores_the_hooks_is_warned_of(
    repository: Path, person: Person, line: str, warned: bool
) -> None:
    (repository / ".gitignore").write_text(f"{line}\n")
    notes = person.install(repository, dry_run=True).notes
    assert any("git ignores .claude/" in note for note in notes) is warned


KILLED = """
import os, sys
from pathlib import Path
from harness.install.install import install
left = int(sys.argv[2])
def fsync(_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
os.fsync = fsync
install(Path(sys.argv[1]), None, os.environ, by="human:ada")
"""


def test_a_killed_installation_leaves_nothing_half_written(
    repository: Path, person: Person
) -> None:
    before = tree(repository)
    for at in (1, 12, 90):  # in config.toml, in the record, in the hooks
        words = [sys.executable, "-c", KILLED, str(repository), str(at)]
        assert (
            subprocess.run(
                words, env={**person.environment, "LANG": "C.UTF-8"}, timeout=120
            ).returncode
            == -9
        )
    left = [path for top in (repository, person.home) for path in top.rglob("*.tmp")]
    assert left
    person.install(repository)
    whole(repository)
    assert not [path for top in (repository, person.home) for path in top.rglob("*.tmp")]
    (repository / ".claude" / ".settings.json.abcdefgh.tmp").write_text("half")
    person.remove(repository)
    assert tree(repository) == before


def test_two_at_once_make_one_project(repository: Path, person: Person) -> None:
    program = (
        "import sys; from pathlib import Path; from harness.install.install import install;"
        "import os; install(Path(sys.argv[1]), None, os.environ, by='human:ada')"
    )
    words = [sys.executable, "-c", program, str(repository)]
    running = [
        subprocess.Popen(words, env={**person.environment, "LANG": "C.UTF-8"}) for _ in range(3)
    ]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    whole(repository)
    assert len(list((person.home / "state" / "harness").iterdir())) == 1
    assert person.install(repository).changes == ()


def test_an_installation_waits_for_the_one_before(repository: Path, person: Person) -> None:
    holder = os.open(repository, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    second = threading.Thread(target=person.install, args=(repository,))
    second.start()
    second.join(0.5)
    assert second.is_alive()
    assert not (repository / ".harness").exists()
    os.close(holder)
    second.join(60)
    whole(repository)


def test_what_cannot_be_written_is_named_and_the_next_call_goes_on(
    repository: Path, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = change_files.atomic_write

    def full(path: Path, *given: Any, **more: Any) -> None:
        if path.name == "run.py":
            raise OSError(28, "No space left on device")
        real(path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(change_files, "atomic_write", full)
        with pytest.raises(
            UsageError, match=r"run\.py cannot be written: No space left on device"
        ) as refused:
            person.install(repository)
    assert refused.value.code == "not_writable"
    assert "SessionEnd" not in (repository / SETTINGS).read_text(), (
        "hooks are switched on when all of them are there"
    )
    person.install(repository)
    whole(repository)


def test_in_the_harness_own_repository_files_are_rendered_and_nothing_is_vendored(
    tmp_path: Path, person: Person
) -> None:
    root = tmp_path / "harness"
    (root / "templates" / "agents").mkdir(parents=True)
    (root / "hooks").mkdir()
    done = person.install(root)
    assert done.interpreter is None
    assert {str(path) for path in expected(root)} | {
        ".harness/config.toml",
        ".harness/.gitignore",
        "plan.md",
    } == {item.path for item in done.changes}
    assert not (root / VENDORED).exists()
    assert person.install(root).changes == ()
    with pytest.raises(RefusedError, match="own repository"):
        person.remove(root)
