"""The one way the harness runs git: nothing that the repository configures is executed.

Filters cannot be switched off as a whole, so no command here reads a file's content through one:
files are hashed in Python.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.errors import HarnessError
from harness.process import SYSTEM_FOLDERS, system_program

_OFF = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    # the same files whoever asks: an agent's home has no global ignore file
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "core.pager=cat",
    "credential.helper=",
    "diff.external=",
    "protocol.allow=never",
    "safe.directory=*",  # with the settings above, a repository of another user runs nothing
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}


class GitFailedError(HarnessError):
    code = "git_failed"


def git_program() -> str | None:
    """The system's git, else the one beside our own Python; never one that PATH names: it decides
    what a code snapshot holds."""
    beside = os.path.join(os.path.dirname(sys.executable), "git")
    return system_program("git") or (beside if os.access(beside, os.X_OK) else None)


def git_line(*arguments: str) -> list[str]:
    """The argv of a git call with everything off."""
    return [
        git_program() or "git",
        *(word for setting in _OFF for word in ("-c", setting)),
        "--no-pager",
        *arguments,
    ]


def run_git(
    root: Path, *arguments: str, ok: tuple[int, ...] = (0,), timeout_s: float = 120.0
) -> tuple[int, bytes]:
    """(exit code, stdout) of git in `root`. Raises GitFailedError for another code than `ok`, a
    timeout, or no git."""
    environment = {"PATH": os.pathsep.join(SYSTEM_FOLDERS), **_ENVIRONMENT}
    try:
        done = subprocess.run(
            git_line(*arguments),
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailedError(
            "git is not installed in a folder of the system.",
            hint=f"Install git in one of {', '.join(SYSTEM_FOLDERS)}, then try again.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise GitFailedError(
            f"`git {arguments[0]}` in {root} did not answer within {timeout_s:g} s.",
            hint="Run it by hand to see why.",
        ) from error
    if done.returncode not in ok:
        reason = done.stderr.decode("utf-8", errors="replace").strip().split("\n")[-1]
        raise GitFailedError(
            f"`git {arguments[0]}` in {root} failed ({done.returncode}): {reason}.",
            hint=f"Run `git -C {root} {arguments[0]}` by hand to see why.",
        )
    return done.returncode, done.stdout


def in_repository(root: Path) -> bool:
    """Whether `root` is inside a git work tree.

    Raises GitFailedError when git refuses a `.git` at or above it: what is tracked is then unknown.
    """
    marked = any((folder / ".git").exists() for folder in (root, *root.parents))
    if git_program() is None and not marked:
        return False
    code, _ = run_git(root, "rev-parse", "--is-inside-work-tree", ok=(0, 128))
    if code == 0:
        return True
    if marked:
        raise GitFailedError(
            f"There is a .git at or above {root}, but git does not accept it as a repository.",
            hint=f"Run `git -C {root} status` to see why; repair or remove that .git.",
        )
    return False


def listing_of(root: Path) -> bytes:
    """What git tracks below `root`, and what else it does not ignore: for `listed_files`."""
    return run_git(root, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")[1]


def listed_files(listing: bytes) -> tuple[set[bytes], set[bytes]]:
    """(files that git tracks, others that it does not ignore), relative to the root."""
    tracked: set[bytes] = set()
    others: set[bytes] = set()
    for entry in filter(None, listing.split(b"\0")):
        (others if entry.startswith(b"? ") else tracked).add(entry[2:])
    return tracked, others - tracked


def lists(root: Path, name: str) -> bool:
    """Whether `listing_of` would name this file, relative to `root`; True without a repository.
    Raises GitFailedError."""
    if not in_repository(root):
        return True
    asked = ("--cached", "--others", "--exclude-standard", "--", name)
    return bool(run_git(root, "ls-files", *asked)[1])


def tracks(root: Path, path: Path) -> str | None:
    """Where git has `path` or its bytes: "index", "history" (of HEAD), "objects", or None.

    "objects" are the same bytes under any name, also of a commit that was undone: whoever has the
    repository can read them.
    """
    relative = os.path.relpath(path, root)
    if run_git(root, "ls-files", "-z", "--", relative)[1]:
        return "index"
    has_head = run_git(root, "rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1, 128))[0] == 0
    if has_head and run_git(root, "rev-list", "-1", "HEAD", "--", relative)[1]:
        return "history"
    name = run_git(root, "hash-object", "--no-filters", "--", str(path))[1].decode("ascii").strip()
    return "objects" if run_git(root, "cat-file", "-e", name, ok=(0, 1, 128))[0] == 0 else None


def git_folder(root: Path) -> Path:
    """The repository's own folder, of all its work trees: usually `.git`. Raises GitFailedError."""
    _, told = run_git(root, "rev-parse", "--git-common-dir")
    return (root / os.fsdecode(told.rstrip(b"\n"))).resolve()


def ref_names(folder: Path) -> list[str]:
    """Of branches, tags and other references. Raises GitFailedError, also when `folder` is not
    itself a repository's own folder."""
    if git_folder(folder) != folder.resolve():
        raise GitFailedError(
            f"{folder} is no repository that git accepts.",
            hint=f"Run `git -C {folder} status` to see why.",
        )
    _, listed = run_git(folder, "for-each-ref", "--format=%(refname)")
    return listed.decode("utf-8", "replace").splitlines()


def objects(root: Path, *, timeout_s: float = 120.0) -> list[tuple[str, str, int]]:
    """(type, name, bytes) of every object of the repository, of no commit's too. Raises
    GitFailedError."""
    _, listed = run_git(
        root,
        "cat-file",
        "--batch-all-objects",
        "--unordered",
        "--batch-check=%(objecttype) %(objectname) %(objectsize)",
        timeout_s=timeout_s,
    )
    words = (line.split() for line in listed.decode("ascii").splitlines())
    return [(parts[0], parts[1], int(parts[2])) for parts in words]


@contextlib.contextmanager
def object_reader(root: Path) -> Iterator[Callable[[str], bytes]]:
    """A function from an object's name to its bytes, by one git process. Raises GitFailedError."""
    environment = {"PATH": os.pathsep.join(SYSTEM_FOLDERS), **_ENVIRONMENT}
    with subprocess.Popen(
        git_line("cat-file", "--batch"),
        cwd=root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as git:
        asked, answered = git.stdin, git.stdout
        assert asked is not None
        assert answered is not None

        def read(name: str) -> bytes:
            # A git that ended, at a damaged pack for instance, breaks the pipe.
            with contextlib.suppress(OSError):
                asked.write(name.encode("ascii") + b"\n")
                asked.flush()
                head = answered.readline().split()
                if len(head) == 3 and head[2].isdigit():
                    data = answered.read(int(head[2]) + 1)
                    if len(data) == int(head[2]) + 1:
                        return data[:-1]
            raise GitFailedError(
                f"git gave not all bytes of the object {name}.",
                hint=f"Run `git -C {root} fsck` to see why.",
            )

        try:
            yield read
        finally:
            git.kill()
            # What a broken pipe did not take is written again at the end.
            with contextlib.suppress(OSError):
                asked.close()


def paths_of(root: Path, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Blob -> (path, commit) of the newest commit of any branch that has it; without an entry no
    commit has it. Raises GitFailedError."""
    found = {}
    for name in names:
        arguments = ("--format=%h", "--raw", "--no-abbrev", "--no-renames", "-m", "--root")
        _, log = run_git(root, "log", "--all", f"--find-object={name}", *arguments, ok=(0, 128))
        commit = ""
        for line in log.decode("utf-8", "replace").splitlines():
            if not line.startswith(":"):
                commit = line.strip() or commit
            elif line.split("\t")[0].split()[3] == name:
                found[name] = (line.split("\t")[1], commit)
                break
    return found
