"""What a program with its arguments reads, writes and runs, as far as its command line says."""

from __future__ import annotations

import os

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
PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Its options whose value is the next word."""
_PYTHON_FLAGS = frozenset("bBdEiIOPqsSuvx")
SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"])


class Effects:
    """`trees` are changed with all that lies below them; `given` is handed to a program of which nothing more is known;
    `code` is program text of another language, `scripts` shell text that is run, `programs` further command lines;
    `unsure` says why more may be touched than is listed, and is empty when not."""

    __slots__ = ("changes", "code", "given", "programs", "reads", "scripts", "trees", "unsure")

    def __init__(
        self,
        *,
        changes: list[Argument] | None = None,
        trees: list[Argument] | None = None,
        given: list[Argument] | None = None,
        reads: list[Argument] | None = None,
        code: list[str] | None = None,
        scripts: list[str] | None = None,
        programs: list[list[Argument]] | None = None,
        unsure: str = "",
    ) -> None:
        self.changes = changes or []
        self.trees = trees or []
        self.given = given or []
        self.reads = reads or []
        self.code = code or []
        self.scripts = scripts or []
        self.programs = programs or []
        self.unsure = unsure


def effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects | None:
    """What `program` does; None for a program that this module does not know."""
    operands = [argument for argument in arguments if not argument.text.startswith("-") or not argument.known]
    values = _option_values(arguments)
    if program in READERS:
        return Effects(reads=operands)
    if program in _REMOVERS:
        return Effects(trees=operands)
    if program in _CHANGE_ALL:
        deep = any(_is_flag(argument.text, "R") or argument.text == "--recursive" for argument in arguments)
        return Effects(trees=operands) if deep else Effects(changes=operands + values)
    if program in _COPIES:
        return _copies(program, arguments, operands)
    if program in SHELLS or program in ("eval", "trap"):
        return _shell(program, arguments, inputs)
    if is_python(program):
        return _python(arguments, inputs)
    if program in _CODE:
        return _other_code(program, arguments, operands, inputs)
    special = _SPECIAL.get(program)
    return special(arguments, operands, values) if special else None


def is_python(program: str) -> bool:
    """Whether `program` is a name of the Python interpreter: python, python3.11, pypy3, ipython, python3.13t."""
    for name in ("python", "ipython", "pypy"):
        if program.startswith(name):
            version = program[len(name) :]
            version = version[:-1] if version.endswith("t") else version
            return not version or all(part.isdigit() for part in version.split("."))
    return False


def python_option(text: str, letter: str) -> str | None:
    """What stands behind `-c` or `-m` (the `letter`) in one word, flags such as -I before it; None: it is not it."""
    flags, found, rest = text[1:].partition(letter) if text.startswith("-") else ("", "", "")
    return rest if found and _PYTHON_FLAGS.issuperset(flags) else None


def _is_flag(text: str, letter: str) -> bool:
    """Whether `text` is a group of short options with `letter` among them."""
    return text.startswith("-") and not text.startswith("--") and text[1:].isalpha() and letter in text


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
    placed = [
        target.with_text(os.path.join(target.text, os.path.basename(source.text.rstrip("/"))))
        for target in targets
        for source in sources
    ]
    deletes = any(argument.text.startswith(("--del", "--remove-source")) for argument in arguments)
    links = program in ("mv", "ln") or any(
        argument.text in ("--link", "--symbolic-link") or (argument.text[:2] != "--" and _has_link_flag(argument.text))
        for argument in arguments
    )
    spread = any(source.text.endswith(("/.", "/..")) or source.text in (".", "..") for source in sources)
    spread = spread or (program == "rsync" and any(source.text.endswith("/") for source in sources))
    trees = (sources if links else []) + (targets + sources if deletes else targets if spread else [])
    return Effects(changes=targets + placed, trees=trees, reads=sources)


def _has_link_flag(text: str) -> bool:
    letters = text[1:] if text.startswith("-") else ""
    head = letters[: next((i for i, character in enumerate(letters) if not character.isalpha()), len(letters))]
    return "l" in head or "s" in head


def _shell(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    texts = [argument.text for argument in arguments]
    if program == "eval":
        unknown = not all(argument.known for argument in arguments)
        return Effects(scripts=[" ".join(texts)], unsure="eval runs text that is not known here" if unknown else "")
    if program == "trap":
        return Effects(scripts=texts[:1])
    for index, text in enumerate(texts):
        if _is_flag(text, "c"):
            body = arguments[index + 1 : index + 2]
            known = bool(body) and body[0].known
            return Effects(scripts=[item.text for item in body], unsure="" if known else "-c runs unknown text")
    if inputs:
        return Effects(scripts=list(inputs), given=arguments)
    if all(text.startswith("-") for text in texts) and "--version" not in texts:
        return Effects(unsure=f"{program} takes its commands from its input")
    return Effects(given=arguments)


def _python(arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    valued = False
    for index, argument in enumerate(arguments):
        if valued:
            valued = False
            continue
        valued = argument.text in PYTHON_VALUED
        code = python_option(argument.text, "c")
        if code is not None:
            following = [argument.with_text(code)] if code else arguments[index + 1 : index + 2]
            unsure = "" if all(item.known for item in following) else "-c runs unknown text"
            rest = arguments[index + (1 if code else 2) :]
            return Effects(code=[item.text for item in following], given=rest, unsure=unsure)
        asked = argument.text in ("-V", "-VV", "--version", "-h", "--help")
        if asked or python_option(argument.text, "m") is not None:
            return Effects(given=arguments)
        if argument.text == "-":
            break
        if not argument.text.startswith("-"):
            return Effects(given=arguments)
    return Effects(code=list(inputs), given=arguments, unsure="" if inputs else "it takes its program from its input")


def _other_code(program: str, arguments: list[Argument], operands: list[Argument], inputs: tuple[str, ...]) -> Effects:
    in_place = any(_in_place(argument.text) for argument in arguments)
    if program in ("awk", "gawk", "mawk", "nawk"):
        in_place = any(argument.text in ("inplace", "-iinplace") for argument in arguments)
    elif program not in ("sed", "perl", "ruby"):
        in_place = False
    code = [argument.text for argument in arguments if _is_program_text(argument.text)]
    return Effects(changes=operands if in_place else [], reads=operands, code=code + list(inputs))


def _in_place(text: str) -> bool:
    """`-i`, `-i.bak`, `-ni`, `--in-place=.bak`."""
    head, found, _ = text[1:].partition("i")
    return text.startswith("--in-place") or (text.startswith("-") and bool(found) and (head.isalnum() or not head))


def _is_program_text(text: str) -> bool:
    """Whether a word may be a program of sed or awk rather than a file's name; `w` in sed's writes a file."""
    if any(character in "{}();>=|/" or character.isspace() for character in text):
        return True
    head, found, _ = text.removeprefix("-").partition("w")
    return bool(found) and all(character.islower() or character.isdigit() or character == "$" for character in head)


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
    deep = "-delete" in texts or any(name in SHELLS or name in _CODE or is_python(name) for name in runs)
    return Effects(changes=changes, trees=roots if deep else [], reads=roots, programs=programs)


def _downloads(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    changes = _after(
        arguments, ("-o", "-O", "--output", "--output-document", "--output-dir", "-P", "--directory-prefix")
    )
    return Effects(changes=changes, reads=operands)


def _archives(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    changes = _after(arguments, ("-C", "-d", "--directory", "-f", "--file", "--one-top-level"))
    return Effects(changes=changes, reads=operands)


def _sort(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    return Effects(changes=_after(arguments, ("-o", "--output")), reads=operands)


def _source(arguments: list[Argument], operands: list[Argument], values: list[Argument]) -> Effects:
    return Effects(given=operands)


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
