"""What a git command may change in the working tree: named paths, or all of it.

First the tables of git's options: which take a value, which name a file that is written, which
verbs write their operands.
"""

from __future__ import annotations

import os

from .arguments import Argument, is_wild, means, options, table
from .named_values import Record
from .paths import fixed, wild_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .arguments import Argument, Options

VALUED = {
    "restore": "sU --source --unified --pathspec-from-file --conflict",
    "clean": "e --exclude",
    "config": "f --file --blob --type --default --comment --value --fixed-value",
    "commit": "mFCcte --message --file --author --date --template --trailer",
    "stash": "m --message --pathspec-from-file",
    "hash-object": "t --path",
    "apply": "pC --directory --exclude --include --whitespace",
    "blame": "LS --contents",
}
"""As `arguments.options` wants them; of other verbs no option counts as taking the next word."""
OUTPUTS = ("--output", "--output-directory", "--export-marks", "--separate-git-dir")
SHORT_OUTPUT = table("format-patch archive mailsplit bugreport diagnose index-pack")
"""Verbs of which `-o` is such an option too."""
RUN = (
    "--extcmd",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--open-files-in-pager",
    "--smtp-server",
)
RUN_LETTERS = ("-x", "-O")
"""Options whose value is a command; `-O` of diff is a file, which as a command does nothing."""
HOOK_SETTINGS = ("core.hookspath=", "include.path=", "includeif.")
"""What `-c` sets to take hooks, or other settings, from elsewhere."""
READ_CONFIG = table("--get --get-all --get-regexp --get-urlmatch --get-color --list -l")
WRITE_CONFIG = (
    "-e",
    "--edit",
    "--add",
    "--unset",
    "--unset-all",
    "--replace-all",
    "--rename-section",
    "--remove-section",
)


def _all(parsed: Options) -> list[Argument]:
    return parsed.operands


def _after_first(parsed: Options) -> list[Argument]:
    return parsed.operands[1:]


def _created(parsed: Options) -> list[Argument]:
    first = parsed.operands[0].text if parsed.operands else ""
    return parsed.operands[1:] if first == "create" else []


def _merged(parsed: Options) -> list[Argument]:
    return [] if parsed.has("-p", "--stdout") else parsed.operands[:1]


LISTED: dict[str, Callable[[Options], list[Argument]]] = {
    "rm": _all,
    "mv": _all,
    "init": _all,
    "clone": _after_first,
    "bundle": _created,
    "merge-file": _merged,
    "mailinfo": _all,
    "pack-objects": _all,
}
"""Verbs that write what they name, and nothing else."""

_FIRST_VALUED = table(
    "-c -C --git-dir --work-tree --namespace --exec-path --super-prefix --config-env"
)
_WHOLE_TREE = table(
    "merge rebase pull revert cherry-pick am apply bisect read-tree checkout-index filter-branch"
    " filter-repo sparse-checkout submodule subtree replace update-index mergetool merge-index"
    " merge-one-file"
)
_BRANCH = ("-b", "-B", "--orphan", "-c", "-C", "--create")
_LOOKS = {
    "apply": ("--check", "--stat", "--numstat", "--summary"),
    "am": ("--show-current-patch",),
    "clean": ("-n", "--dry-run"),
}
"""Options with which a verb only shows; `--apply` beside them undoes that."""


class TreeChange(Record):
    """`whole`: why any file of the working tree may change, empty when only `paths` do. `folders`:
    working directories that `-C` sets. `reads`: files that git may show; `deep`: with all that lies
    below them."""

    __slots__ = ("deep", "folders", "paths", "reads", "whole")

    def __init__(
        self,
        paths: list[Argument],
        whole: str,
        folders: list[Argument],
        reads: list[Argument] | None = None,
        *,
        deep: bool = False,
    ) -> None:
        self.paths = paths
        self.whole = whole
        self.folders = folders
        self.reads = reads or []
        self.deep = deep


def tree_change(arguments: list[Argument], cwds: tuple[str, ...]) -> TreeChange:
    """`arguments` are those after `git`. Reading commands change nothing."""
    folders: list[Argument] = []
    rest = arguments
    while rest and rest[0].text.startswith("-"):
        valued = rest[0].text in _FIRST_VALUED
        if rest[0].text in ("-C", "--work-tree"):
            folders += rest[1:2]
        if rest[0].text.startswith("--work-tree="):
            folders.append(rest[0].with_text(rest[0].text.partition("=")[2]))
        rest = rest[2:] if valued else rest[1:]
    if not rest:
        return TreeChange([], "", folders)
    verb, rest = rest[0].text, rest[1:]
    hooks = next(
        (
            argument.text
            for argument in arguments
            if argument.text.lower().startswith(HOOK_SETTINGS)
        ),
        "",
    )
    if hooks:
        return TreeChange(
            [Argument(".git/hooks")],
            f"git runs with {hooks}, other settings than the repository's",
            folders,
        )
    parsed = options(rest, VALUED.get(verb, " "))
    named, whole = _verb(verb, rest, parsed, cwds)
    paths, unresolved = _resolved(named, cwds)
    whole = whole or (
        f"git {verb} takes {unresolved}, which may be any file" if unresolved else ""
    )
    paths += _outputs(verb, rest)
    if any(not argument.known for argument in rest) and (paths or whole):
        whole = whole or f"git {verb} names a path that is not known here"
    values = [value for _, value in parsed.pairs if value is not None]
    return TreeChange(
        paths, whole, folders, [*parsed.operands, *values], deep=parsed.has("--no-index")
    )


def _verb(
    verb: str, rest: list[Argument], parsed: Options, cwds: tuple[str, ...]
) -> tuple[list[Argument], str]:
    texts, operands = [argument.text for argument in rest], parsed.operands
    if verb in ("checkout", "restore"):
        return _checkout(verb, rest, parsed, cwds)
    if verb == "config":
        return _config(parsed)
    if verb in LISTED:
        return LISTED[verb](parsed), ""
    if verb == "switch":
        made = any(text in _BRANCH for text in texts) and len(operands) < 2
        return [], "" if made else "git switch rewrites files"
    if verb == "stash":
        if texts[:1] and texts[0] in ("list", "show", "drop", "clear"):
            return [], ""
        return _named(rest, "git stash takes changes of all files away, or puts them back")
    if (
        verb in _LOOKS
        and any(option in _LOOKS[verb] for option, _ in parsed.pairs)
        and not parsed.has("--apply")
    ):
        return [], ""
    if verb == "clean":
        return operands, "" if operands else "git clean removes files"
    if verb == "reset":
        return [], "git reset rewrites files" if parsed.has("--hard", "--merge", "--keep") else ""
    if verb == "worktree":
        return [], (
            ""
            if texts[:1] == ["list"]
            else "git worktree puts a second copy of the project in place"
        )
    if verb == "submodule" and texts[:1] in ([], ["status"], ["summary"]):
        return [], ""
    if verb == "merge" and texts in (["--abort"], ["--quit"]):
        return [], ""  # what a person's merge changed is put back as it was
    return [], f"git {verb} rewrites files" if verb in _WHOLE_TREE else ""


def _config(parsed: Options) -> tuple[list[Argument], str]:
    first = parsed.operands[0].text if parsed.operands else ""
    writes = parsed.has(*WRITE_CONFIG) or first in (
        "set",
        "unset",
        "edit",
        "rename-section",
        "remove-section",
    )
    reads = any(option in READ_CONFIG for option, _ in parsed.pairs) or first in ("get", "list")
    if not writes and (reads or len(parsed.operands) == 1):
        return [], ""
    return [Argument(".git/config")], "git config changes how git and its hooks run"


def settings_given(arguments: list[Argument]) -> list[str]:
    """The values that `-c NAME=VALUE` sets for this one call, where many of git's settings are
    commands, as aliases are; and the commands that options give it."""
    values = [
        arguments[i + 1].text for i, argument in enumerate(arguments[:-1]) if argument.text == "-c"
    ]
    pairs = [value.partition("=") for value in values]
    return [
        value.lstrip("!") if value.startswith("!") or "alias." not in name else f"git {value}"
        for name, _, value in pairs
    ] + [argument.text for argument in _values(arguments, RUN, letters=RUN_LETTERS)]


def _outputs(verb: str, rest: list[Argument]) -> list[Argument]:
    """Files that options name for git to write, of whatever verb: an abbreviation counts as each
    that it may mean."""
    return _values(rest, OUTPUTS, letters=("-o",) if verb in SHORT_OUTPUT else ())


def _values(
    rest: list[Argument], longs: tuple[str, ...], letters: tuple[str, ...]
) -> list[Argument]:
    """What stands behind these options: after `=`, glued to a letter, or as the next word."""
    values = []
    for index, argument in enumerate(rest):
        name, equals, value = argument.text.partition("=")
        if any(means(name, option) for option in longs):
            values += [argument.with_text(value)] if equals else rest[index + 1 : index + 2]
        elif argument.text in letters:
            values += rest[index + 1 : index + 2]
        elif argument.text[:2] in letters:
            values.append(argument.with_text(argument.text[2:]))
    return values


def _resolved(named: list[Argument], cwds: tuple[str, ...]) -> tuple[list[Argument], str]:
    """The paths among pathspecs, and the first of them that is none: magic (`:/`, `:!x`), or a
    wildcard that git reads itself, to whom `*` is any depth; of one with a folder before it, that
    folder."""
    paths, unresolved = [], ""
    for argument in named:
        text = argument.text
        own = is_wild(text) and not (argument.pattern and any(_matched(text, cwd) for cwd in cwds))
        folder = fixed("/" + text)[1:] if own else ""
        if text.startswith(":") or (own and not folder):
            unresolved = unresolved or text
        elif own:
            paths.append(Argument(folder, argument.known))
        else:
            paths.append(argument)
    return paths, unresolved


def _matched(pattern: str, cwd: str) -> bool:
    """Whether the shell finds a file for it: then git never sees the wildcard."""
    folders = [cwd]
    for part in os.path.expanduser(pattern).split("/"):
        folders = [
            os.path.join(place, name)
            for place in folders
            for name in _names(place)
            if wild_match(name, part)
        ]
    return bool(folders)


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []


def _named(rest: list[Argument], whole: str) -> tuple[list[Argument], str]:
    """Paths after `--`, else the whole tree."""
    for index, argument in enumerate(rest):
        if argument.text == "--" and rest[index + 1 :]:
            return rest[index + 1 :], ""
    return [], whole


def _checkout(
    verb: str, rest: list[Argument], parsed: Options, cwds: tuple[str, ...]
) -> tuple[list[Argument], str]:
    operands = parsed.operands
    if parsed.has("--pathspec-from-file"):
        return [], f"git {verb} takes its paths from a file"
    if verb == "restore":
        staged = any(option in ("-S", "--staged") for option, _ in parsed.pairs)
        return [] if staged and not parsed.has("-W", "--worktree") else operands, ""
    paths, whole = _named(rest, f"git {verb} rewrites files")
    if paths:
        return paths, ""
    if any(argument.text in _BRANCH for argument in rest) and len(operands) < 2:
        return [], ""
    exists = [
        any(os.path.lexists(os.path.join(cwd, argument.text)) for cwd in cwds)
        for argument in operands
    ]
    if operands and all(exists[1:]) and (exists[0] or len(operands) > 1):
        return operands if exists[0] else operands[1:], ""
    return [], whole
