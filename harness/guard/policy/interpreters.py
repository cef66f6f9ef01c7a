"""Programs that run program text: shells, Python and other languages, and those that hand text to a
shell."""

from __future__ import annotations

from .effects import Effects
from .words import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .words import Argument

CODE = table(
    "node nodejs bun deno perl ruby php lua R Rscript osascript tclsh julia awk gawk mawk nawk sed"
)
SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"])
FED = frozenset(["at", "batch", "crontab"])
"""What they read is run by a shell later."""
_SHOWS = ("-l", "-r", "-c", "-d", "-q")
"""Options of those with which they show or drop what waits."""
TEXT_RUNNERS = ("su", "ssh", "script", "tmux", "screen", "expect", "entr", "hyperfine", "runuser")
OWN_LANGUAGE = table(
    "tmux screen zellij dtach abduco expect socat gdb lldb make gmake just ninja emacs emacsclient"
    " vim vi nvim ex tclsh sqlite3 man fc"
)
"""Programs whose words or input are a language of their own in which other programs are started."""
HANDS_TO_SHELL = table("tmux screen zellij dtach abduco vim vi nvim ex")
"""Those whose paths are judged elsewhere already."""
PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Its options whose value is the next word."""
_PYTHON_FLAGS = frozenset("bBdEiIOPqsSuvx")


def is_python(program: str) -> bool:
    """Whether `program` is a name of the Python interpreter: python, python3.11, pypy3, ipython,
    python3.13t."""
    for name in ("python", "ipython", "pypy"):
        if program.startswith(name):
            version = program[len(name) :]
            version = version[:-4] if version.endswith("-dbg") else version
            version = version[:-1] if version.endswith(("t", "w")) else version
            return not version or all(part.isdigit() for part in version.split("."))
    return False


def python_option(text: str, letter: str) -> str | None:
    """What stands behind `-c` or `-m` (the `letter`) in one word, flags such as -I before it; None:
    it is not it."""
    flags, found, rest = text[1:].partition(letter) if text.startswith("-") else ("", "", "")
    return rest if found and _PYTHON_FLAGS.issuperset(flags) else None


def is_flag(text: str, letter: str) -> bool:
    """Whether `text` is a group of short options with `letter` among them."""
    return (
        text.startswith("-") and not text.startswith("--") and text[1:].isalpha() and letter in text
    )


def shell_effects(program: str, arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
    texts = [argument.text for argument in arguments]
    if program in FED:
        reads = not inputs and not any(text in _SHOWS for text in texts)
        return Effects(
            scripts=list(inputs),
            given=arguments,
            unsure=f"{program} runs its input" if reads else "",
        )
    if program == "eval":
        unknown = not all(argument.known for argument in arguments)
        return Effects(
            scripts=[" ".join(texts)],
            unsure="eval runs text that is not known here" if unknown else "",
        )
    if program == "trap":
        return Effects(scripts=texts[:1])
    for index, text in enumerate(texts):
        if is_flag(text, "c"):
            body = arguments[index + 1 : index + 2]
            known = bool(body) and body[0].known
            return Effects(
                scripts=[item.text for item in body], unsure="" if known else "-c runs unknown text"
            )
    if inputs:
        return Effects(scripts=list(inputs), given=arguments)
    if (
        all(text.startswith("-") for text in texts) or texts[:1] == ["/dev/stdin"]
    ) and "--version" not in texts:
        return Effects(unsure=f"{program} takes its commands from its input")
    known = all(argument.known for argument in arguments)
    return Effects(
        given=arguments, unsure="" if known else f"{program} runs text that is not known here"
    )


def python_effects(arguments: list[Argument], inputs: tuple[str, ...]) -> Effects:
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
            return Effects(
                given=arguments,
                unsure="" if argument.known else "it runs a file that is not known here",
            )
    return Effects(
        code=list(inputs),
        given=arguments,
        unsure="" if inputs else "it takes its program from its input",
    )


def text_runner(
    arguments: list[Argument], operands: list[Argument], values: list[Argument]
) -> Effects:
    """Programs that hand one of their words, or their input, to a shell."""
    return Effects(
        given=arguments, scripts=[argument.text for argument in arguments if " " in argument.text]
    )
