"""What a program with its arguments reads, writes and runs, as far as its command line says."""

from __future__ import annotations

import os

from .arguments import Argument, means, options, table
from .effects import Effects
from .language_programs import (
    CODE,
    FED,
    SHELLS,
    TEXT_RUNNERS,
    is_flag,
    is_python,
    language_effects,
    python_effects,
    shell_effects,
    text_runner,
)
from .output_programs import (
    ARCHIVES,
    EDITORS,
    TOOLS,
    archive_effects,
    editor_effects,
    tool_effects,
)


def find_effects(
    arguments: list[Argument], operands: list[Argument], values: list[Argument]
) -> Effects:
    roots: list[Argument] = []
    for argument in arguments:
        if argument.text.startswith(("-", "(", "!")):
            break
        roots.append(argument)
    only = _names_sought(arguments[len(roots) :])
    roots = roots or [Argument(".")]
    texts = [argument.text for argument in arguments]
    changes = after(arguments, ("-fprint", "-fprintf", "-fls", "-fprint0"))
    programs: list[list[Argument]] = []
    for index, text in enumerate(texts):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = [i for i in range(index + 1, len(texts)) if texts[i] in (";", "+")]
            command = arguments[index + 1 : rest[0] if rest else len(arguments)]
            programs += [
                [root if item.text == "{}" else item for item in command] for root in roots
            ]
    deep = "-delete" in texts or _run_text(programs)
    trees, scanned = roots if deep else [], roots if programs else []
    return Effects(
        changes=changes, trees=trees, reads=roots, scanned=scanned, programs=programs, only=only
    )


def _run_text(programs: list[list[Argument]]) -> bool:
    runs = {os.path.basename(command[0].text) for command in programs if command}
    return any(name in SHELLS or name in CODE or is_python(name) for name in runs)


def _names_sought(expression: list[Argument]) -> tuple[str, ...]:
    """The one wildcard that every name must match before anything is done; none where tests are
    joined otherwise."""
    index, found = 0, ""
    while index < len(expression):
        text = expression[index].text
        if text in ("-name", "-iname") and expression[index + 1 :] and not found:
            value = expression[index + 1]
            found = value.text if value.known else ""
            index += 2
        elif text in ("-type", "-maxdepth", "-mindepth"):
            index += 2
        elif text.startswith(("-exec", "-ok")):
            return (found,) if found else ()
        elif text in ("-print", "-print0", "-delete") and found:
            index += 1
        else:
            return ()
    return (found,) if found else ()


def fd_effects(
    arguments: list[Argument], operands: list[Argument], values: list[Argument]
) -> Effects:
    """`fd PATTERN FOLDER... -x COMMAND`: each file found is put behind the command."""
    at = [
        i
        for i, item in enumerate(arguments)
        if item.text in ("-x", "-X", "--exec", "--exec-batch")
    ]
    own, command = (arguments[: at[0]], arguments[at[0] + 1 :]) if at else (arguments, [])
    roots = [item for item in own if not item.text.startswith("-")][1:] or [Argument(".")]
    programs = (
        [[root if item.text == "{}" else item for item in command] for root in roots]
        if command
        else []
    )
    if command and not any(item.text == "{}" for item in command):
        programs = [[*command, root] for root in roots]
    trees = roots if _run_text(programs) else []
    return Effects(trees=trees, reads=roots, scanned=roots if programs else [], programs=programs)


def after(arguments: list[Argument], names: tuple[str, ...]) -> list[Argument]:
    """Values of the options `names`, in the forms `-o X`, `-oX` and `--option=X`."""
    values = []
    for index, argument in enumerate(arguments):
        if argument.text in names:
            values += arguments[index + 1 : index + 2]
            continue
        for name in names:
            if name.startswith("--") and argument.text.startswith(name + "="):
                values.append(argument.with_text(argument.text[len(name) + 1 :]))
            elif (
                len(name) == 2
                and argument.text.startswith(name)
                and not argument.text.startswith("--")
            ):
                values.append(argument.with_text(argument.text[2:]))
    return values


_READERS = table(
    "cat head tail less more wc grep egrep fgrep rg diff cmp comm ls stat file sha256sum sha1sum"
    " md5sum shasum du df test [ echo printf realpath readlink basename dirname jq cut tr od"
    " hexdump strings column nl tac fold paste join pwd true false : which type date id whoami env"
    " printenv sleep wait jobs bat ag zcat seq expr nproc free uname ps cd pushd popd export"
    " declare typeset local readonly set shopt umask unset read return exit break continue hash"
    " ulimit rgrep ack ugrep"
)
_RECURSIVE = table("rg ag ack ugrep rgrep")
_DEEP = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), "rR"),
    **dict.fromkeys(("cp", "scp"), "rRa"),
    "rsync": "ra",
    "ls": "R",
    "diff": "r",
}
"""Programs that read all below a folder: always, or with one of these letters."""
_DEEP_LONG = ("--recursive", "--dereference-recursive", "--archive", "--directories=recurse")
_MODES = table("chmod chown chgrp chattr setfacl")
_REMOVERS = frozenset({"rm", "shred", "trash", "rename", "link"})
_CHANGE_ALL = table(
    "rmdir unlink touch chmod chown chgrp chattr setfacl truncate mkdir mkfifo mknod tee sponge"
    " gzip gunzip bzip2 bunzip2 xz unxz zstd ed nano emacs split csplit mktemp dos2unix unix2dos"
    " pax black isort autopep8 prettier"
)
_COPIES = frozenset({"cp", "install", "rsync", "scp", "ditto", "mv", "ln"})


def effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects | None:
    """What `program` does; None for a program that this module does not know."""
    operands = [
        argument
        for argument in arguments
        if not argument.text.startswith("-") or not argument.known
    ]
    values = _option_values(arguments)
    if program in TOOLS:
        return tool_effects(program, arguments)
    if program in _READERS or program in _RECURSIVE:
        return _reads(program, arguments, operands)
    if program in _REMOVERS:
        return Effects(trees=operands)
    if program in _CHANGE_ALL:
        deep = any(
            is_flag(argument.text, "R") or argument.text == "--recursive" for argument in arguments
        )
        opened = operands if program in _MODES else []
        return (
            Effects(trees=operands) if deep else Effects(changes=operands + values, scanned=opened)
        )
    if program in _COPIES:
        return _copies(program, arguments, operands)
    if program in SHELLS or program in FED or program in ("eval", "trap"):
        return shell_effects(program, arguments, inputs)
    if is_python(program):
        module = _module(arguments)
        if module == "json.tool":
            return _second_written(arguments, options(arguments[2:], " --indent").operands, values)
        return (
            archive_effects(module, arguments[2:])
            if module in ARCHIVES
            else python_effects(arguments, inputs)
        )
    if program in CODE:
        return language_effects(program, arguments, operands, inputs)
    if program in ARCHIVES:
        return archive_effects(program, arguments)
    if program in EDITORS:
        return editor_effects(program, arguments, inputs)
    special = _SPECIAL.get(program)
    return special(arguments, operands, values) if special else None


def _module(arguments: list[Argument]) -> str:
    texts = [argument.text for argument in arguments[:2]]
    return texts[1] if len(texts) > 1 and texts[0] == "-m" else ""


def _reads(program: str, arguments: list[Argument], operands: list[Argument]) -> Effects:
    if program not in _RECURSIVE and not _is_deep(program, arguments):
        return Effects(reads=operands)
    return Effects(
        reads=operands, scanned=operands if len(operands) > 1 else [*operands, Argument(".")]
    )


def _is_deep(program: str, arguments: list[Argument]) -> bool:
    letters = _DEEP.get(program, "")
    return bool(letters) and any(
        any(is_flag(argument.text, letter) for letter in letters)
        or (argument.text[:2] == "--" and any(means(argument.text, name) for name in _DEEP_LONG))
        or argument.text in ("recurse", "-drecurse")
        for argument in arguments
    )


def _option_values(arguments: list[Argument]) -> list[Argument]:
    """`value` of every `--option=value` and `-ovalue`."""
    values = []
    for argument in arguments:
        if argument.text.startswith("-") and "=" in argument.text:
            values.append(argument.with_text(argument.text.split("=", 1)[1]))
        elif argument.text.startswith("-") and argument.text[1:2].isalpha() and argument.text[2:]:
            values.append(argument.with_text(argument.text[2:]))
    return values


def _copies(program: str, arguments: list[Argument], operands: list[Argument]) -> Effects:
    folders = after(arguments, ("-t", "--target-directory"))
    sources, targets = (operands, folders) if folders else (operands[:-1], operands[-1:])
    if program == "ln" and len(operands) == 1:
        sources, targets = operands, [Argument(".")]
    placed = [_placed(source, target) for target in targets for source in sources]
    deletes = any(argument.text.startswith(("--del", "--remove-source")) for argument in arguments)
    links = program in ("mv", "ln") or any(
        argument.text in ("--link", "--symbolic-link")
        or (argument.text[:2] != "--" and _has_link_flag(argument.text))
        for argument in arguments
    )
    spread = any(
        source.text.endswith(("/.", "/..")) or source.text in (".", "..") for source in sources
    )
    spread = spread or (
        program == "rsync" and any(source.text.endswith("/") for source in sources)
    )
    deep = program == "rsync" or _is_deep(program, arguments)
    itself = any(
        is_flag(argument.text, "T") or means(argument.text, "--no-target-directory")
        for argument in arguments
    )
    merged = (
        (targets if spread or itself else placed)
        if deep or program == "mv"
        else targets
        if spread
        else []
    )
    trees = (sources if links else []) + (targets + sources if deletes else merged)
    return Effects(
        changes=targets + placed,
        trees=trees,
        reads=sources,
        scanned=sources if deep or links else [],
    )


def _placed(source: Argument, target: Argument) -> Argument:
    """What `source` is called when it is put into the folder `target`."""
    path = os.path.join(target.text, os.path.basename(source.text.rstrip("/")))
    return Argument(path, source.known and target.known, source.pattern or target.pattern)


def _has_link_flag(text: str) -> bool:
    letters = text[1:] if text.startswith("-") else ""
    head = letters[
        : next((i for i, character in enumerate(letters) if not character.isalpha()), len(letters))
    ]
    return "l" in head or "s" in head


def _dd(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    def taken(name: str) -> list[Argument]:
        return [
            argument.with_text(argument.text[len(name) :])
            for argument in arguments
            if argument.text.startswith(name)
        ]

    return Effects(changes=taken("of="), reads=taken("if="))


def _second_written(
    arguments: list[Argument], operands: list[Argument], values: list[Argument]
) -> Effects:
    """`uniq IN OUT`, `xxd IN OUT`."""
    return Effects(changes=operands[1:], reads=operands[:1])


def _yq(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    parsed = options(arguments, "oIp --output-format --input-format --indent")
    in_place = parsed.has("-i", "--inplace", "--in-place")
    return Effects(changes=parsed.operands if in_place else [], reads=parsed.operands)


def _socat(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    """Addresses `KIND:what,option`: a file that may be written, or a command."""
    scripts, changes = [], []
    for operand in operands:
        kind, _, what = operand.text.partition(":")
        if kind.upper() in ("EXEC", "SYSTEM", "SHELL"):
            scripts.append(what.partition(",")[0])
        else:
            changes.append(operand.with_text(what.partition(",")[0] or kind))
    return Effects(changes=changes, scripts=scripts)


def _source(
    arguments: list[Argument], operands: list[Argument], values: list[Argument]
) -> Effects:
    known = all(operand.known for operand in operands)
    return Effects(given=operands, unsure="" if known else "it runs text that is not known here")


_SPECIAL = {
    "dd": _dd,
    "find": find_effects,
    "fd": fd_effects,
    "fdfind": fd_effects,
    "uniq": _second_written,
    "xxd": _second_written,
    "yq": _yq,
    "socat": _socat,
    "source": _source,
    ".": _source,
    **dict.fromkeys(TEXT_RUNNERS, text_runner),
}
