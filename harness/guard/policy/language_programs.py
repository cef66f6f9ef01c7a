"""Programs that run program text: shells, Python and other languages, and those that hand text to a
shell. Their text, the files that they are given, and whether the text may write those.
"""

from __future__ import annotations

from .arguments import means, options, table
from .effects import Effects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .arguments import Argument

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

_WRITES = (
    r"open\s*\([^)]*,\s*(?:mode\s*=\s*)?[\"'][rbt]*[wax+]|write|unlink|remove|rename|replace|rmtree"
    r"|shutil|system|subprocess|popen"
    r"|chmod|chown|truncate|symlink|link|touch|mkdir|rmdir|save|dump"
    r"|to_csv|to_json|exec|eval|__import__|delete|\brm\b|>"
)


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
        text.startswith("-")
        and not text.startswith("--")
        and text[1:].isalpha()
        and letter in text
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
                scripts=[item.text for item in body],
                unsure="" if known else "-c runs unknown text",
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


_AWK = frozenset({"awk", "gawk", "mawk", "nawk"})
_VALUED = {
    "sed": "efl --expression --file --line-length",
    "awk": "FvfielE --field-separator --assign --file --include --source --exec",
    "perl": "eEIM",
    "ruby": "eIrC",
    "node": "epr --eval --print --require --import",
    "php": "rBREFdcf",
    "lua": "eil",
    "Rscript": "e",
    "R": "ef --file",
    "julia": "eELp --eval --print --load --project",
}
_TEXTS = ("-e", "-E", "-r", "-B", "-R", "-p", "--eval", "--print", "--expression", "--source")
_FILES = ("-f", "--file")
_NO_TEXT = {
    "awk": ("-E",),
    "perl": ("-r", "-p", "-B", "-R"),
    "ruby": ("-r", "-p", "-B", "-R", "-E"),
    "sed": ("-E", "-r"),
}


def language_effects(
    program: str, arguments: list[Argument], operands: list[Argument], inputs: tuple[str, ...]
) -> Effects:
    """`given` is what an unknown program file gets; a program text's files are changed when it may
    write them."""
    kind = "awk" if program in _AWK else program
    kind = {"nodejs": "node", "bun": "node", "deno": "node"}.get(kind, kind)
    parsed = options(arguments, _VALUED.get(kind, "e"))
    texts = parsed.values(*(name for name in _TEXTS if name not in _NO_TEXT.get(kind, ())))
    files, rest = parsed.values(*_FILES), parsed.operands
    if not texts and not files and kind in ("sed", "awk"):
        texts, rest = rest[:1], rest[1:]
    code = [item.text for item in texts] + list(inputs)
    if kind not in ("awk", "sed"):  # `deno eval TEXT`
        code += [item.text for item in rest if any(sign in item.text for sign in "(;{")]
    named = [
        item.with_text(item.text.partition("=")[2]) for item in parsed.values("-v", "--assign")
    ]
    unsure = (
        "" if all(item.known for item in texts) else f"{program} runs text that is not known here"
    )
    if kind == "sed":
        changes = rest if _in_place(arguments) else []
        return Effects(
            changes=changes,
            reads=rest,
            given=files + rest if files else [],
            code=code,
            unsure=unsure,
        )
    if not code:
        return Effects(given=[*files, *rest, *named])
    changes = rest if kind in ("perl", "ruby") and _in_place(arguments) else []
    if kind == "awk" and any(item.text in ("inplace", "-iinplace") for item in arguments):
        changes = rest
    if any(_writes_given(kind, text) for text in code):
        changes = [*rest, *named]
    return Effects(changes=changes, reads=rest, code=code, unsure=unsure)


def _in_place(arguments: list[Argument]) -> bool:
    """`-i`, `-i.bak`, `-ni`, `--in-place=.bak`, `--in-pl`."""
    for argument in arguments:
        text = argument.text
        head, found, _ = text[1:].partition("i")
        if text.startswith("-") and bool(found) and (head.isalnum() or not head):
            return True
        if means(text.partition("=")[0], "--in-place"):
            return True
    return False


def may_write(code: str) -> bool:
    import re

    return bool(re.search(_WRITES, code, re.IGNORECASE))


def _writes_given(kind: str, code: str) -> bool:
    """Whether program text may write a file whose name it is given: awk's by printing to what is no
    literal."""
    import re

    if kind != "awk":
        return may_write(re.sub(r"[-=]>|>=|>\s*\d", "", code))
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', code)
    printed = r"\bprintf?\b[^;}\n]*?(?:>>?|\|)(?![>|])(?!\s*\"\"\s*(?:[;}\n]|$))"
    return bool(re.search(rf"{printed}|\bsystem\s*\(|\|\s*getline|@(?:include|load)", bare))
