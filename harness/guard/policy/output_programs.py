"""Programs whose options or operands name the files that they write: a table, and one reader of
it."""

from __future__ import annotations

import os

from .arguments import Argument, Options, options
from .effects import Effects
from .named_values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_APART = (
    "Extract into a folder of its own, e.g. `mkdir out && tar -xf a.tar -C out`, and copy what you"
    " need from there."
)


class OutputProgram(Record):
    """`valued`: options that take a value, as `arguments.options` wants them; `written`, `read` and
    `run`: those whose value is a file that is written, holds the name of one that is read, or is a
    command."""

    __slots__ = ("read", "run", "valued", "written")

    def __init__(self, valued: str, written: str, read: str = "", run: str = "") -> None:
        self.valued = f"{valued} {written} {read} {run}"
        self.written = written.split()
        self.read = read.split()
        self.run = run.split()


_LESS = OutputProgram("bhjkoOpPtTxyz#", "-o -O --log-file --LOG-FILE")
TOOLS = {
    "curl": OutputProgram(
        "AbcCdDeEFhHKmoPQrtTuUwxXyYz --header --user --request --user-agent --max-time --retry"
        " --proxy",
        "-o -D -c --output --output-dir --dump-header --cookie-jar --trace --trace-ascii --stderr"
        " --etag-save --hsts --alt-svc --libcurl",
        "-d -F -T -K -b -E --data --data-ascii --data-binary --data-raw --data-urlencode --json"
        " --form --upload-file --config --cookie --cert --cacert --key --netrc-file --etag-compare"
        " --url --url-query --variable",
    ),
    "wget": OutputProgram(
        "OoaPiBtTwQUeADRlI --header --user-agent --tries --timeout --base --execute",
        "-O -o -a -P --output-document --output-file --append-output --directory-prefix"
        " --save-cookies --warc-file --rejected-log",
        "-i --input-file --post-file --body-file --load-cookies --certificate --private-key"
        " --config",
        "--use-askpass",
    ),
    "sort": OutputProgram(
        "koStT --key --buffer-size --field-separator",
        "-o -T --output --temporary-directory",
        "--files0-from",
    ),
    "tree": OutputProgram("oLPIHT", "-o"),
    "shuf": OutputProgram("eino --head-count --input-range", "-o --output"),
    "iconv": OutputProgram("fto --from-code --to-code", "-o --output"),
    "less": _LESS,
    "more": _LESS,
}
_TAR = OutputProgram(
    "bCfFgHIKLNTVX --format --label --newer --owner --group --mode --transform --strip-components"
    " --exclude",
    "-g --listed-incremental --index-file",
    "-T -X --files-from --exclude-from",
    "-I -F --use-compress-program --to-command --checkpoint-action --info-script"
    " --new-volume-script --rsh-command",
)
_RENAMES = (
    "-P",
    "--absolute-names",
    "--transform",
    "--xform",
    "--wildcards",
    "--strip-components",
)


def tool_effects(program: str, arguments: list[Argument]) -> Effects:
    """Of a program in `TOOLS`."""
    tool = TOOLS[program]
    parsed = options(arguments, tool.valued)
    changes = parsed.values(*tool.written)
    reads = [*parsed.operands, *_pieces(parsed.values(*tool.read))]
    named = program == "curl" and parsed.has("-O", "--remote-name", "--remote-name-all")
    if named or (program == "wget" and not parsed.has("-O", "--output-document")):
        folders = parsed.values("--output-dir", "-P", "--directory-prefix") or [Argument(".")]
        changes += [_in(folder, argument) for folder in folders for argument in parsed.operands]
    scanned = parsed.operands or [Argument(".")] if program == "tree" else []
    scripts = [argument.text for argument in parsed.values(*tool.run)]
    return Effects(changes=changes, reads=reads, scanned=scanned, scripts=scripts)


def _in(folder: Argument, url: Argument) -> Argument:
    """The file that an address is saved to."""
    name = os.path.basename(url.text.partition("?")[0].rstrip("/"))
    return Argument(os.path.join(folder.text, name), folder.known and url.known)


def _pieces(values: list[Argument]) -> list[Argument]:
    """What may be a file in `@FILE`, `name=@FILE;type=x`, `name=<FILE`, `FILE`."""
    pieces = []
    for value in values:
        text = value.text.partition(";")[0]
        texts = {text, *(text.rpartition(mark)[2] for mark in "@<=" if mark in text)}
        pieces += [value.with_text(piece) for piece in sorted(texts)]
    return pieces


EDITORS = frozenset({"vi", "vim", "nvim", "ex", "view", "sqlite3"})


def editor_effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    """They change what they open; commands that they are given may name more."""
    if program == "sqlite3":
        parsed = options(arguments, " -cmd -init -separator -nullvalue")
        code = [argument.text for argument in parsed.operands[1:]]
        return Effects(changes=parsed.operands[:1], code=[*code, *inputs])
    parsed = options(arguments, "cSuiTUWw --cmd")
    code = [argument.text for argument in parsed.values("-c", "--cmd")]
    code += [argument.text[1:] for argument in parsed.operands if argument.text.startswith("+")]
    opened = [argument for argument in parsed.operands if not argument.text.startswith("+")]
    return Effects(changes=[*opened, *parsed.values("-S", "-w", "-W")], code=[*code, *inputs])


def archive_effects(program: str, arguments: list[Argument]) -> Effects:
    """Extracting writes whatever the archive holds into a folder; putting in reads all below the
    operands."""
    return _ARCHIVES[program](arguments)


def _tar(arguments: list[Argument]) -> Effects:
    parsed = options(arguments, _TAR.valued + " -C -f --directory --file", bundled=True)
    folders, archives = parsed.values("-C", "--directory"), parsed.values("-f", "--file")
    scripts = [argument.text.removeprefix("exec=") for argument in parsed.values(*_TAR.run)]
    changes, reads = parsed.values(*_TAR.written), _pieces(parsed.values(*_TAR.read))
    here = folders or [Argument(".")]
    if parsed.has("-x", "--extract", "--get"):
        here = parsed.values("--one-top-level") or here
        named = parsed.operands if not parsed.has(*_RENAMES) else []
        trees = [_under(folder, argument) for folder in here for argument in named] or here
        return Effects(
            changes=changes, trees=trees, reads=reads + archives, scripts=scripts, hint=_APART
        )
    if parsed.has("-t", "--list", "-d", "--diff", "--compare"):
        return Effects(changes=changes, reads=reads + archives, scripts=scripts)
    members = [_under(folder, argument) for folder in here for argument in parsed.operands]
    trees = members if parsed.has("--remove-files") else []
    return Effects(
        changes=changes + archives, trees=trees, reads=reads, scanned=members, scripts=scripts
    )


def _under(folder: Argument, argument: Argument) -> Argument:
    path = os.path.join(folder.text, argument.text) if folder.text != "." else argument.text
    return Argument(path, folder.known and argument.known, folder.pattern or argument.pattern)


def _unzip(arguments: list[Argument]) -> Effects:
    parsed = options(arguments, "dxP -d")
    looks = parsed.has("-l", "-t", "-v", "-p", "-c", "-Z", "-z")
    folders = parsed.values("-d") or [Argument(".")]
    members = parsed.operands[1:]
    trees = [_under(folder, argument) for folder in folders for argument in members] or folders
    return Effects(trees=[] if looks else trees, reads=parsed.operands[:1], hint=_APART)


def _seven(arguments: list[Argument]) -> Effects:
    parsed = options(arguments, "opwm")
    verb, rest = "".join(argument.text for argument in parsed.operands[:1]), parsed.operands[1:]
    if verb in ("x", "e"):
        return Effects(trees=parsed.values("-o") or [Argument(".")], reads=rest, hint=_APART)
    return (
        Effects(reads=rest)
        if verb in ("l", "t", "h")
        else Effects(changes=rest[:1], scanned=rest[1:])
    )


def _cpio(arguments: list[Argument]) -> Effects:
    parsed = options(arguments, "DFEHIMOR --directory --file")
    folders = parsed.values("-D", "--directory") or [Argument(".")]
    archives = parsed.values("-F", "-O", "-I", "--file")
    if parsed.has("-p", "--pass-through"):
        return Effects(trees=parsed.operands, hint=_APART)
    return Effects(
        changes=archives, trees=folders if parsed.has("-i", "--extract") else [], hint=_APART
    )


def _zip(arguments: list[Argument]) -> Effects:
    parsed = options(arguments, "bnxtPsi")
    archive, rest = parsed.operands[:1], parsed.operands[1:]
    return Effects(changes=archive, trees=rest if parsed.has("-m") else [], scanned=rest)


def _patch(arguments: list[Argument]) -> Effects:
    parsed = options(
        arguments, "BDdFgiopVYzr --directory --input --output --strip --fuzz --reject-file"
    )
    written = parsed.values("-o", "--output", "-r", "--reject-file")
    if parsed.operands or parsed.has("-o", "--output"):
        return Effects(changes=written + parsed.operands, reads=parsed.values("-i", "--input"))
    hint = (
        "Name the file that is patched, e.g. `patch model.py < p.patch`, or change it with Edit."
    )
    return Effects(
        changes=written, trees=parsed.values("-d", "--directory") or [Argument(".")], hint=hint
    )


def _ar(arguments: list[Argument]) -> Effects:
    """`python -m tarfile -e ARCHIVE [FOLDER]`, and zipfile's."""
    parsed: Options = options(arguments, "")
    if parsed.has("-e", "--extract"):
        return Effects(
            trees=parsed.operands[1:] or [Argument(".")], reads=parsed.operands[:1], hint=_APART
        )
    created = parsed.has("-c", "--create")
    return Effects(
        changes=parsed.operands[:1] if created else [],
        scanned=parsed.operands[1:] if created else [],
    )


_ARCHIVES: dict[str, Callable[[list[Argument]], Effects]] = {
    "tar": _tar,
    "bsdtar": _tar,
    "gtar": _tar,
    "unzip": _unzip,
    "7z": _seven,
    "7za": _seven,
    "cpio": _cpio,
    "zip": _zip,
    "patch": _patch,
    "tarfile": _ar,
    "zipfile": _ar,
}
ARCHIVES = frozenset(_ARCHIVES)
