"""Which files a command runs: its scripts and modules with all local modules that they import, and
files it names."""

import ast
import os
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.errors import NotFoundError
from harness.files import sha256_bytes
from harness.plans.scorer import Closure, import_closure


def command_files(command: Sequence[str], root: Path) -> dict[str, str]:
    """Name to SHA-256: of every word that is a file, wherever it lies, of a module after `-m`, and
    of what the text after `-c` imports or calls; else of the program itself. A file of the project
    is named relative to `root`.

    An interpreter called python, and modules installed beside it, are not part of it.
    Raises NotFoundError (trainer_missing), PlanError for a script that is not Python.
    """
    files = _of_words(command, root)
    if not files:
        program = shutil.which(command[0]) if command else None
        if program is None:
            raise missing(command[0] if command else "(nothing)")
        files[command[0]] = hash_file(Path(program))
    return files


def closure_hashes(root: Path, script: str, *, package: bool = False) -> dict[str, str]:
    """Of the script and the modules of its folder, or of its package, that it imports."""
    return _hashes(import_closure(root, Path(script).as_posix(), package=package))


def missing(name: str) -> NotFoundError:
    return NotFoundError(
        f"The program {name} does not exist.",
        hint="Write it, or correct the words.",
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
    path, inside = _found(word, root)
    if word.endswith(".py") and path is None and inside:
        raise missing(word)
    if path is None:
        return {}
    if not word.endswith(".py"):
        return {word: hash_file(path)}
    if inside:
        return closure_hashes(root, _relative(path, root))
    folder = path.parent
    return {
        str(folder / name): digest for name, digest in closure_hashes(folder, path.name).items()
    }


def _found(word: str, root: Path) -> tuple[Path | None, bool]:
    """(the file that the word names, whether the word leads into the project). Text too long for a
    name is none."""
    try:
        path = root / word
        return path if path.is_file() else None, path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return None, False


def _relative(path: Path, root: Path) -> str:
    plain = Path(os.path.normpath(path))
    if plain.is_relative_to(root):
        return plain.relative_to(root).as_posix()
    return path.resolve().relative_to(root.resolve()).as_posix()


def _of_module(name: str, root: Path) -> dict[str, str]:
    """As `python -m` finds it from the project's root: a module, or a package's `__main__`."""
    base = name.replace(".", "/")
    script = next(
        (item for item in (f"{base}.py", f"{base}/__main__.py") if (root / item).is_file()), None
    )
    top = base.partition("/")[0]
    if script is None:
        if (root / top).is_dir() or (root / f"{top}.py").is_file():
            raise missing(f"-m {name}")
        return {}  # installed
    if "/" not in script:
        return closure_hashes(root, script)
    parents = [root / parent for parent in Path(script).parents if parent.parts]
    scripts = [
        script,
        *(
            _relative(item / "__init__.py", root)
            for item in parents
            if (item / "__init__.py").is_file()
        ),
    ]
    found = [import_closure(root, item, package=True) for item in scripts]
    files = _of_imports((item for each in found for item in each.foreign if item != top), root)
    for each in found:
        files |= _hashes(each)
    return files


def _of_text(text: str, root: Path) -> dict[str, str]:
    """Of a program given as a word: what Python imports from the root, else the files that a
    shell's words name."""
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
    """Of modules and packages directly below the root; of a package all its Python files."""
    files: dict[str, str] = {}
    for top in sorted(filter(None, set(tops))):
        if (root / top).is_dir():
            files |= {
                _relative(path, root): hash_file(path)
                for path in sorted((root / top).rglob("*.py"))
            }
        elif (root / f"{top}.py").is_file():
            files |= closure_hashes(root, f"{top}.py")
    return files


def _hashes(closure: Closure) -> dict[str, str]:
    return {name: sha256_bytes(data) for name, data in closure.sources.items()}
