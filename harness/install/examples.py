"""The small repositories that `harness init --example NAME` copies."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson

from harness.errors import NotFoundError, RefusedError

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
"""A link to `examples/` in a checkout; a folder in an installed package."""
_SAYS = "example.json"
_BESIDE = frozenset({".git", ".gitignore", "README.md", "LICENSE"})
"""What a folder may hold that counts as empty: what a new repository begins with."""


@dataclass(frozen=True, kw_only=True)
class Example:
    name: str
    about: str
    data: str
    """Its table, relative."""
    label: str
    metric: str
    needs: tuple[str, ...]
    """Modules that its programs import."""


def examples() -> list[Example]:
    """All, by name."""
    return [_read(path) for path in sorted(EXAMPLES.glob(f"*/{_SAYS}"))]


def example(name: str) -> Example:
    """Raises NotFoundError (no_example) with all names."""
    known = {one.name: one for one in examples()}
    if name not in known:
        listed = "; ".join(f"{one.name} ({one.about})" for one in known.values())
        raise NotFoundError(
            f"There is no example {name!r}; there are {listed}.",
            hint="E.g. `harness init --example sklearn` in an empty folder.",
            code="no_example",
        )
    return known[name]


def _read(path: Path) -> Example:
    says = orjson.loads(path.read_bytes())
    return Example(name=path.parent.name, **{**says, "needs": tuple(says["needs"])})


def copy_example(chosen: Example, root: Path) -> None:
    """Its files into `root`, which is empty or new. Raises RefusedError (folder_not_empty)."""
    root.mkdir(parents=True, exist_ok=True)
    there = sorted(path.name for path in root.iterdir() if path.name not in _BESIDE)
    if there:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise RefusedError(
            f"{root} is not empty: {', '.join(there[:3])}{more}.",
            hint="Make an empty folder for the example, and call it there.",
            code="folder_not_empty",
        )
    for path in sorted((EXAMPLES / chosen.name).rglob("*")):
        name = path.relative_to(EXAMPLES / chosen.name)
        if path.is_dir() or name.name == _SAYS or "__pycache__" in name.parts:
            continue
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(path, target)
