"""Which places a call names: only for finding the projects that must judge it, so rather too many
than too few."""

from __future__ import annotations

import os

from harness.guard.policy.arguments import arguments
from harness.guard.policy.paths import places
from harness.guard.policy.shell_reader import read_script
from harness.guard.policy.tool_arguments import LONGEST_PATH, command_lines, paths, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST, MOST_FOLDERS = 20_000, 16
_BETWEEN = str.maketrans(dict.fromkeys("\t\r\n'\"`;&|<>(){}=,:$!", " "))


def mentioned(tool: str, tool_input: dict[str, Any], *bases: str) -> list[str]:
    """Absolute places: the working directory, which is the first of `bases`, and whatever the
    command or the arguments may mean as a path, from each of `bases` and from each folder that they
    name themselves."""
    names = dict.fromkeys([] if tool == "Bash" else paths(tool_input))
    for line in (*command_lines(tool_input), *programs(tool_input)):
        names.update(_command_names(line))
    folders = list(dict.fromkeys(bases))
    places_named = dict.fromkeys(folders[:1])
    tried = 0
    for folder in folders:  # grows while it is read: `cd a; cd b` names a/b
        for name in names:
            tried += 1
            for place in _places(name, folder) if tried <= MOST else ():
                places_named[place] = None
                if len(folders) < MOST_FOLDERS and place not in folders and os.path.isdir(place):
                    folders.append(place)
    return list(places_named)


def _places(name: str, folder: str) -> tuple[str, ...]:
    if not name or len(name) > LONGEST_PATH or "\n" in name:
        return ()
    try:
        if (
            "/" not in name
            and not name.startswith(("~", ".."))
            and not os.path.lexists(os.path.join(folder, name))
        ):
            return ()  # it would lie in the folder itself
        return places(name, folder)
    except (ValueError, OSError):
        return ()


def _command_names(command: str) -> dict[str, None]:
    """The words of a command line, as a shell reads them, and whatever stands between blanks and
    quotes."""
    names = dict.fromkeys(command.translate(_BETWEEN).split())
    names.update(dict.fromkeys(name[2:] for name in [*names] if name.startswith("-")))  # -Cfolder
    for part in read_script(command).commands:
        for argument in arguments(part.words, {}):
            names[argument.text] = None
        for redirection in part.redirections:
            names.update(
                dict.fromkeys(argument.text for argument in arguments((redirection.target,), {}))
            )
    return names
