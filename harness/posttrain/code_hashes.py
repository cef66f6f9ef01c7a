"""Hashes of the code that trains and scores: the files that a command runs, with all local modules
that they import. docs/training-programs.md defines them, so any trainer can compute the same."""

import ast
import os
import shlex
from collections.abc import (
    Iterable,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.domain.commands import found
from harness.domain.sandbox import Confinement
from harness.errors import (
    NotFoundError,
    RefusedError,
)
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.plans.scorer import (
    Closure,
    import_closure,
)
from harness.posttrain.vocabulary import (
    EVALUATORS,
    Backend,
)
from harness.sandbox.reach import grants
from harness.settings import (
    CONFIG,
    Settings,
    granted,
    require_interpreter,
    state_home,
)

_PACKAGE = Path(__file__).resolve().parents[1]


def code_hash(
    backend: Backend, command: Sequence[str] | None, settings: Settings, root: Path | None = None
) -> str:
    """Hash of the trainer and all local modules that it imports, directly or not; of a command as
    `command_files`. Raises NotFoundError (trainer_missing), RefusedError (outside_the_project), or
    PlanError for what is not Python."""
    if backend is Backend.DRY_RUN:
        files = {"dry_run.py": hash_file(Path(__file__).with_name("dry_run.py"))}
    elif backend is Backend.COMMAND:
        files = command_files(command or (), settings, root)
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
    own = _Code(root=_PACKAGE.parent, reach=(_PACKAGE.parent,))
    return own.closure(script, package=True)


def command_files(
    command: Sequence[str], settings: Settings, root: Path | None = None
) -> dict[str, str]:
    """File name -> SHA-256 of every word that is a file, of a module after `-m`, and of what the
    text after `-c` imports or calls. Where there is none of these: of the program itself.

    A file of the project is named relative to `root`, the project's unless it is that of a
    workspace. Interpreters called python and installed modules do not count. Raises NotFoundError
    (trainer_missing), RefusedError (outside_the_project), PlanError.
    """
    root = settings.root if root is None else root
    code = _Code(root=root, reach=(root.resolve(), *_reach(settings, command)))
    files = code.of_words(command)
    # A compiled program, say: without its own bytes the hash would be that of nothing.
    if not files:
        program = found(command[0]) if command else None
        if program is None:
            raise missing(command[0] if command else "(nothing)")
        files[command[0]] = code.hash(Path(program))
    return files


def missing(name: str) -> NotFoundError:
    return NotFoundError(
        f"The program {name} does not exist.",
        hint="Write it, or correct the command.",
        code="trainer_missing",
    )


def _reach(settings: Settings, command: Sequence[str]) -> tuple[Path, ...]:
    """What a sandbox would show to the command, without links: the project, what is `readable`, the
    system's folders, the interpreters and the command's own program."""
    shown = Confinement(read_only=(settings.root, *granted(settings)))
    starts = ([require_interpreter(settings)], command[:1])
    return tuple({grant.source for words in starts for grant in grants(words, shown)})


def _is_python(word: str) -> bool:
    return os.path.isabs(word) and Path(word).name.startswith("python")


@dataclass(frozen=True, kw_only=True)
class _Code:
    """The code below `root`, and what else the commands that start there may be."""

    root: Path
    reach: tuple[Path, ...]
    """Without links; the root is in it."""

    def closure(self, script: str, *, package: bool = False) -> dict[str, str]:
        """Hashes of the script and of the modules that it imports from its folder or its
        package."""
        self._require_reach(self.root / script)
        return self._hashes(import_closure(self.root, Path(script).as_posix(), package=package))

    def of_words(self, command: Sequence[str]) -> dict[str, str]:
        files: dict[str, str] = {}
        for place, word in enumerate(command):
            before = command[place - 1] if place else ""
            if before == "-c":
                files |= self._of_text(word)
            elif before == "-m":
                files |= self._of_module(word)
            elif place or not _is_python(word):
                files |= self._of_word(word)
        return files

    def hash(self, path: Path) -> str:
        self._require_reach(path)
        return hash_file(path)

    def _of_word(self, word: str) -> dict[str, str]:
        path, inside = self._path_of(word)
        if word.endswith(".py") and path is None and inside:
            raise missing(word)
        if path is None:
            return {}
        if not word.endswith(".py"):
            return {word: self.hash(path)}
        if inside:
            return self.closure(self._relative(path))
        beside = _Code(root=path.parent, reach=self.reach)
        return {
            str(path.parent / name): digest for name, digest in beside.closure(path.name).items()
        }

    def _path_of(self, word: str) -> tuple[Path | None, bool]:
        """(the file that the word names, whether the word leads into the project)."""
        try:
            path = self.root / word
            inside = path.resolve().is_relative_to(self.root.resolve())
            return path if path.is_file() else None, inside
        except (OSError, ValueError):  # text too long for a file name, or with a NUL
            return None, False

    def _relative(self, path: Path) -> str:
        # Without following links first: a link inside the project keeps the name that was written.
        plain = Path(os.path.normpath(path))
        if plain.is_relative_to(self.root):
            return plain.relative_to(self.root).as_posix()
        return path.resolve().relative_to(self.root.resolve()).as_posix()

    def _of_module(self, name: str) -> dict[str, str]:
        """As `python -m` finds it from the project's root: a module, or a package's `__main__`."""
        base = name.replace(".", "/")
        scripts = (f"{base}.py", f"{base}/__main__.py")
        script = next((one for one in scripts if (self.root / one).is_file()), None)
        top = base.partition("/")[0]
        if script is None:
            if (self.root / top).is_dir() or (self.root / f"{top}.py").is_file():
                raise missing(f"-m {name}")
            return {}  # installed beside the interpreter
        if "/" not in script:
            return self.closure(script)
        # `python -m a.b.c` runs a/__init__.py and a/b/__init__.py first, so they count, too.
        parents = [self.root / parent for parent in Path(script).parents if parent.parts]
        starts = [parent / "__init__.py" for parent in parents]
        own = [script, *(self._relative(start) for start in starts if start.is_file())]
        for one in own:
            self._require_reach(self.root / one)
        closures = [import_closure(self.root, one, package=True) for one in own]
        others = (module for closure in closures for module in closure.foreign if module != top)
        files = self._of_imports(others)
        for closure in closures:
            files |= self._hashes(closure)
        return files

    def _of_text(self, text: str) -> dict[str, str]:
        """Files of a program given as text: what it imports from the root when it is Python, else
        those that the words of a shell command name."""
        # Python first: most shell commands do not parse as Python, but much Python passes shlex.
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            try:
                return self.of_words(shlex.split(text))
            except ValueError:
                return {}
        names = [
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        ]
        names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        return self._of_imports(name.partition(".")[0] for name in names)

    def _of_imports(self, tops: Iterable[str]) -> dict[str, str]:
        """Files of modules directly below the root; of a package all its Python files."""
        files: dict[str, str] = {}
        for top in sorted(filter(None, set(tops))):
            if (self.root / top).is_dir():
                files |= {
                    self._relative(path): self.hash(path)
                    for path in sorted((self.root / top).rglob("*.py"))
                }
            elif (self.root / f"{top}.py").is_file():
                files |= self.closure(f"{top}.py")
        return files

    def _hashes(self, closure: Closure) -> dict[str, str]:
        for name in closure.sources:
            self._require_reach(self.root / name)
        return {name: sha256_bytes(data) for name, data in closure.sources.items()}

    def _require_reach(self, path: Path) -> None:
        """A hash tells whether a guess of the content is right, so none is given of what a sandbox
        does not show to the program, least of all of the harness's own; a workspace lies there
        too, and is its run's own."""
        real, secret = path.resolve(), state_home(os.environ).resolve()
        shown = [
            one
            for one in self.reach
            if one.is_relative_to(secret) or not real.is_relative_to(secret)
        ]
        if not any(real.is_relative_to(one) for one in shown):
            raise RefusedError(
                f"{path} is nothing that a program may read: it lies outside of the project.",
                hint=(
                    "Name a file of the project, or an installed program; or a person declares its"
                    f" folder in `readable` of {CONFIG}."
                ),
                code="outside_the_project",
            )
