"""A scorer frozen with everything local that it imports: later edits change no score."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from harness.artifacts.content import MAX_TEXT_BYTES, decode, read_bytes
from harness.artifacts.objects import store_bytes
from harness.domain.findings import Finding
from harness.domain.records import Objective
from harness.errors import HarnessError, NotFoundError, PlanError, UsageError
from harness.files import canonical_json, sha256_bytes
from harness.plans.parse import Plan
from harness.plans.scorer_packages import (
    ScorerEnvironment,
    place_of,
    require_environment,
    standing,
)


@dataclass(frozen=True, kw_only=True)
class Closure:
    """A script and the modules of its folder that it imports, directly or not."""

    entry: str
    """Relative to the project's root, as all paths here."""
    sources: dict[str, bytes]
    foreign: tuple[str, ...]
    """Top-level modules that are neither local nor of the standard library."""
    packages: tuple[str, ...] = ()
    """That the plan names for it."""
    environment: ScorerEnvironment | None = None
    """Where they are installed."""

    @property
    def ready(self) -> bool:
        """Whether it can run: what the plan names for it is installed."""
        return not self.packages or self.environment is not None


ScorerProbe = Callable[[Closure, Objective, NDArray[Any]], list[HarnessError]]
"""Tries a script on training labels, shape (n,): what is wrong with it."""


def import_closure(root: Path, script: str, *, package: bool = False) -> Closure:
    """Follow `import` statements from `script` through the modules in its folder; with `package`
    through those of its package, directly below `root`. Raises PlanError naming file and line."""
    folder = root if package else (root / script).parent
    own = Path(script).parts[0]
    sources: dict[str, bytes] = {}
    foreign: set[str] = set()
    waiting = [root / script]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name in sources:
            continue
        sources[name] = _source(path, name)
        for module, level in _imports(sources[name], name):
            top = module.partition(".")[0]
            local = level > 0 or not package or top == own
            files = list(_resolve(folder, path, module, level)) if local else []
            waiting += files
            if not files and level == 0 and top not in sys.stdlib_module_names:
                foreign.add(top)
    return Closure(
        entry=script, sources=dict(sorted(sources.items())), foreign=tuple(sorted(foreign))
    )


def with_packages(
    closure: Closure, scorers: Path, packages: tuple[str, ...], person: Mapping[str, str] | None
) -> Closure:
    """`person`: the environment variables of whom they are installed for where they are not; None
    installs nothing. Raises PlanError (scorer_packages)."""
    if person is None:
        there = standing(place_of(scorers, packages))
    else:
        there = require_environment(scorers, packages, person)
    return replace(closure, packages=packages, environment=there)


def not_tried(closure: Closure) -> Finding:
    """Of a script that was not probed."""
    why, who = (
        ("without a sandbox a script that nobody approved yet runs for a person only", "check")
        if closure.ready
        else ("what oracle.packages names is installed at the approval", "approve")
    )
    return Finding(
        "scorer_not_probed",
        f"{closure.entry} was not tried: {why}.",
        f"A person runs `harness plan {who}`; approval tries it in any case.",
        {"path": closure.entry},
    )


def freeze_scorer(
    root: Path, plan: Plan, objects: Path, environment: ScorerEnvironment | None = None
) -> dict[str, object]:
    """Keep the plan's scorer in `objects`; returns {name, sha256, files: {path: sha256}, entry},
    with packages also environment: {folder, sha256}. A built-in scorer has no files and the entry
    None."""
    script = plan.scorer_script
    if script is None:
        return describe(plan.oracle.scorer, None, {})
    closure = import_closure(root, script)
    files = {name: store_bytes(data, objects) for name, data in closure.sources.items()}
    if environment is None:
        return describe(script, script, files)
    store_bytes(environment.text.encode(), objects)
    return describe(script, script, files, environment=environment.plain())


def describe(
    name: str, entry: str | None, files: dict[str, str], **more: dict[str, str]
) -> dict[str, object]:
    content = {"name": name, "entry": entry, "files": files, **more}
    return {"sha256": sha256_bytes(canonical_json(content)), **content}


def scorer_warnings(closure: Closure) -> list[Finding]:
    """What a frozen scorer will miss when it runs."""
    if not closure.foreign or closure.packages:
        return []
    return [
        Finding(
            "scorer_imports_missing",
            f"{closure.entry} imports {', '.join(closure.foreign)}; the frozen scorer runs with the"
            " standard library only.",
            "Name them in oracle.packages, each with its version, or use a built-in scorer.",
            {"modules": list(closure.foreign)},
        )
    ]


def _source(path: Path, name: str) -> bytes:
    try:
        return read_bytes(path, limit=MAX_TEXT_BYTES)
    except NotFoundError as error:
        raise PlanError(
            f"The scorer {name} does not exist.",
            hint="Write it, or name a built-in scorer in oracle.scorer.",
        ) from error


def _imports(source: bytes, name: str) -> Iterator[tuple[str, int]]:
    """(dotted module, level) of every import; `from a import b` gives `a` and `a.b`: b may be a
    module."""
    try:
        tree = ast.parse(decode(source, where=name), filename=name)
    except SyntaxError as error:
        raise PlanError(
            f"{name}:{error.lineno}: this is not Python: {error.msg}.", hint="Correct that line."
        ) from error
    except (UsageError, ValueError, RecursionError) as error:
        raise PlanError(
            f"{name}: this is not Python source: {error}.", hint="Save it as UTF-8 Python."
        ) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, 0
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module:
                yield module, node.level
            for alias in node.names:
                yield f"{module}.{alias.name}".lstrip("."), node.level


def _resolve(folder: Path, importer: Path, module: str, level: int) -> Iterator[Path]:
    """The files in the script's folder that importing `module` runs, `__init__.py` included."""
    base = folder if level == 0 else importer.parent
    for _ in range(level - 1):
        base = base.parent
    if not base.is_relative_to(folder):
        return
    for part in module.split("."):
        package, single = base / part / "__init__.py", base / f"{part}.py"
        if package.is_file():
            yield package
        elif single.is_file():
            yield single
            return
        elif not (base / part).is_dir():
            return
        base = base / part
