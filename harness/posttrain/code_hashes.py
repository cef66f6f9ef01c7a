"""Hashes of the code that trains and scores: the files that a command runs, with all local modules
that they import. docs/training-programs.md defines them, so any trainer can compute the same."""

import ast
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.domain.commands import found
from harness.errors import NotFoundError, RefusedError
from harness.files import canonical_json, sha256_bytes
from harness.plans.scorer import Closure, import_closure
from harness.posttrain.vocabulary import EVALUATORS, Backend
from harness.settings import state_home

_PACKAGE = Path(__file__).resolve().parents[1]


def code_hash(backend: Backend, command: Sequence[str] | None, root: Path) -> str:
    """Hash of the trainer and all local modules that it imports, directly or not. Raises
    NotFoundError (trainer_missing), or PlanError for what is not Python."""
    if backend is Backend.DRY_RUN:
        files = {"dry_run.py": hash_file(Path(__file__).with_name("dry_run.py"))}
    elif backend is Backend.COMMAND:
        files = command_files(command or (), root)
    else:
        files = _of_package(backend.module)
    return sha256_bytes(canonical_json(sorted(files.items())))


def builtin_hash(evaluator: str) -> str:
    """As `code_hash`, of an evaluator of the package."""
    return sha256_bytes(canonical_json(sorted(_of_package(f"{EVALUATORS}.{evaluator}").items())))


def _of_package(module: str) -> dict[str, str]:
    script = f"{module.replace('.', '/')}.py"
    if not (_PACKAGE.parent / script).is_file():
        raise missing(script)
    return closure_hashes(_PACKAGE.parent, script, package=True)


def command_files(command: Sequence[str], root: Path) -> dict[str, str]:
    """File name -> SHA-256 of every word that is a file, of a module after `-m`, and of what the
    text after `-c` imports or calls. Where there is none of these: of the program itself.

    A file of the project is named relative to `root`. Interpreters called python and installed
    modules do not count. Raises NotFoundError (trainer_missing), PlanError.
    """
    files = _of_words(command, root)
    # A compiled program, say: without its own bytes the hash would be that of nothing.
    if not files:
        program = found(command[0]) if command else None
        if program is None:
            raise missing(command[0] if command else "(nothing)")
        files[command[0]] = _hash(Path(program), root)
    return files


def closure_hashes(root: Path, script: str, *, package: bool = False) -> dict[str, str]:
    """Hashes of the script and of the modules that it imports from its folder or its package."""
    return _hashes(import_closure(root, Path(script).as_posix(), package=package), root)


def missing(name: str) -> NotFoundError:
    return NotFoundError(
        f"The program {name} does not exist.",
        hint="Write it, or correct the command.",
        code="trainer_missing",
    )


def _of_words(command: Sequence[str], root: Path) -> dict[str, str]:
    files: dict[str, str] = {}
    for place, word in enumerate(command):
        before = command[place - 1] if place else ""
        if before == "-c":
            files |= _of_text(word, root)
        elif before == "-m":
            files |= _of_module(word, root)
        elif place or not _is_python(word):
            files |= _of_word(word, root)
    return files


def _is_python(word: str) -> bool:
    return os.path.isabs(word) and Path(word).name.startswith("python")


def _of_word(word: str, root: Path) -> dict[str, str]:
    path, inside = _path_of(word, root)
    if word.endswith(".py") and path is None and inside:
        raise missing(word)
    if path is None:
        return {}
    if not word.endswith(".py"):
        return {word: _hash(path, root)}
    if inside:
        return closure_hashes(root, _relative(path, root))
    _require_readable(path, root)
    folder = path.parent
    return {
        str(folder / name): digest for name, digest in closure_hashes(folder, path.name).items()
    }


def _path_of(word: str, root: Path) -> tuple[Path | None, bool]:
    """(the file that the word names, whether the word leads into the project)."""
    try:
        path = root / word
        return path if path.is_file() else None, path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):  # text too long for a file name, or with a NUL
        return None, False


def _relative(path: Path, root: Path) -> str:
    # Without following links first: a link inside the project keeps the name that was written.
    plain = Path(os.path.normpath(path))
    if plain.is_relative_to(root):
        return plain.relative_to(root).as_posix()
    return path.resolve().relative_to(root.resolve()).as_posix()


def _of_module(name: str, root: Path) -> dict[str, str]:
    """As `python -m` finds it from the project's root: a module, or a package's `__main__`."""
    base = name.replace(".", "/")
    script = next(
        (name for name in (f"{base}.py", f"{base}/__main__.py") if (root / name).is_file()), None
    )
    top = base.partition("/")[0]
    if script is None:
        if (root / top).is_dir() or (root / f"{top}.py").is_file():
            raise missing(f"-m {name}")
        return {}  # installed beside the interpreter
    if "/" not in script:
        return closure_hashes(root, script)
    # `python -m a.b.c` runs a/__init__.py and a/b/__init__.py first, so they count, too.
    parents = [root / parent for parent in Path(script).parents if parent.parts]
    starts = [parent / "__init__.py" for parent in parents]
    scripts = [script, *(_relative(start, root) for start in starts if start.is_file())]
    closures = [import_closure(root, name, package=True) for name in scripts]
    others = (module for closure in closures for module in closure.foreign if module != top)
    files = _of_imports(others, root)
    for closure in closures:
        files |= _hashes(closure, root)
    return files


def _of_text(text: str, root: Path) -> dict[str, str]:
    """Files of a program given as text: what it imports from the root when it is Python, else those
    that the words of a shell command name."""
    # Python first: most shell commands do not parse as Python, but much Python passes shlex.
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        try:
            return _of_words(shlex.split(text), root)
        except ValueError:
            return {}
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return _of_imports((name.partition(".")[0] for name in names), root)


def _of_imports(tops: Iterable[str], root: Path) -> dict[str, str]:
    """Files of modules directly below the root; of a package all its Python files."""
    files: dict[str, str] = {}
    for top in sorted(filter(None, set(tops))):
        if (root / top).is_dir():
            files |= {
                _relative(path, root): _hash(path, root)
                for path in sorted((root / top).rglob("*.py"))
            }
        elif (root / f"{top}.py").is_file():
            files |= closure_hashes(root, f"{top}.py")
    return files


def _hashes(closure: Closure, root: Path) -> dict[str, str]:
    for name in closure.sources:
        _require_readable(root / name, root)
    return {name: sha256_bytes(data) for name, data in closure.sources.items()}


def _hash(path: Path, root: Path) -> str:
    _require_readable(path, root)
    return hash_file(path)


def _require_readable(path: Path, root: Path) -> None:
    """A hash tells whether a guess of the content is right, so none is given of what only the
    judge reads; a workspace lies there too, and is its run's own."""
    secret, real, own = state_home(os.environ).resolve(), path.resolve(), root.resolve()
    if real.is_relative_to(secret) and not (
        own.is_relative_to(secret) and real.is_relative_to(own)
    ):
        raise RefusedError(
            f"{path} is the harness's own; no program runs it.",
            hint="Name a file of the project, or an installed program.",
            code="outside_the_project",
        )
