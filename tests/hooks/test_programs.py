"""The programs and their library: Python 3.9, the standard library alone, one program for every event of
the table."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hook_project import REPOSITORY, HookProject

from harness.guard.hooks.table import BY_NAME, GUARD, PROGRAM

ROOMS = ("harness/guard/policy", "harness/guard/hooks", "hooks")
MODULES = sorted(path for room in ROOMS for path in (REPOSITORY / room).glob("*.py"))
ALLOWED = {"__future__", "os", "sys", "stat", "time"}
"""Imported at each start."""
WHERE_NEEDED = {"re", "json", "fnmatch", "unicodedata", "shutil", "importlib.machinery"}
WITH_A_FALLBACK = {
    "_json": "json",
    "_signal": "signal",
    "_sha256": "hashlib",
    "_socket": "socket",
}
"""Private modules, each tried first because it starts sooner."""


def pythons() -> list[str]:
    """This interpreter and every supported one that is on the PATH or beside this one."""
    found = [sys.executable]
    for version in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14"):
        places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        on_path = shutil.which(f"python{version}")
        places += [Path(on_path)] if on_path and "shims" not in on_path else []
        found += [str(path) for path in places[:1]]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_each_module_is_python_3_9_and_imports_the_standard_library_alone(path: Path):
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
    annotated = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    future = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    assert future or not annotated or path.parent.name == "hooks", (
        "X | None in an annotation needs it in 3.9"
    )
    for node in runtime(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module)]
        for name in names:
            vendored = (
                "harness.guard.policy.",
                "harness.guard.hooks.",
                "harness.domain.plain_text",
            )
            ours = name.startswith(vendored) and not path.match("harness/guard/policy/*")
            known = ALLOWED | WHERE_NEEDED | set(WITH_A_FALLBACK) | set(WITH_A_FALLBACK.values())
            assert ours or name in known, f"{path.name}:{node.lineno} imports {name}"
        assert not isinstance(node, ast.Match), (
            f"{path.name}:{node.lineno}: match needs Python 3.10"
        )
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "zip"
        ):
            assert not node.keywords, f"{path.name}:{node.lineno}: zip(strict=) needs Python 3.10"


def runtime(tree: ast.AST):
    """All nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            yield node
            yield from runtime(node)


def test_the_program_of_the_hooks_stands_beside_the_tool_server():
    assert {path.name for path in (REPOSITORY / "hooks").glob("*.py")} == {PROGRAM, "mcp.py"}


@pytest.mark.parametrize("event", BY_NAME.values(), ids=lambda event: event.name)
def test_the_program_knows_each_event_and_what_its_failure_means(project: HookProject, event):
    """Told of its failure without the library, whose table has the same."""
    tree = ast.parse((REPOSITORY / "hooks" / PROGRAM).read_text("utf-8"))
    written = next(
        ast.literal_eval(node.value) for node in tree.body if named(node) == "ON_FAILURE"
    )
    assert [*written] == [*BY_NAME]
    shutil.rmtree(project.programs / "lib" / "harness")
    answer = project.event(event.name)
    assert answer.code == written[event.name] == (2 if event.kind == GUARD else 0)
    assert f"the {event.name} hook cannot run" in answer.errors
    assert answer.output == ""


@pytest.mark.parametrize(
    "words",
    [[], ["PreToolUs"], ["pretooluse"], [""], ["Stop", "Stop"], ["PreToolUse", "x"]],
    ids=repr,
)
@pytest.mark.parametrize("library", [True, False])
def test_without_a_known_event_it_fails_closed(project: HookProject, words: list[str], library):
    if not library:
        shutil.rmtree(project.programs / "lib" / "harness")
    answer = project.program([PROGRAM, *words], b"{}")
    assert (answer.code, answer.output) == (2, "")
    assert "hook cannot run" in answer.errors
    assert "expected one hook event" in answer.errors
    assert "Traceback" not in answer.errors


def test_an_event_of_an_older_version_that_decided_nothing_ends_silently(project: HookProject):
    """A session that was open during the update still calls it; 2 would block its compaction."""
    shutil.rmtree(project.programs / "lib" / "harness")
    answer = project.program([PROGRAM, "PreCompact"], b"{}")
    assert (answer.code, answer.output, answer.errors) == (0, "", "")


def test_the_hooks_and_the_tool_server_find_their_library_in_the_same_way():
    hooks, server = (
        ast.parse((REPOSITORY / "hooks" / name).read_text("utf-8")) for name in (PROGRAM, "mcp.py")
    )
    ours, other = (
        next(node for node in tree.body if named(node) == "start") for tree in (hooks, server)
    )
    assert [ast.dump(node) for node in ours.body[:6]] == [
        ast.dump(node) for node in other.body[:6]
    ]


def named(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "")
    return getattr(node, "name", "")


@pytest.mark.parametrize("python", pythons())
def test_each_supported_python_gives_the_same_answers(project: HookProject, python: str):
    commands = {
        "rm plan.md": 2,
        "ls": 0,
        'python -c \'open("plan.md", "w")\'': 2,
        "rm p[l]an.m?": 2,
        "rm ÄÖ": 0,
    }
    for command, expected in commands.items():
        call = {
            "session_id": "s-1",
            "cwd": str(project.root),
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        ended = subprocess.run(
            [python, "-I", "-S", str(project.programs / "run.py"), "PreToolUse"],
            input=json.dumps(call).encode(),
            capture_output=True,
            env=project.environment,
            timeout=60,
        )
        assert ended.returncode == expected, ended.stderr
        assert bool(ended.stderr) == bool(ended.stdout) == bool(expected)
    assert len(project.receipts()) == len(commands)


def test_a_guard_starts_without_what_is_slow_to_import(project: HookProject):
    """Neither the json package nor what it pulls; Bash alone brings the modules that read
    commands."""
    program = (
        "import os, sys\nend = os._exit\ndef leave(code):\n    print(*sorted(sys.modules),"
        " file=sys.__stdout__, flush=True)\n    end(code)\nos._exit = leave\npath ="
        " sys.argv.pop(1)\nexec(compile(open(path).read(), path, 'exec'), {'__name__': '__main__',"
        " '__file__': path})\n"
    )
    loaded = {}
    for tool, given in (
        ("Write", {"file_path": "model.py"}),
        ("Bash", {"command": "git status && rm -f x | tail"}),
    ):
        call = {
            "session_id": "s-1",
            "cwd": str(project.root),
            "tool_name": tool,
            "tool_input": given,
        }
        ended = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                program,
                str(project.programs / "run.py"),
                "PreToolUse",
            ],
            input=json.dumps(call).encode(),
            capture_output=True,
            env=project.environment,
            timeout=60,
            check=True,
        )
        loaded[tool] = set(ended.stdout.decode().split())
        assert not loaded[tool] & {
            "re",
            "json",
            "typing",
            "collections",
            "enum",
            "functools",
            "signal",
            "pathlib",
        }
    assert "harness.guard.policy.shell_reader" in loaded["Bash"] - loaded["Write"]
