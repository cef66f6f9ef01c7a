"""Programs of other languages than shell and Python: their program text, the files that they are
given, and whether that text may write those."""

from __future__ import annotations

from .effects import Effects
from .options import means, options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .words import Argument

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
    found = options(arguments, _VALUED.get(kind, "e"))
    texts = found.values(*(name for name in _TEXTS if name not in _NO_TEXT.get(kind, ())))
    files, rest = found.values(*_FILES), found.operands
    if not texts and not files and kind in ("sed", "awk"):
        texts, rest = rest[:1], rest[1:]
    code = [item.text for item in texts] + list(inputs)
    if kind not in ("awk", "sed"):  # `deno eval TEXT`
        code += [item.text for item in rest if any(sign in item.text for sign in "(;{")]
    named = [item.with_text(item.text.partition("=")[2]) for item in found.values("-v", "--assign")]
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


def _writes_given(kind: str, code: str) -> bool:
    """Whether program text may write a file whose name it is given: awk's by printing to what is no
    literal."""
    import re

    from .code import may_write

    if kind != "awk":
        return may_write(re.sub(r"[-=]>|>=|>\s*\d", "", code))
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', code)
    printed = r"\bprintf?\b[^;}\n]*?(?:>>?|\|)(?![>|])(?!\s*\"\"\s*(?:[;}\n]|$))"
    return bool(re.search(rf"{printed}|\bsystem\s*\(|\|\s*getline|@(?:include|load)", bare))
