"""Which files of a code snapshot a training command runs, as far as its text says: the Python files
that it names, and those of the project that these import, directly or not."""

import ast
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

from harness.artifacts.code_snapshot import Snapshot
from harness.artifacts.objects import load_object

_PYTHON = ".py"
_CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg")
_READ = (_PYTHON, ".ipynb", ".sh", *_CONFIGURATIONS)
_WORD = re.compile(rb"\w+")


def same_training(
    first: Snapshot,
    second: Snapshot,
    argv: Sequence[str],
    predict: Sequence[str],
    objects: Path,
) -> bool:
    """Whether two snapshots differ only in Python files that `argv` does not run, and in files that
    the words of `predict` name. Raises ObjectDamagedError."""
    # Another file that differs, such as a configuration, may be read by training.
    changed = changed_files(first, second)
    run = {*run_by(first, argv, objects), *run_by(second, argv, objects)}
    if not run or not all(name.endswith(_PYTHON) for name in run):
        return not changed  # what a shell script runs is not known
    others = {name for name in changed if name.endswith(_PYTHON) and name not in run}
    told = {str(PurePosixPath(word)) for word in predict}
    return first.links == second.links and changed <= {*others, *(told - run)}


def changed_files(first: Snapshot, second: Snapshot) -> set[str]:
    """What differs, or is in one of them only."""
    names = {*first.files, *second.files}
    return {name for name in names if first.files.get(name) != second.files.get(name)}


def run_by(snapshot: Snapshot, argv: Sequence[str], objects: Path) -> set[str]:
    """The files that a command runs. Raises ObjectDamagedError."""
    modules = [word for flag, word in pairwise(argv) if flag == "-m"]
    found: set[str] = set()
    due = [str(PurePosixPath(word)) for word in argv if str(PurePosixPath(word)) in snapshot.files]
    due += [name for module in modules for name in _files_of(snapshot, module)]
    while due:
        name = due.pop()
        if name in found:
            continue
        found.add(name)
        if name.endswith(_PYTHON):
            text = load_object(objects, snapshot.files[name])
            due += [file for module in _imported(text) for file in _files_of(snapshot, module)]
    return found


def loaded_by_name(
    first: Snapshot, second: Snapshot, argv: Sequence[str], objects: Path
) -> set[str]:
    """The changed Python files whose name training may say as a text, and so load without an import
    (importlib, runpy, Hydra's `_target_`): the name stands in a file that training runs, in a
    configuration, or in the command. Raises ObjectDamagedError."""
    changed = {name for name in changed_files(first, second) if name.endswith(_PYTHON)}
    texts = [" ".join(argv).encode()]
    for snapshot in (first, second):
        run = run_by(snapshot, argv, objects) if changed else set()
        texts += [
            load_object(objects, digest)
            for name, digest in snapshot.files.items()
            if changed and (name in run or PurePosixPath(name).suffix in _CONFIGURATIONS)
        ]
    words = {word for text in texts for word in _WORD.findall(text)}
    return {name for name in changed if PurePosixPath(name).stem.encode() in words}


def words_of(snapshot: Snapshot, objects: Path) -> set[str]:
    """Every word of its programs, notebooks and configurations. Raises ObjectDamagedError."""
    texts = (
        load_object(objects, digest)
        for name, digest in snapshot.files.items()
        if PurePosixPath(name).suffix in _READ
    )
    return {word.decode() for text in texts for word in _WORD.findall(text)}


def imported_by(snapshot: Snapshot, objects: Path) -> set[str]:
    """The dotted names that any Python file of the code imports. Raises ObjectDamagedError."""
    texts = (
        load_object(objects, digest)
        for name, digest in snapshot.files.items()
        if name.endswith(_PYTHON)
    )
    return {module for text in texts for module in _imported(text)}


def _imported(text: bytes) -> set[str]:
    """Dotted names, without the dots of relative imports; a name that is imported from a module
    may be a module itself."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            top = f"{node.module}." if node.module else ""
            names.update(f"{top}{alias.name}" for alias in node.names)
    return names


def _files_of(snapshot: Snapshot, module: str) -> list[str]:
    """The files that importing `module` may run, wherever the project keeps
    its packages."""
    parts = module.split(".")
    paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    ends = [end for path in paths for end in (f"{path}{_PYTHON}", f"{path}/__init__{_PYTHON}")]
    return [
        name for name in snapshot.files for end in ends if name == end or name.endswith(f"/{end}")
    ]
