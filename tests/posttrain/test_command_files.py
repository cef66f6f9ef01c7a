"""The code hash covers what a command runs, however it is named."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import NotFoundError, RefusedError
from harness.posttrain.code_hashes import command_files
from harness.settings import Settings


def project(root: Path, *readable: Path) -> Settings:
    return Settings(
        root=root,
        state=root.parent / "state",
        project_id="p-1",
        interpreter=None,
        memory_dir=".harness/memory",
        readable=tuple(map(str, readable)),
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in {
        "train.py": "import helper",
        "helper.py": "",
        "unused.py": "",
        "run.sh": "python train.py",
        "pkg/__init__.py": "from pkg import early",
        "pkg/early.py": "",
        "pkg/__main__.py": "from pkg.loop import go\nimport helper\nimport other.deep",
        "pkg/loop.py": "from . import early",
        "pkg/unused.py": "",
        "other/__init__.py": "",
        "other/deep.py": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


PACKAGE = {"pkg/__init__.py", "pkg/early.py", "pkg/loop.py"}
TRAIN = {"train.py", "helper.py"}
CASES: dict[str, tuple[Callable[[Path], list[str]], set[str]]] = {
    "relative": (lambda root: ["python", "train.py"], TRAIN),
    "absolute": (lambda root: [sys.executable, str(root / "train.py")], TRAIN),
    "module": (lambda root: ["python", "-m", "train"], TRAIN),
    "package": (
        lambda root: ["python", "-m", "pkg"],
        PACKAGE | {"pkg/__main__.py", "helper.py", "other/__init__.py", "other/deep.py"},
    ),
    "module of a package": (lambda root: ["python", "-m", "pkg.loop"], PACKAGE),
    "installed launcher": (
        lambda root: ["python", "-m", "torch.distributed.run", "train.py"],
        TRAIN,
    ),
    "text": (lambda root: ["python", "-c", "import train, os\n" + "#" * 5000], TRAIN),
    "shell": (lambda root: ["sh", "-c", "cd . && python train.py"], TRAIN),
    "script": (lambda root: ["./run.sh", "--fast"], {"./run.sh"}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_command_runs(root: Path, case: str) -> None:
    words, names = CASES[case]
    assert set(command_files(words(root), project(root))) == names


def test_a_trainer_outside_of_the_project_counts_with_its_modules(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    for name, text in {"outside.py": "import beside", "beside.py": ""}.items():
        (tmp_path / "lib" / name).write_text(text)
    names = {str(tmp_path / "lib" / name) for name in ("outside.py", "beside.py")}
    words = [sys.executable, str(tmp_path / "lib/outside.py")]
    before = command_files(words, project(root, tmp_path / "lib"))
    assert set(before) == names
    (tmp_path / "lib/beside.py").write_text("x = 1")
    assert command_files(words, project(root, tmp_path / "lib")) != before


def test_a_program_alone_is_hashed_itself(root: Path) -> None:
    assert set(command_files(["sh", "-c", "x" * 5000 + " ("], project(root))) == {"sh"}


def test_programs_of_the_system_and_of_the_interpreter_are_hashed(root: Path) -> None:
    own = str(Path(sys.prefix) / "pyvenv.cfg")
    for word in ("/usr/bin/env", own):
        assert set(command_files(["sh", "-c", f"{word} train.sh"], project(root))) == {word}


@pytest.mark.parametrize(
    "words", [["python", "gone.py"], ["python", "-m", "pkg.gone"], ["gone"], []]
)
def test_one_that_is_not_there_is_named(root: Path, words: list[str]) -> None:
    with pytest.raises(NotFoundError, match=r"gone|nothing"):
        command_files(words, project(root))


@pytest.mark.parametrize("way", ["word", "script", "shell", "link", "module"])
def test_no_hash_is_given_of_what_only_the_judge_reads(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    vault = tmp_path / "state" / "harness" / "project-1" / "vault"
    vault.mkdir(parents=True)
    for name in ("labels.csv", "labels.py"):
        (vault / name).write_text("1,0\n")
    (root / "linked.py").symlink_to(vault / "labels.csv")
    words = {
        "word": ["python", "train.py", str(vault / "labels.csv")],
        "script": ["python", str(vault / "labels.py")],
        "shell": ["sh", "-c", f"./train.py {vault}/labels.csv"],
        "link": ["python", "linked.py"],
        "module": ["python", "-m", "linked"],
    }
    with pytest.raises(RefusedError):
        command_files(words[way], project(root, tmp_path))


@pytest.mark.parametrize("way", ["word", "script", "shell", "link", "module", "text", "imported"])
def test_no_hash_is_given_of_what_no_sandbox_shows(root: Path, tmp_path: Path, way: str) -> None:
    secret = tmp_path / "home" / "netrc"
    secret.parent.mkdir()
    for path in (secret, secret.with_suffix(".py")):
        path.write_text("password = 1\n")
    (root / "linked.py").symlink_to(secret)
    (root / "uses.py").write_text("import linked")
    words = {
        "word": ["python", "train.py", str(secret)],
        "script": ["python", str(secret.with_suffix(".py"))],
        "shell": ["sh", "-c", f"./train.py {secret}"],
        "link": ["python", "linked.py"],
        "module": ["python", "-m", "linked"],
        "text": ["python", "-c", "import linked"],
        "imported": ["python", "uses.py"],
    }
    with pytest.raises(RefusedError, match="outside of the project") as refused:
        command_files(words[way], project(root))
    assert "readable" in refused.value.hint
    assert command_files(words[way], project(root, secret.parent)), "what is declared may be read"


def test_the_files_of_a_workspace_are_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    workspace = tmp_path / "harness" / "project-1" / "workspaces" / "one"
    workspace.mkdir(parents=True)
    (workspace / "train.py").write_text("")
    (tmp_path / "project").mkdir()
    found = command_files(["python", "train.py"], project(tmp_path / "project"), workspace)
    assert set(found) == {"train.py"}
