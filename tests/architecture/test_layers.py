"""Imports point down only, libraries stay in their rooms, and nothing imports in a circle."""

import subprocess
import sys
import tomllib
from fnmatch import fnmatch

import pytest
from source_tree import ROOT, VENDORED, Module, foreign, imports, modules

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
(ORDER,) = [contract for contract in CONTRACTS["contracts"] if contract["id"] == "rooms"]
LAYERS = tuple(tuple(row.split(" | ")) for row in ORDER["layers"])
"""From the top down; a room imports its own modules and those of lower rows. `lint-imports` reads
the same table; here each wrong import is named with its line."""
RANK = {room: len(LAYERS) - index for index, row in enumerate(LAYERS) for room in row}
LEFT_OUT = [tuple(entry.split(" -> ")) for entry in ORDER["ignore_imports"]]
"""(importer, imported) as patterns: imports within one layer that are allowed."""
RANK["__main__"] = len(LAYERS) + 1
FILTER = "harness.domain.plain_text"
"""The one module that is copied into projects beside the vendored ones."""
MAY_USE_VENDORED = {
    "harness.guard.policy": {"guard", "rendering", "driver", "audit", "doctor", "judge"},
    "harness.guard.hooks": {"guard", "rendering", "doctor", "install"},
}
ONLY_IN: dict[str, set[str]] = {
    "jinja2": {"rendering", "projections"},
    "sqlalchemy": {"ledger"},
    "psycopg": {"ledger"},
    "fsspec": {"artifacts"},
    "botocore": {"artifacts", "model_gateway"},
    "claude_agent_sdk": {"driver"},
    "mcp": {"driver"},
    "anyio": {"driver"},
    "starlette": {"model_gateway", "views"},
    "uvicorn": {"model_gateway", "views"},
    "httpx": {"model_gateway", "teachers"},
    "click": {"cli"},
    "rich": {"views", "cli"},
    "scipy": set(),
    "pydantic": {"plans", "model_gateway"},
    "mnist1d": {"demo"},
    "tree_sitter": {"guard"},
    "tree_sitter_bash": {"guard"},
    "jsonschema": {"driver"},
    "torch": {"training"},
    "transformers": {"training"},
    "lightning": {"training"},
    "pytorch_lightning": {"training"},
    "optuna": {"training"},
    "trl": {"training"},
    "peft": {"training"},
    "datasets": {"training"},
    "sklearn": {"training"},
}
RUN_LOGGER_MAY_USE = {
    "harness.domain.plain_text",
    "harness.files",
    "harness.errors",
    "harness.clock",
    "harness.domain",
    "harness.domain.training_status",
    "harness.domain.variables",
}
NOT_AT_START = (
    "torch",
    "claude_agent_sdk",
    "mcp",
    "sqlalchemy",
    "pydantic",
    "numpy",
    "scipy",
    "jinja2",
    "starlette",
)
STANDARD_LIBRARY_ONLY = {
    "run_logger",
    "domain",
    "contract",
    "errors",
    "files",
    "clock",
    "settings",
}


def test_every_room_has_a_layer():
    assert {module.room for module in modules()} - {""} == set(RANK)


def test_imports_point_down():
    wrong = [
        f"{module.shown}:{item.line} imports {item.module}"
        for module in modules()
        for item in imports(module)
        if not may_import(module, item.module)
    ]
    assert wrong == []


def test_nobody_imports_the_torch_island():
    wrong = [
        f"{module.shown}:{item.line} imports {item.module}"
        for module in modules()
        if module.room != "training"
        for item in imports(module)
        if item.module.startswith("harness.training")
    ]
    assert wrong == []


def may_import(module: Module, name: str) -> bool:
    """Whether `module` may import the module `name`; libraries have a test of their own."""
    parts = name.split(".")
    if parts[0] != "harness" or len(parts) < 2:
        return True
    if module.name.startswith(VENDORED):
        return name.startswith(VENDORED) or name == FILTER
    for vendored, rooms in MAY_USE_VENDORED.items():
        if name.startswith(vendored):
            return module.room in rooms
    if any(fnmatch(module.name, above) and fnmatch(name, below) for above, below in LEFT_OUT):
        return True
    return parts[1] == module.room or RANK[parts[1]] < RANK[module.room]


def test_libraries_stay_in_their_rooms():
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in modules()
        for name, line in foreign(module).items()
        if name in ONLY_IN and module.room not in ONLY_IN[name]
    ]
    assert wrong == []


def test_standard_library_rooms_use_nothing_else():
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in modules()
        if module.room in STANDARD_LIBRARY_ONLY or module.name.startswith((*VENDORED, FILTER))
        for name, line in foreign(module).items()
    ]
    assert wrong == []


def test_the_run_logger_uses_little_of_ours():
    wrong = [
        f"{module.shown}:{item.line} imports {item.module}"
        for module in modules()
        if module.room == "run_logger"
        for item in imports(module)
        if item.module.startswith("harness.")
        and not item.module.startswith("harness.run_logger")
        and item.module not in RUN_LOGGER_MAY_USE
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others():
    graph = {
        module.name: (
            {item.module for item in imports(module) if not item.typing_only}
            & {m.name for m in modules()}
        )
        for module in modules()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for other in sorted(graph[name] - {name}):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize(
    "name",
    [
        "harness.cli.main",
        "harness.guard.policy.decide",
        "harness.guard.policy.receipt",
        "harness.run_logger",
    ],
)
def test_start_up_pulls_no_heavy_library(name: str):
    program = f"import sys, {name}; print([m for m in {NOT_AT_START!r} if m in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "[]"


def test_policy_pulls_nothing_of_ours():
    program = (
        "import sys, harness.guard.policy.decide, harness.guard.policy.receipt;"
        " print(*sorted(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    ours = {name for name in ended.stdout.split() if name.split(".")[0] == "harness"}
    outside = {name for name in ours if not name.startswith("harness.guard.policy")}
    assert outside == {"harness", "harness.guard"}
