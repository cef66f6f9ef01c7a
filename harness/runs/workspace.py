"""The workspace of a run: a fresh copy of the registered code, with the declared data in it.

With bwrap it is seen at the project's path. With landlock and without a sandbox nothing can be
moved: there training starts in the workspace itself, and what it may read of the project stands in
it as a link. Training writes in it as it likes; only the run's folder is kept.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.code_snapshot import Snapshot, materialise, on_disk
from harness.artifacts.content import linked
from harness.artifacts.locate import Layout
from harness.artifacts.objects import ObjectDamagedError, lay_out
from harness.domain.sandbox import Placed, Sandbox
from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError
from harness.files import make_folder

MOST_COPIED = 256 << 20
"""Bytes of a data file; a larger one of the project is read where it lies."""
_PARTS = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")
"""Of an interpreter whose prefix is the project's root itself."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    path: Path
    root: Path
    """The project."""
    moves: bool
    """Whether the sandbox shows the workspace at the project's path."""
    read_only: tuple[Path, ...]
    """What may be read beside it, at its own path."""
    given: tuple[str, ...]
    """Paths in it, relative, that are no code."""
    run_dir: Placed
    """Where training writes."""

    @property
    def seen(self) -> Path:
        """The project's root, for training."""
        return self.root if self.moves else self.path

    @property
    def placed(self) -> tuple[Placed, ...]:
        own = Placed(path=self.root, source=self.path.resolve(), writable=True)
        return (own, self.run_dir)

    def words(self, argv: Sequence[str]) -> list[str]:
        """`argv`; where nothing is moved, files of the project become those of the workspace."""
        return list(argv) if self.moves else [self._word(word) for word in argv]

    def imports(self, folders: Iterable[str]) -> list[str]:
        """Of the folders that an interpreter imports from, those of the project, as PYTHONPATH:
        where nothing is moved, an editable install would import from the project itself."""
        own = [Path(os.path.normpath(folder)) for folder in folders]
        inside = [folder for folder in own if not self.moves and folder.is_relative_to(self.root)]
        return [str(self.path / folder.relative_to(self.root)) for folder in inside]

    def _word(self, word: str) -> str:
        path = Path(os.path.normpath(word))
        if not path.is_relative_to(self.root):
            return word
        own = self.path / path.relative_to(self.root)
        return str(own) if own.exists() and linked(self.path, own) is None else word


def moves(sandbox: Sandbox) -> bool:
    return sandbox.kind is SandboxKind.BWRAP


def readable_below(root: Path, readable: Iterable[str | Path]) -> list[Path]:
    """Those of `readable` that lie below the project's root, by name: no part of its code."""
    paths = [Path(os.path.normpath(path)) for path in readable]
    return [path for path in paths if root in path.parents]


def make_workspace(
    layout: Layout,
    token_sha256: str,
    snapshot: Snapshot,
    sandbox: Sandbox,
    *,
    data: Mapping[str, str],
    readable: Sequence[str | Path],
    named: Sequence[str | Path],
    run_dir: Path,
) -> Workspace:
    """Make the run's workspace anew.

    Args:
        data: the declared files, relative to the project, with their hashes.
        readable: of config.toml; a link below the project opens nothing outside of it.
        named: what else the run reads: the interpreter's prefixes, a model; also behind a link.
        run_dir: where training writes.

    Raises OSError, ObjectDamagedError; RefusedError for a link out of what was granted.
    """
    remove_workspace(layout, token_sha256)
    path = _folder(layout, token_sha256)
    make_folder(path.parent)
    path.mkdir(mode=0o700)
    filling = _Filling(layout, path, moves=moves(sandbox), readable=readable)
    filling.code(snapshot)
    for one in _parts(layout.root, named):
        filling.show(one, anywhere=True)
    for shown in readable:
        filling.show(Path(shown))
    for name, sha256 in sorted(data.items()):
        filling.data(name, sha256)
    written = filling.show(run_dir)
    return Workspace(
        path=path,
        root=layout.root,
        moves=filling.moves,
        read_only=tuple(one for one in filling.read_only if one != run_dir),
        given=(*data, *map(layout.relative, filling.shown)),
        run_dir=Placed(path=run_dir, source=written, writable=True),
    )


def remove_workspace(layout: Layout, token_sha256: str) -> None:
    """What cannot be removed stays in the state directory."""
    path = _folder(layout, token_sha256)
    shutil.rmtree(path, ignore_errors=True)
    if path.is_dir():  # training may have taken rights away from folders of its own
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(inner := os.path.join(folder, name)):
                    os.chmod(inner, 0o700)
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def taking(layout: Layout, experiment: str) -> Iterator[Path]:
    """A new folder for copies of checkpoints. An experiment takes one set at a time, so the next
    one clears what a killed one left."""
    folder = layout.workspaces / experiment
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(layout: Layout, token_sha256: str) -> Path:
    # In the state directory: out of agents' reach, and on one file system with the vault, whose
    # blocks the copies may share.
    return layout.workspaces / token_sha256[:16]


def _parts(root: Path, named: Iterable[str | Path]) -> list[Path]:
    """`named`; of a root that is an interpreter's prefix itself, the interpreter's parts."""
    paths: list[Path] = []
    for path in map(Path, named):
        is_root = path.resolve() == root.resolve()
        paths += [path / name for name in _PARTS] if is_root else [path]
    return paths


class _Filling:
    """A workspace while it is filled."""

    def __init__(
        self, layout: Layout, path: Path, *, moves: bool, readable: Sequence[str | Path]
    ) -> None:
        self.moves = moves
        self.read_only: list[Path] = []
        self._layout, self._path, self._root = layout, path, layout.root
        named = [Path(os.path.normpath(one)) for one in readable]
        self._outside = [one.resolve() for one in named if self._root not in one.parents]
        self.shown: list[Path] = []

    def code(self, snapshot: Snapshot) -> None:
        left_out = materialise(snapshot, self._layout.objects, self._path, live=self._root)
        for name in left_out:
            # A link out of the project is kept: what it leads to is granted or not. One that names
            # a place in the project by its whole path leads to the same place here.
            target = Path(os.path.normpath(snapshot.links[name]))
            link = self._path / on_disk(name)
            if target.is_relative_to(self._root):
                inside = self._path / target.relative_to(self._root)
                link.symlink_to(os.path.relpath(inside, link.parent))
            else:
                link.symlink_to(snapshot.links[name])

    def show(self, path: Path, *, anywhere: bool = False) -> Path:
        """Let training read `path`; one below the project, at its place in the workspace. With
        `anywhere` a link may lead it out of the project. Returns where it led when looked at."""
        path = Path(os.path.normpath(path))
        real = path.resolve()
        if not path.exists():
            return real
        self.read_only.append(path)
        if self._root not in path.parents:
            return real
        self.shown.append(path)
        if not (anywhere or real.is_relative_to(self._root) or self._granted(real)):
            raise RefusedError(
                f"{path} leads out of the project, to {real}, through a link.",
                hint=f"Name {real} in `readable` of .harness/config.toml as well, or put a real"
                " file or folder in the link's place.",
                code="link_in_place",
            )
        # A mount makes its place itself; elsewhere a link leads there.
        if not self.moves or real != path:
            self._link(path.relative_to(self._root), real)
        return real

    def data(self, name: str, sha256: str) -> None:
        """Put the declared file at its place: a checked copy, so that a file which is exchanged now
        is not what training reads."""
        path = self._root / name
        if not path.exists() or any(one in (path, *path.parents) for one in self.shown):
            return
        real = path.resolve()
        if not real.is_relative_to(self._root):
            if self._granted(real):
                self._link(Path(name), real)
            else:
                self._copy(Path(name), real, sha256)
            return
        own = real.relative_to(self._root)
        large = real.stat().st_size > MOST_COPIED
        if large or not self.moves:
            self.read_only.append(real)
        if large and not self.moves:
            self._link(own, real)
        elif not large:
            self._copy(own, real, sha256)
        if Path(name) != own:
            self._link(Path(name), self._path / own)

    def _copy(self, name: Path, source: Path, sha256: str) -> None:
        target = self._path / name
        link = linked(self._path, target)
        if link is not None:  # it leads out of the project, to what training may not read
            link.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            lay_out(source, target, sha256, mode=0o444)
        except ObjectDamagedError as error:
            raise RefusedError(
                f"{source} changed since it was approved, or specified.",
                hint=(
                    "Leave the data alone, then start again. Data that changed on purpose need a"
                    " new approval of the plan; of a training program, a new specification."
                ),
                code="split_changed",
            ) from error

    def _link(self, name: Path, target: Path) -> None:
        """A link at `name`, unless something of the code is there or leads there."""
        link = self._path / name
        if linked(self._path, link) is not None or link.exists():
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        inside = target.is_relative_to(self._path)
        link.symlink_to(os.path.relpath(target, link.parent) if inside else target)

    def _granted(self, real: Path) -> bool:
        """Whether a folder outside of the project that is readable holds it."""
        return any(real.is_relative_to(one) for one in self._outside)
