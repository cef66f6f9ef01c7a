"""What a text names that only starts something: a person's verb of the harness's command, the
plan's training.

For text that is run but not read as a command line: programs of other languages, what is typed into
a terminal, and a whole command line of which one program is not known. Naming all words of a verb
is enough there.
"""

from __future__ import annotations

import os

from .denials import persons_verb, training_outside, unclear_start
from .interpreters import SHELLS, is_python
from .training import LAUNCHERS
from .words import table
from .wrappers import WRAPPERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .judge import Denial
    from .training import Entry
    from .words import Argument

START_RULES = frozenset(
    {"human_verb", "unclear_start", "training_outside_harness", "experiment_open", "gate_open"}
)
_COMMAND_VARIABLES = table(
    "EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE GIT_EXTERNAL_DIFF GIT_SSH SSH_ASKPASS"
    " GIT_ASKPASS"
)
_COMMAND_ENDINGS = ("_EDITOR", "_PAGER", "_COMMAND", "MANPAGER")


def is_command_variable(name: str) -> bool:
    """Whether programs run what the environment variable `name` holds: GIT_EDITOR, PAGER,
    PROMPT_COMMAND."""
    return name in _COMMAND_VARIABLES or name.endswith(_COMMAND_ENDINGS)


def verb_named(text: str, snapshot: dict[str, Any]) -> str | None:
    """The person's verb of which `text` names every word, and the harness beside it; None when
    there is none."""
    if not any(name in text for name in snapshot["harness"]):
        return None
    tokens = _tokens(text)
    if not any(os.path.basename(token) in snapshot["harness"] for token in tokens):
        return None
    return next(
        (" ".join(verb) for verb in snapshot["human_verbs"] if tokens.issuperset(verb)), None
    )


def start_named(text: str, snapshot: dict[str, Any], entry: Entry) -> Denial | None:
    """Why `text`, handed to a program with a language of its own, would start what it may not."""
    verb = verb_named(text, snapshot)
    if verb:
        return persons_verb(verb)
    tokens = _tokens(text)
    runs = any(
        is_python(os.path.basename(token)) or os.path.basename(token) in SHELLS for token in tokens
    )
    script = _script(tokens, entry)
    return training_outside(snapshot, [script]) if runs and script else None


def unclear(text: str, why: str, snapshot: dict[str, Any], entry: Entry) -> Denial | None:
    """Why a command line may not run of which one program, or what it runs, is not known: it names
    a start."""
    plain = "".join(character for character in text if character not in "\"'\\")
    verb = verb_named(plain, snapshot)
    named = f"harness {verb}" if verb else _script(_tokens(plain), entry)
    return unclear_start(snapshot, why, named, training=not verb) if named else None


def commands_within(words: list[Argument], snapshot: dict[str, Any]) -> list[list[Argument]]:
    """The command lines that may stand at the end of a program's words: from each word on that runs
    something."""
    found = []
    for place, word in enumerate(words):
        name = os.path.basename(word.text)
        if (
            name in snapshot["harness"]
            or name in SHELLS
            or name in LAUNCHERS
            or name in WRAPPERS
            or is_python(name)
        ):
            found.append(words[place:])
    return found


def texts_within(
    words: list[Argument], inputs: tuple[str, ...], snapshot: dict[str, Any], entry: Entry
) -> list[str]:
    """Words and inputs that may be command lines and name something that starts; of an option, its
    value."""
    found = []
    for text in (*(word.text for word in words if " " in word.text), *inputs):
        marks = [name for name in (*snapshot["harness"], entry.stem) if name and name in text]
        if not marks:
            continue
        found.append(text)
        if text.startswith("-"):
            start = min(text.find(mark) for mark in marks)
            found += [text[start:], text.partition("=")[2]]
    return found


def _script(tokens: set[str], entry: Entry) -> str:
    return next((token for token in sorted(tokens) if entry.is_script(token, (entry.root,))), "")


def _tokens(text: str) -> set[str]:
    import re

    return {token.lstrip("-") or token for token in re.findall(r"[\w./*?-]+", text)} | set(
        text.split()
    )
