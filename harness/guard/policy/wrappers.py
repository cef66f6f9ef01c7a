"""Programs that run another program: the words in front of the one that matters are taken off."""

from __future__ import annotations

import os

from .named_values import Record
from .shell_script import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .arguments import Argument


class Wrapper(Record):
    """`valued`: options whose value is the next word; `operands`: words of its own before the
    program; `verbs`: only with one of these as first word, e.g. `uv run`."""

    __slots__ = ("operands", "valued", "verbs")

    def __init__(
        self, valued: tuple[str, ...] = (), operands: int = 0, verbs: tuple[str, ...] = ()
    ) -> None:
        self.valued = valued
        self.operands = operands
        self.verbs = verbs


WRAPPERS: dict[str, Wrapper] = {
    "env": Wrapper(("-u", "--unset", "-C", "--chdir", "-a", "--argv0")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "time": Wrapper(("-f", "--format", "-o", "--output")),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "-n", "--class", "--classdata")),
    "stdbuf": Wrapper(("-i", "-o", "-e")),
    "timeout": Wrapper(("-s", "--signal", "-k", "--kill-after"), 1),
    "gtimeout": Wrapper(("-s", "--signal", "-k", "--kill-after"), 1),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper(("-a",)),
    "sudo": Wrapper(("-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t", "-T", "-U")),
    "doas": Wrapper(("-u", "-C")),
    "chrt": Wrapper((), 1),
    "taskset": Wrapper((), 1),
    "numactl": Wrapper(("-C", "-m", "-N", "-i", "-p")),
    "flock": Wrapper(("-w", "--timeout", "-E"), 1),
    "xargs": Wrapper(
        (
            "-I",
            "-i",
            "-n",
            "-P",
            "-d",
            "-L",
            "-s",
            "-E",
            "-a",
            "--arg-file",
            "--max-args",
            "--max-procs",
        )
    ),
    "parallel": Wrapper(("-j", "--jobs", "-a", "--colsep", "-n", "-N")),
    "watch": Wrapper(("-n", "--interval")),
    "strace": Wrapper(("-o", "-e", "-p", "-s", "-P", "-E")),
    "unbuffer": Wrapper(),
    "chronic": Wrapper(),
    "busybox": Wrapper(),
    "caffeinate": Wrapper(("-t", "-w")),
    "unshare": Wrapper(),
    "prlimit": Wrapper(),
    "uv": Wrapper(
        ("--with", "--python", "-p", "--project", "--directory", "--extra", "--group"), 0, ("run",)
    ),
    "poetry": Wrapper(("-C", "--directory"), 0, ("run",)),
    "pipenv": Wrapper((), 0, ("run",)),
    "pdm": Wrapper((), 0, ("run",)),
    "hatch": Wrapper(("-e",), 0, ("run",)),
    "conda": Wrapper(("-n", "--name", "-p", "--prefix", "--cwd"), 0, ("run",)),
    "micromamba": Wrapper(("-n", "--name", "-p", "--prefix"), 0, ("run",)),
    "coverage": Wrapper(("--rcfile", "--source", "--data-file"), 0, ("run",)),
}
INPUT_NAMES = frozenset({"xargs", "parallel"})
"""Those whose program gets further words from standard input."""


class Unwrapped:
    """`arguments`: the program that is run in the end, with its arguments; empty when there is
    none. `folders`: working directories that a wrapper sets. `scripts`: shell text that it runs
    (`env -S`, `flock -c`). `files`: those that it writes itself (`time -o`)."""

    __slots__ = ("arguments", "files", "folders", "scripts", "wrappers")

    def __init__(self, arguments: list[Argument]) -> None:
        self.arguments = arguments
        self.wrappers: list[str] = []
        self.folders: list[Argument] = []
        self.scripts: list[Argument] = []
        self.files: list[Argument] = []


def unwrap(arguments: list[Argument]) -> Unwrapped:
    """Take off wrappers, however many, with their options."""
    found = Unwrapped(list(arguments))
    while found.arguments:
        name = os.path.basename(found.arguments[0].text)
        wrapper = WRAPPERS.get(name)
        if wrapper is None:
            break
        rest = found.arguments[1:]
        if wrapper.verbs:
            place = next((i for i, item in enumerate(rest) if item.text in wrapper.verbs), None)
            if place is None:
                break
            rest = rest[place + 1 :]
        found.wrappers.append(name)
        found.arguments = _strip(name, wrapper, rest, found)
    return found


def _strip(name: str, wrapper: Wrapper, rest: list[Argument], found: Unwrapped) -> list[Argument]:
    operands = wrapper.operands
    while rest:
        text = rest[0].text
        if text == "--":
            rest = rest[1:]
        elif text.startswith("-") and len(text) > 1:
            rest = _option(name, wrapper, rest, found)
        elif name in ("env", "sudo", "doas") and is_name(text.partition("=")[0]) and "=" in text:
            rest = rest[1:]
        elif operands:
            operands -= 1
            rest = rest[1:]
        else:
            break
    return rest


def _option(name: str, wrapper: Wrapper, rest: list[Argument], found: Unwrapped) -> list[Argument]:
    """Take one option off; what it says about folders, files or scripts is noted in `found`."""
    text = rest[0].text
    option, _, attached = text.partition("=")
    takes = text in wrapper.valued
    value = rest[1:2] if takes else [rest[0].with_text(attached)] if attached else []
    if option in ("-C", "--chdir", "--directory", "--cwd", "-D") and name in (
        "env",
        "uv",
        "poetry",
        "conda",
        "sudo",
    ):
        found.folders.extend(value)
    if option in ("-o", "--output") and name in ("time", "strace"):
        found.files.extend(value)
    if (name == "env" and option in ("-S", "--split-string")) or (
        name == "flock" and option == "-c"
    ):
        found.scripts.extend(value or rest[1:2])
        return rest[2:] if not attached else rest[1:]
    if name == "env" and text.startswith("-S"):
        found.scripts.append(rest[0].with_text(text[2:]))
    return rest[2:] if takes else rest[1:]
