"""What a git command may change in the working tree: named paths, or all of it."""

from __future__ import annotations

import os

from .record import Record
from .words import Argument, table

_VALUED = frozenset(
    {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"}
)
_WHOLE_TREE = table(
    "merge rebase pull revert cherry-pick am apply bisect read-tree checkout-index filter-branch filter-repo "
    "sparse-checkout submodule subtree replace update-index"
)
_READ_CONFIG = ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list")
_BRANCH = ("-b", "-B", "--orphan", "-c", "-C", "--create")


class TreeChange(Record):
    """`whole`: why any file of the working tree may change, empty when only `paths` do. `folders`: working directories
    that `-C` sets."""

    __slots__ = ("folders", "paths", "whole")

    def __init__(self, paths: list[Argument], whole: str, folders: list[Argument]) -> None:
        self.paths = paths
        self.whole = whole
        self.folders = folders


def tree_change(arguments: list[Argument], cwds: tuple[str, ...]) -> TreeChange:
    """`arguments` are those after `git`. Reading commands change nothing."""
    folders: list[Argument] = []
    rest = arguments
    while rest and rest[0].text.startswith("-"):
        valued = rest[0].text in _VALUED
        if rest[0].text in ("-C", "--work-tree"):
            folders += rest[1:2]
        if rest[0].text.startswith("--work-tree="):
            folders.append(rest[0].with_text(rest[0].text.partition("=")[2]))
        rest = rest[2:] if valued else rest[1:]
    if not rest:
        return TreeChange([], "", folders)
    verb, rest = rest[0].text, rest[1:]
    paths, whole = _verb(verb, rest, cwds)
    if any(not argument.known for argument in rest) and (paths or whole):
        whole = whole or f"git {verb} names a path that is not known here"
    return TreeChange(paths, whole, folders)


def _verb(verb: str, rest: list[Argument], cwds: tuple[str, ...]) -> tuple[list[Argument], str]:
    texts = [argument.text for argument in rest]
    operands = [argument for argument in rest if not argument.text.startswith("-")]
    if verb in ("rm", "mv"):
        return operands, ""
    if verb in ("clone", "init") or (verb == "bundle" and texts[:1] == ["create"]):
        return operands[1:] if verb in ("clone", "bundle") else operands, ""
    if verb == "config":
        reading = any(text in _READ_CONFIG for text in texts) or len(operands) == 1
        return ([], "") if reading else ([Argument(".git/config")], "git config changes how git and its hooks run")
    if verb in ("checkout", "restore"):
        return _checkout(verb, rest, operands, cwds)
    if verb == "switch":
        return (
            ([], "")
            if any(text in _BRANCH for text in texts) and len(operands) < 2
            else ([], "git switch rewrites files")
        )
    if verb == "stash":
        if texts[:1] and texts[0] in ("list", "show", "drop", "clear"):
            return [], ""
        return _named(rest, "git stash takes changes of all files away, or puts them back")
    if verb == "clean":
        return (
            ([], "")
            if "-n" in texts or "--dry-run" in texts
            else (operands, "" if operands else "git clean removes files")
        )
    if verb == "reset":
        hard = any(text in ("--hard", "--merge", "--keep") for text in texts)
        return [], "git reset rewrites files" if hard else ""
    if verb == "worktree":
        return ([], "") if texts[:1] == ["list"] else ([], "git worktree puts a second copy of the project in place")
    if verb in ("apply", "am") and any(text in ("--check", "--stat", "--numstat", "--summary") for text in texts):
        return [], ""
    if verb == "submodule" and texts[:1] in ([], ["status"], ["summary"]):
        return [], ""
    if verb in ("diff", "log", "show", "archive", "format-patch", "bundle"):
        return _outputs(rest), ""
    return ([], f"git {verb} rewrites files") if verb in _WHOLE_TREE else ([], "")


def settings_given(arguments: list[Argument]) -> list[str]:
    """The values that `-c NAME=VALUE` sets for this one call: many of git's settings are commands, as aliases are."""
    values = [arguments[i + 1].text for i, item in enumerate(arguments[:-1]) if item.text == "-c"]
    pairs = [value.partition("=") for value in values]
    return [
        value.lstrip("!") if value.startswith("!") or "alias." not in name else f"git {value}"
        for name, _, value in pairs
    ]


def _outputs(rest: list[Argument]) -> list[Argument]:
    found = []
    for index, argument in enumerate(rest):
        if argument.text in ("-o", "--output"):
            found += rest[index + 1 : index + 2]
        elif argument.text.startswith("--output="):
            found.append(argument.with_text(argument.text[len("--output=") :]))
    return found


def _named(rest: list[Argument], whole: str) -> tuple[list[Argument], str]:
    """Paths after `--`, else the whole tree."""
    for index, argument in enumerate(rest):
        if argument.text == "--" and rest[index + 1 :]:
            return rest[index + 1 :], ""
    return [], whole


def _checkout(
    verb: str, rest: list[Argument], operands: list[Argument], cwds: tuple[str, ...]
) -> tuple[list[Argument], str]:
    texts = [argument.text for argument in rest]
    if any(text.startswith("--pathspec-from-file") for text in texts):
        return [], f"git {verb} takes its paths from a file"
    paths, whole = _named(rest, f"git {verb} rewrites files")
    if paths:
        return paths, ""
    if verb == "checkout" and any(text in _BRANCH for text in texts) and len(operands) < 2:
        return [], ""
    if verb == "restore":
        taken = {texts[i + 1] for i, text in enumerate(texts[:-1]) if text in ("-s", "--source")}
        return [item for item in operands if item.text not in taken], ""
    exists = [any(os.path.lexists(os.path.join(cwd, item.text)) for cwd in cwds) for item in operands]
    if operands and all(exists[1:]) and (exists[0] or len(operands) > 1):
        return operands if exists[0] else operands[1:], ""
    return [], whole
