"""The small repositories that `harness init --example NAME` copies."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from harness.contract.artifacts import BY_NAME, INNER_PLAN
from harness.contract.installation import MCP_SERVERS
from harness.errors import NotFoundError, RefusedError
from harness.plans.scaffold import PLAN_FORM

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
"""A link to `examples/` in a checkout; a folder in an installed package."""
_SAYS = "example.json"
_BESIDE = frozenset({".git", ".gitignore", "README.md", "LICENSE"})
"""What a folder may hold that counts as empty: what a new repository begins with."""
_INSTALLED = frozenset({".claude", ".harness", MCP_SERVERS, BY_NAME["plan"].path})


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
    project: str = "."
    """The folder in it that becomes the project."""


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
    """Its files into `root`, which is empty or new, or where a call stopped that had copied them.
    Raises RefusedError (folder_not_empty)."""
    found = root.iterdir() if root.is_dir() else ()
    there = sorted(path.name for path in found if path.name not in _BESIDE)
    files = dict(_files(chosen))
    if there and _left_over(chosen, root, files, there):
        return  # Its table may be split already: it does not come back.
    if there:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise RefusedError(
            f"{root} is not empty: {', '.join(there[:3])}{more}.",
            hint="Make an empty folder for the example, and call it there.",
            code="folder_not_empty",
        )
    for name, path in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copyfile(path, target)


def _files(chosen: Example) -> Iterator[tuple[Path, Path]]:
    """(its name below the example, the file)."""
    for path in sorted((EXAMPLES / chosen.name).rglob("*")):
        name = path.relative_to(EXAMPLES / chosen.name)
        if path.is_file() and name.name != _SAYS and "__pycache__" not in name.parts:
            yield name, path


def _left_over(
    chosen: Example, root: Path, files: Mapping[Path, Path], there: Sequence[str]
) -> bool:
    """Whether `root` holds the example as it is, and beside it what `harness init` writes before
    the plan."""
    known = {name.parts[0] for name in files} | _INSTALLED
    if not known.issuperset(there):
        return False
    for plan in (BY_NAME["plan"].path, INNER_PLAN):
        path = root / chosen.project / plan
        if path.is_file() and path.read_bytes() != PLAN_FORM.encode():
            return False
    for name, path in files.items():
        target = root / name
        split = name == Path(chosen.data) and not target.exists()
        same = target.is_file() and target.read_bytes() == path.read_bytes()
        if not (same or split or name.name in _BESIDE):
            return False
    return True
