"""The code of a commit, as a snapshot: what is tracked there, read from git's objects. Nothing of
the working tree is read, and no filter runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from harness.artifacts.code_snapshot import Snapshot, is_left_out, kept
from harness.artifacts.git import GitFailedError, in_repository, object_reader, run_git
from harness.artifacts.object_batch import ObjectBatch
from harness.errors import UsageError

_EXECUTABLE, _LINK, _SUBMODULE = "100755", "120000", "160000"


def commit_of(root: Path, revision: str) -> str:
    """The commit that git knows by `revision`. Raises UsageError (no_commit)."""
    try:
        there = in_repository(root)
    except GitFailedError:
        there = False
    if there:
        words = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        code, told = run_git(root, "rev-parse", *words, ok=(0, 1, 128))
        if code == 0:
            return told.decode("ascii").strip()
    what = f"{revision} is no commit of this repository" if there else "There is no git repository"
    raise UsageError(
        f"{what}.",
        hint="`.` stands for the files as they are now.",
        code="no_commit",
    )


def head_of(root: Path) -> str | None:
    """The commit that is checked out; None without one."""
    try:
        return commit_of(root, "HEAD")
    except UsageError:
        return None


def take_commit(
    root: Path, commit: str, objects: Path, *, exclude: Iterable[str] = ()
) -> Snapshot:
    """Store the code that `commit` has below `root` in `objects`; `exclude` as for
    `take_snapshot`. Raises GitFailedError."""
    out = {PurePosixPath(path).as_posix() for path in exclude}
    files, links, executable, unreadable = {}, {}, [], []
    with ObjectBatch(objects) as batch, object_reader(root) as read:
        for mode, blob, raw in _entries(root, commit):
            try:
                name = raw.decode("utf-8")
            except UnicodeDecodeError:
                unreadable.append(raw.decode("utf-8", errors="backslashreplace"))
                continue
            if is_left_out(name, out):
                continue
            if mode == _SUBMODULE:
                unreadable.append(name)
            elif mode == _LINK:
                links[name] = read(blob).decode("utf-8", errors="backslashreplace")
            else:
                files[name] = batch.add(read(blob))
                executable += [name] if mode == _EXECUTABLE else []
        manifest = {
            "files": files,
            "executable": executable,
            "links": links,
            "missing": [],
            "unreadable": unreadable,
        }
        return kept(batch, manifest)


def _entries(root: Path, commit: str) -> Iterator[tuple[str, str, bytes]]:
    """(mode, object, path) of all that is below `root`, relative to it, in git's order."""
    _, listed = run_git(root, "ls-tree", "-r", "-z", commit)
    for entry in filter(None, listed.split(b"\0")):
        head, _, name = entry.partition(b"\t")
        mode, _, blob = head.decode("ascii").split(" ")
        yield mode, blob, name
