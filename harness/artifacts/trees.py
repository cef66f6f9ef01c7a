"""Which working tree of a project this is: linked worktrees and clones on one machine share a
state directory and its ledger, and an experiment's files are in the tree that opened it.

`<state>/trees.json` holds id -> {root, worktree, state} of each tree that opened an experiment or
ran a loop.
A tree is known by its folder. Where that folder is gone, the tree of the same worktree name has
its place: it was moved, or taken over. A state directory that was copied knows the trees beside
the original; `state` tells.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from harness.artifacts.git import GitFailedError, run_git
from harness.artifacts.locate import Layout
from harness.domain.records import Tree
from harness.files import (
    atomic_write,
    lock,
    pretty_json,
    private_folder,
)
from harness.settings import CONFIG

_PATIENCE = 10.0


def own_trees(layout: Layout) -> frozenset[str]:
    """The ids under which the layout's tree opened experiments, and those of which it has the
    place."""
    known, here = _known(layout), layout.root
    worktree = worktree_name(here) if known else ""
    return frozenset(
        identifier
        for identifier, entry in known.items()
        if entry.get("root") == str(here)
        or (entry.get("worktree") == worktree and _is_gone(entry, layout))
    )


def place_of(layout: Layout, identifier: str) -> Path | None:
    """The folder of another tree; None when it is gone, or on another machine."""
    entry = _known(layout).get(identifier)
    return None if entry is None or _is_gone(entry, layout) else Path(entry["root"])


def is_known(layout: Layout, identifier: str) -> bool:
    """Whether the tree is, or was, on this machine."""
    return identifier in _known(layout)


def this_tree(layout: Layout) -> Tree:
    """This tree as it is now, known from now on."""
    private_folder(layout.state)
    with lock(layout.trees.with_suffix(".lock")):
        known, own = _known(layout), own_trees(layout)
        worktree = worktree_name(layout.root)
        here = {"root": str(layout.root), "worktree": worktree, "state": str(layout.state)}
        by_root = [name for name in sorted(own) if known[name].get("root") == here["root"]]
        identifier = next(iter([*by_root, *sorted(own)]), None) or secrets.token_hex(4)
        now = known | dict.fromkeys({*own, identifier}, here)
        if now != known:
            atomic_write(layout.trees, pretty_json(now), mode=0o600)
    branch = _git_says(layout.root, "symbolic-ref", "--quiet", "--short", "HEAD")
    commit = _git_says(layout.root, "rev-parse", "--quiet", "--verify", "HEAD")
    return Tree(id=identifier, worktree=worktree, branch=branch, commit=commit)


def linked_roots(root: Path) -> list[Path]:
    """Where the project whose main tree is at `root` lies in each linked worktree, by git's name of
    the worktree."""
    for top in (root, *root.parents):
        if (top / ".git").is_dir():
            break
    else:
        return []
    folders = []
    for link in sorted((top / ".git" / "worktrees").glob("*/gitdir")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            linked = Path(os.path.normpath(link.parent / link.read_text("utf-8").strip())).parent
            folders.append(linked.resolve() / root.relative_to(top))
    return [folder for folder in folders if folder.is_dir()]


def worktree_name(root: Path) -> str:
    """git's own name of the linked worktree that `root` lies in; empty in any other place."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.is_dir():
            break
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if not git.is_file():
                continue
            leads_to = Path(git.read_text("utf-8").strip().removeprefix("gitdir:").strip())
            return leads_to.name if leads_to.parent.name == "worktrees" else ""
    return ""


def _known(layout: Layout) -> dict[str, dict[str, str]]:
    """A file that cannot be read knows nothing: experiments are then told to be of another tree."""
    try:
        value = json.loads(layout.trees.read_bytes())
    except (OSError, ValueError):
        return {}
    entries = value.items() if isinstance(value, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict) and "root" in entry}


def _is_gone(entry: Mapping[str, str], layout: Layout) -> bool:
    here = entry.get("state") == str(layout.state)
    return not here or not (Path(entry["root"]) / CONFIG).is_file()


def _git_says(root: Path, *words: str) -> str:
    try:
        code, told = run_git(root, *words, ok=(0, 1, 128), timeout_s=_PATIENCE)
    except GitFailedError:  # no git, or one that does not answer: nothing rests on it
        return ""
    return told.decode("utf-8", "replace").strip() if code == 0 else ""
