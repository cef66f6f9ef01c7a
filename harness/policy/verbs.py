"""What a program with its arguments reads, writes and runs, as far as its command line says."""

from __future__ import annotations

import os

from .effects import Effects
from .interpreters import (
    CODE,
    FED,
    SHELLS,
    TEXT_RUNNERS,
    code_effects,
    is_flag,
    is_python,
    python_effects,
    shell_effects,
    text_runner,
)
from .words import Argument, table

READERS = table(
    "cat head tail less more wc grep egrep fgrep rg diff cmp comm ls stat file sha256sum sha1sum md5sum shasum du "
    "df test [ echo printf realpath readlink basename dirname jq cut tr od hexdump strings column "
    "nl tac fold paste join pwd true false : which type date id whoami env printenv sleep wait jobs bat ag zcat "
    "seq expr nproc free uname ps cd pushd popd export declare typeset local readonly set shopt umask unset read "
    "return exit break continue hash ulimit"
)
_REMOVERS = frozenset({"rm", "shred", "trash", "rename", "link"})
_CHANGE_ALL = table(
    "rmdir unlink touch chmod chown chgrp chattr setfacl truncate mkdir mkfifo mknod tee sponge gzip gunzip bzip2 "
    "bunzip2 xz unxz zstd patch ed ex vi vim nvim nano emacs sqlite3 split csplit mktemp dos2unix unix2dos cpio "
    "pax zip 7z black isort autopep8 prettier"
)
_COPIES = frozenset({"cp", "install", "rsync", "scp", "ditto", "mv", "ln"})


def effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects | None:
    """What `program` does; None for a program that this module does not know."""
    operands = [argument for argument in arguments if not argument.text.startswith("-") or not argument.known]
    values = _option_values(arguments)
    if program in READERS:
        return Effects(reads=operands)
    if program in _REMOVERS:
        return Effects(trees=operands)
    if program in _CHANGE_ALL:
        deep = any(is_flag(argument.text, "R") or argument.text == "--recursive" for argument in arguments)
        return Effects(trees=operands) if deep else Effects(changes=operands + values)
    if program in _COPIES:
        return _copies(program, arguments, operands)
    if program in SHELLS or program in FED or program in ("eval", "trap"):
        return shell_effects(program, arguments, inputs)
    if is_python(program):
        return python_effects(arguments, inputs)
    if program in CODE:
        return code_effects(program, arguments, operands, inputs)
    special = _SPECIAL.get(program)
    return special(arguments, operands, values) if special else None


def _option_values(arguments: list[Argument]) -> list[Argument]:
    """`value` of every `--option=value` and `-ovalue`."""
    found = []
    for argument in arguments:
        if argument.text.startswith("-") and "=" in argument.text:
            found.append(argument.with_text(argument.text.split("=", 1)[1]))
        elif argument.text.startswith("-") and argument.text[1:2].isalpha() and argument.text[2:]:
            found.append(argument.with_text(argument.text[2:]))
    return found


def _after(arguments: list[Argument], names: tuple[str, ...]) -> list[Argument]:
    """Values of the options `names`, in the forms `-o X`, `-oX` and `--option=X`."""
    found = []
    for index, argument in enumerate(arguments):
        if argument.text in names:
            found += arguments[index + 1 : index + 2]
            continue
        for name in names:
            if name.startswith("--") and argument.text.startswith(name + "="):
                found.append(argument.with_text(argument.text[len(name) + 1 :]))
            elif len(name) == 2 and argument.text.startswith(name) and not argument.text.startswith("--"):
                found.append(argument.with_text(argument.text[2:]))
    return found


def _copies(program: str, arguments: list[Argument], operands: list[Argument]) -> Effects:
    folders = _after(arguments, ("-t", "--target-directory"))
    sources, targets = (operands, folders) if folders else (operands[:-1], operands[-1:])
    if program == "ln" and len(operands) == 1:
        sources, targets = operands, [Argument(".")]
    placed = [_placed(source, target) for target in targets for source in sources]
    deletes = any(argument.text.startswith(("--del", "--remove-source")) for argument in arguments)
    links = program in ("mv", "ln") or any(
        argument.text in ("--link", "--symbolic-link") or (argument.text[:2] != "--" and _has_link_flag(argument.text))
        for argument in arguments
    )
    spread = any(source.text.endswith(("/.", "/..")) or source.text in (".", "..") for source in sources)
    spread = spread or (program == "rsync" and any(source.text.endswith("/") for source in sources))
    trees = (sources if links else []) + (targets + sources if deletes else targets if spread else [])
    return Effects(changes=targets + placed, trees=trees, reads=sources)


def _placed(source: Argument, target: Argument) -> Argument:
    """What `source` is called when it is put into the folder `target`."""
    path = os.path.join(target.text, os.path.basename(source.text.rstrip("/")))
    return Argument(path, source.known and target.known, source.pattern or target.pattern)


def _has_link_flag(text: str) -> bool:
    letters = text[1:] if text.startswith("-") else ""
    head = letters[: next((i for i, character in enumerate(letters) if not character.isalpha()), len(letters))]
    return "l" in head or "s" in head


def _dd(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    def taken(name: str) -> list[Argument]:
        return [item.with_text(item.text[len(name) :]) for item in arguments if item.text.startswith(name)]

    return Effects(changes=taken("of="), reads=taken("if="))


def _find(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    roots: list[Argument] = []
    for argument in arguments:
        if argument.text.startswith(("-", "(", "!")):
            break
        roots.append(argument)
    roots = roots or [Argument(".")]
    texts = [argument.text for argument in arguments]
    changes = _after(arguments, ("-fprint", "-fprintf", "-fls", "-fprint0"))
    programs: list[list[Argument]] = []
    for index, text in enumerate(texts):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = [i for i in range(index + 1, len(texts)) if texts[i] in (";", "+")]
            command = arguments[index + 1 : rest[0] if rest else len(arguments)]
            programs += [[root if item.text == "{}" else item for item in command] for root in roots]
    runs = {os.path.basename(command[0].text) for command in programs if command}
    deep = "-delete" in texts or any(name in SHELLS or name in CODE or is_python(name) for name in runs)
    return Effects(changes=changes, trees=roots if deep else [], reads=roots, programs=programs)


def _downloads(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    changes = _after(
        arguments, ("-o", "-O", "--output", "--output-document", "--output-dir", "-P", "--directory-prefix")
    )
    return Effects(changes=changes, reads=operands)


def _archives(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    """`tar cf FILE` too: the letters of its first word may stand without a dash, and take the words after it."""
    changes = _after(arguments, ("-C", "-d", "--directory", "-f", "--file", "--one-top-level"))
    letters = arguments[0].text.lstrip("-") if arguments and not arguments[0].text.startswith("--") else ""
    if letters.isalpha() and "f" in letters and set(letters) & set("cruA"):
        changes += arguments[1:3]
    return Effects(changes=changes, reads=operands)


def _sort(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    return Effects(changes=_after(arguments, ("-o", "--output")), reads=operands)


def _second_written(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    """`uniq IN OUT`, `xxd IN OUT`."""
    return Effects(changes=operands[1:], reads=operands[:1])


def _source(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    known = all(operand.known for operand in operands)
    return Effects(given=operands, unsure="" if known else "it runs text that is not known here")


_SPECIAL = {
    "dd": _dd,
    "find": _find,
    "fd": _find,
    "curl": _downloads,
    "wget": _downloads,
    "tar": _archives,
    "bsdtar": _archives,
    "unzip": _archives,
    "sort": _sort,
    "tree": _sort,
    "uniq": _second_written,
    "xxd": _second_written,
    "yq": _sort,
    "source": _source,
    ".": _source,
    **dict.fromkeys(TEXT_RUNNERS, text_runner),
}
