"""find and fd: what they look for, and the commands that they run on it."""

from __future__ import annotations

import os

from .effects import Effects
from .interpreters import CODE, SHELLS, is_python
from .words import Argument


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
        i for i, item in enumerate(arguments) if item.text in ("-x", "-X", "--exec", "--exec-batch")
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
    found = []
    for index, argument in enumerate(arguments):
        if argument.text in names:
            found += arguments[index + 1 : index + 2]
            continue
        for name in names:
            if name.startswith("--") and argument.text.startswith(name + "="):
                found.append(argument.with_text(argument.text[len(name) + 1 :]))
            elif (
                len(name) == 2
                and argument.text.startswith(name)
                and not argument.text.startswith("--")
            ):
                found.append(argument.with_text(argument.text[2:]))
    return found
