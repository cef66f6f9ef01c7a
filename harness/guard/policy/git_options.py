"""Tables of git's options: which take a value, which name a file that is written, which verbs write
their operands."""

from __future__ import annotations

from .words import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .options import Options
    from .words import Argument

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
"""As `options.options` wants them; of other verbs no option counts as taking the next word."""
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


def _all(given: Options) -> list[Argument]:
    return given.operands


def _after_first(given: Options) -> list[Argument]:
    return given.operands[1:]


def _created(given: Options) -> list[Argument]:
    first = given.operands[0].text if given.operands else ""
    return given.operands[1:] if first == "create" else []


def _merged(given: Options) -> list[Argument]:
    return [] if given.has("-p", "--stdout") else given.operands[:1]


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
