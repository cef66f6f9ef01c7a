"""Options of a command line as getopt reads them: grouped letters, glued and separate values, long
ones in part."""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .words import Argument


class Options(Record):
    """`found`: each option with its value, None where it has none, in order; letters as `-x`.
    `operands`: the rest."""

    __slots__ = ("found", "operands")

    def __init__(self, found: list[tuple[str, Argument | None]], operands: list[Argument]) -> None:
        self.found = found
        self.operands = operands

    def has(self, *names: str) -> bool:
        """Whether one of `names` is given, or an abbreviation that may mean it."""
        return any(means(option, name) for option, _ in self.found for name in names)

    def values(self, *names: str) -> list[Argument]:
        """Values of the options that are or may mean one of `names`."""
        return [
            value
            for option, value in self.found
            if value and any(means(option, name) for name in names)
        ]


def means(option: str, name: str) -> bool:
    """Whether `option` is `name` or an abbreviation of that long one: what it may mean counts as
    meant."""
    return option == name or (
        len(option) > 2 and option.startswith("--") and name.startswith(option)
    )


def options(arguments: list[Argument], valued: str, *, bundled: bool = False) -> Options:
    """`valued` names those that take a value: letters as one word, then long ones. `bundled`: the
    first word may be a group of letters without a dash, whose values follow one by one (tar)."""
    letters, *longs = valued.split(" ")
    found: list[tuple[str, Argument | None]] = []
    operands: list[Argument] = []
    rest = list(arguments)
    if bundled and rest and rest[0].text.isalpha():
        for letter in rest.pop(0).text:
            found.append((f"-{letter}", rest.pop(0) if letter in letters and rest else None))
    while rest:
        argument = rest.pop(0)
        text = argument.text
        if text == "--":
            operands += rest
            break
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            takes = not equals and any(means(name, long) for long in longs)
            found.append(
                (
                    name,
                    argument.with_text(value)
                    if equals
                    else rest.pop(0)
                    if takes and rest
                    else None,
                )
            )
        elif text.startswith("-") and len(text) > 1:
            found += _letters(argument, letters, rest)
        else:
            operands.append(argument)
    return Options(found, operands)


def _letters(
    argument: Argument, valued: str, rest: list[Argument]
) -> list[tuple[str, Argument | None]]:
    found: list[tuple[str, Argument | None]] = []
    text = argument.text
    for place in range(1, len(text)):
        if text[place] in valued:
            glued = text[place + 1 :]
            value = argument.with_text(glued) if glued else rest.pop(0) if rest else None
            return [*found, (f"-{text[place]}", value)]
        found.append((f"-{text[place]}", None))
    return found
