"""What a program with its arguments reads, writes and runs, as far as its command line says."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .words import Argument, table

READERS = table(
    "cat head tail less more wc grep egrep fgrep rg diff cmp comm ls stat file sha256sum sha1sum md5sum shasum du "
    "df tree test [ echo printf realpath readlink basename dirname jq uniq cut tr od xxd hexdump strings column "
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
_CODE = table("node nodejs bun deno perl ruby php lua R Rscript osascript tclsh julia awk gawk mawk nawk sed")
_CODE_OPTION = re.compile(r"-[bBdEiIOPqsSuvx]*c(.*)", re.DOTALL)
_MODULE_OPTION = re.compile(r"-[bBdEiIOPqsSuvx]*m(.*)")
_IN_PLACE = re.compile(r"-[a-zA-Z0-9]*i.*|--in-place.*|-i")
PYTHON = re.compile(r"(?:python|pypy|ipython)(?:\d+(?:\.\d+)*)?t?\Z")
SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"])


class Effects(NamedTuple):
    changes: list[Argument]
    trees: list[Argument]
    """Changed with all that lies below them."""
    given: list[Argument]
    """Handed to a program of which nothing more is known."""
    reads: list[Argument]
    code: list[str]
    """Program text of another language."""
    scripts: list[str]
    """Shell text that is run."""
    programs: list[list[Argument]]
    """Further command lines that are run."""
    unsure: str
    """Why more may be touched than is listed; empty when not."""


def effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects | None:
    """What `program` does; None for a program that this module does not know."""
    operands = [argument for argument in arguments if not argument.text.startswith("-") or not argument.known]
    values = _option_values(arguments)
    if program in READERS:
        return _made(reads=operands)
    if program in _REMOVERS:
        return _made(trees=operands)
    if program in _CHANGE_ALL:
        deep = any(re.fullmatch(r"-[a-zA-Z]*R[a-zA-Z]*|--recursive", argument.text) for argument in arguments)
        return _made(trees=operands) if deep else _made(changes=operands + values)
    if program in _COPIES:
        return _copies(program, arguments, operands)
    if program in SHELLS or program in ("eval", "trap"):
        return _shell(program, arguments, inputs)
    if PYTHON.match(program):
        return _python(arguments, inputs)
    if program in _CODE:
        return _other_code(program, arguments, operands, inputs)
    special = _SPECIAL.get(program)
    return special(arguments, operands, values) if special else None


def _made(
    *,
    changes: list[Argument] | None = None,
    trees: list[Argument] | None = None,
    given: list[Argument] | None = None,
    reads: list[Argument] | None = None,
    code: list[str] | None = None,
    scripts: list[str] | None = None,
    programs: list[list[Argument]] | None = None,
    unsure: str = "",
) -> Effects:
    return Effects(
        changes or [], trees or [], given or [], reads or [], code or [], scripts or [], programs or [], unsure
    )


def _option_values(arguments: list[Argument]) -> list[Argument]:
    """`value` of every `--option=value` and `-ovalue`."""
    found = []
    for argument in arguments:
        if argument.text.startswith("-") and "=" in argument.text:
            found.append(argument._replace(text=argument.text.split("=", 1)[1]))
        elif re.match(r"-[A-Za-z].", argument.text):
            found.append(argument._replace(text=argument.text[2:]))
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
                found.append(argument._replace(text=argument.text[len(name) + 1 :]))
            elif len(name) == 2 and argument.text.startswith(name) and not argument.text.startswith("--"):
                found.append(argument._replace(text=argument.text[2:]))
    return found


def _copies(program: str, arguments: list[Argument], operands: list[Argument]) -> Effects:
    folders = _after(arguments, ("-t", "--target-directory"))
    sources, targets = (operands, folders) if folders else (operands[:-1], operands[-1:])
    if program == "ln" and len(operands) == 1:
        sources, targets = operands, [Argument(".")]
    placed = [
        target._replace(text=os.path.join(target.text, os.path.basename(source.text.rstrip("/"))), known=target.known)
        for target in targets
        for source in sources
    ]
    deletes = any(argument.text.startswith(("--del", "--remove-source")) for argument in arguments)
    links = program in ("mv", "ln") or any(
        argument.text in ("--link", "--symbolic-link") or re.match(r"-[a-zA-Z]*[ls]", argument.text)
        for argument in arguments
    )
    trees = (sources if links else []) + (targets + sources if deletes else [])
    return _made(changes=targets + placed, trees=trees, reads=sources)


def _shell(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    texts = [argument.text for argument in arguments]
    if program == "eval":
        unknown = not all(argument.known for argument in arguments)
        return _made(scripts=[" ".join(texts)], unsure="eval runs text that is not known here" if unknown else "")
    if program == "trap":
        return _made(scripts=texts[:1])
    for index, text in enumerate(texts):
        if re.match(r"-[a-zA-Z]*c\Z", text):
            body = arguments[index + 1 : index + 2]
            known = bool(body) and body[0].known
            return _made(scripts=[item.text for item in body], unsure="" if known else "-c runs unknown text")
    if inputs:
        return _made(scripts=list(inputs), given=arguments)
    if all(text.startswith("-") for text in texts) and "--version" not in texts:
        return _made(unsure=f"{program} takes its commands from its input")
    return _made(given=arguments)


def _python(arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    for index, argument in enumerate(arguments):
        code = _CODE_OPTION.match(argument.text)
        if code:
            following = [argument._replace(text=code.group(1))] if code.group(1) else arguments[index + 1 : index + 2]
            unsure = "" if all(item.known for item in following) else "-c runs unknown text"
            rest = arguments[index + (1 if code.group(1) else 2) :]
            return _made(code=[item.text for item in following], given=rest, unsure=unsure)
        if argument.text in ("-V", "-VV", "--version", "-h", "--help") or _MODULE_OPTION.match(argument.text):
            return _made(given=arguments)
        if argument.text == "-":
            break
        if not argument.text.startswith("-"):
            return _made(given=arguments)
    return _made(code=list(inputs), given=arguments, unsure="" if inputs else "it takes its program from its input")


def _other_code(program: str, arguments: list[Argument], operands: list[Argument], inputs: tuple[str, ...]) -> Effects:
    in_place = any(_IN_PLACE.fullmatch(argument.text) for argument in arguments if argument.text.startswith("-"))
    if program in ("awk", "gawk", "mawk", "nawk"):
        in_place = any(argument.text in ("inplace", "-iinplace") for argument in arguments)
    elif program not in ("sed", "perl", "ruby"):
        in_place = False
    code = [argument.text for argument in arguments if re.search(r"[\s{}();>=|/]|\A-?[a-z0-9$]*w", argument.text)]
    return _made(changes=operands if in_place else [], reads=operands, code=code + list(inputs))


def _dd(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    def taken(name: str) -> list[Argument]:
        return [item._replace(text=item.text[len(name) :]) for item in arguments if item.text.startswith(name)]

    return _made(changes=taken("of="), reads=taken("if="))


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
    deep = "-delete" in texts or any(name in SHELLS or name in _CODE or PYTHON.match(name) for name in runs)
    return _made(changes=changes, trees=roots if deep else [], reads=roots, programs=programs)


def _downloads(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    changes = _after(
        arguments, ("-o", "-O", "--output", "--output-document", "--output-dir", "-P", "--directory-prefix")
    )
    return _made(changes=changes, reads=operands)


def _archives(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    changes = _after(arguments, ("-C", "-d", "--directory", "-f", "--file", "--one-top-level"))
    return _made(changes=changes, reads=operands)


def _sort(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    return _made(changes=_after(arguments, ("-o", "--output")), reads=operands)


def _source(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    return _made(given=operands)


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
    "yq": _sort,
    "source": _source,
    ".": _source,
}
