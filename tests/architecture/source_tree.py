"""The package as parsed source: modules, what they import, what they define."""

import ast
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "harness"
VENDORED = ("harness.guard.policy", "harness.guard.hooks")
"""Copied into projects: they import nothing of ours but one another."""


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    typing_only: bool


@dataclass(frozen=True)
class Module:
    name: str
    """Dotted, e.g. harness.ledger.chain."""
    path: Path
    tree: ast.Module
    text: str

    @property
    def room(self) -> str:
        """The package below harness/, or the module's own name when it stands directly in it."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def shown(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        text = path.read_text("utf-8")
        found.append(Module(".".join(parts), path, ast.parse(text, str(path)), text))
    return tuple(found)


@cache
def imports(module: Module) -> tuple[Import, ...]:
    """Every import statement, wherever it stands, as absolute names; `from a import b` is a.b when
    that is a module."""
    found: list[Import] = []
    typing_only = {
        id(node)
        for block in ast.walk(module.tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found += [
                Import(alias.name, node.lineno, id(node) in typing_only) for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            known = {other.name for other in modules()}
            inner = [name for alias in node.names if (name := f"{base}.{alias.name}") in known]
            names = inner if len(inner) == len(node.names) else [base, *inner]
            found += [Import(name, node.lineno, id(node) in typing_only) for name in names]
    return tuple(found)


def _base(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    package = parts if module.is_package else parts[:-1]
    package = package[: len(package) - (node.level - 1)]
    return ".".join([*package, *([node.module] if node.module else [])])


def foreign(module: Module) -> dict[str, int]:
    """Top-level names of imported packages that are neither ours nor of the standard library ->
    line."""
    return {
        top: item.line
        for item in imports(module)
        if (top := item.module.split(".")[0]) not in sys.stdlib_module_names
        and top not in ("harness", "")
    }
