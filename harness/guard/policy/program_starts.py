"""What a command line starts: the harness's own verbs, training, and programs or text that are not
known here.

The second half is for text that is run but not read as a command line: programs of other languages,
what is typed into a terminal, a whole command line of which one program is not known. Naming all
words of a verb is enough there.
"""

from __future__ import annotations

import os

from .arguments import Argument, expand, is_wild, table
from .denials import (
    experiment_open,
    persons_verb,
    quoted,
    settings_command,
    training_outside,
    unclear_start,
    unreadable,
    verb_named,
    words_of,
)
from .language_programs import HANDS_TO_SHELL, OWN_LANGUAGE, SHELLS, is_python
from .shell_script import is_name
from .touched_paths import Touched
from .training import (
    COPIERS,
    LAUNCHERS,
    TrainingEntry,
    harness_verb,
    human_verb,
    is_harness,
    unclear_verb,
)
from .wrappers import WRAPPERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arguments import Argument
    from .path_rules import Denial, PathRules
    from .shell_script import Command
    from .training import TrainingEntry


class Starts(Touched):
    """`blind` says why a program runs, or text as one, that is not known here."""

    def __init__(self, snapshot: dict[str, Any], judge: PathRules, cwd: str) -> None:
        super().__init__(snapshot, judge, cwd)
        self.entry = TrainingEntry(snapshot)
        self.blind: list[str] = []
        self.aliases: dict[str, str] = {}
        self.copies: list[str] = []
        """Other names that the command line itself gives to the harness's command."""
        self.written: dict[str, str] = {}
        """Files whose text the command line itself holds, in a heredoc that goes into them."""
        self.fed = False
        """Whether the entry's text may come by standard input."""

    def unclear(self, why: str) -> None:
        """Something runs that is not known here."""
        self.unsure += [why] if why else []
        self.blind += [why] if why else []

    def harness(self, program: str, rest: list[Argument], *, more: bool) -> bool:
        """Whether it is the harness's own command; its verbs are judged here. `more`: words come by
        its input."""
        words = harness_verb(program, rest, [*self.snapshot["harness"], *self.copies])
        if words is None:
            return False
        verb = human_verb(words, self.snapshot["human_verbs"])
        if verb:
            whole = [program, *(word.text for word in rest if word.text != "--json")]
            line = " ".join(map(quoted, whole)) if all(word.known for word in rest) else ""
            self.denials.append(persons_verb(self.snapshot, verb, line))
        elif unclear_verb(words, self.snapshot["human_verbs"], more=more):
            why = "the verb of harness is not a literal word"
            self.denials.append(unclear_start(self.snapshot, why, "harness", training=False))
        elif (
            more
            and words[:1]
            and any(words[0] == item[0] for item in self.snapshot["human_verbs"])
        ):
            self.unclear("harness takes words from its input")
        elif words[:2] == ["experiment", "new"] and self.snapshot["open_experiment"]:
            self.denials.append(experiment_open(self.snapshot))
        return True

    def judge_blind(self, text: str) -> None:
        """A command line of which not all is known that it runs is denied when it names a person's
        verb or training."""
        if self.blind and not self.denials:
            denial = unclear(text, self.blind[0], self.snapshot, self.entry)
            self.denials += [denial] if denial else []

    def run_by_variables(self, command: Command) -> list[str]:
        """Command text of `NAME=value` anywhere among the words, where programs run what the
        variable NAME holds."""
        if not any("=" in word.raw for word in command.words):
            return []

        scripts = []
        for word in command.words:
            for argument in expand(word, self.environment) if "=" in word.raw else []:
                name, _, value = argument.text.partition("=")
                if name.startswith("GIT_CONFIG_") and argument.known:
                    self.environment.setdefault(name, []).append(value)
                if is_name(name) and is_command_variable(name):
                    self.unclear(
                        "" if argument.known else f"{name} holds a command that is not known here"
                    )
                    scripts.append(value.lstrip("|!@-"))
        return scripts

    def git_variables(self) -> list[Argument]:
        """Settings that GIT_CONFIG_KEY_n and GIT_CONFIG_VALUE_n give to git, as its options
        `-c`."""
        settings = []
        for name in [name for name in self.environment if name.startswith("GIT_CONFIG_KEY_")]:
            values = self.environment.get(name.replace("_KEY_", "_VALUE_")) or [""]
            for key in self.environment[name]:
                settings += [
                    setting
                    for value in values
                    for setting in (Argument("-c"), Argument(f"{key}={value}"))
                ]
        return settings

    def placed(
        self, line: list[Argument], targets: list[Argument], inputs: tuple[str, ...]
    ) -> None:
        """Note what one command puts where: copies of the entry and of the harness's command, and
        literal text."""
        if len(line) < 2 and not targets:
            return
        program, rest = (line[0].text, line[1:]) if line else ("", [])
        self.entry.copied(program, rest, targets, self.cwds)
        if os.path.basename(program) in COPIERS and any(
            self._is_harness(argument) for argument in rest
        ):
            self.copies.append(os.path.basename(rest[-1].text))
        for target in targets if inputs else ():
            self.written[os.path.normpath(target.text)] = inputs[-1]

    def _is_harness(self, argument: Argument) -> bool:
        names: list[str] = self.snapshot["harness"]
        return is_harness(argument.text, names) or (
            not argument.known and argument.text.rstrip("}").split(" ")[-1] in names
        )

    def written_before(self, words: list[str]) -> list[str]:
        """The text of the first of `words` that is a file which this command line wrote."""
        bodies = (self.written.get(os.path.normpath(word)) for word in words if word)
        return [body for body in bodies if body is not None][:1] if self.written else []

    def with_found(self, program: list[Argument], names: tuple[str, ...]) -> list[Argument]:
        """The command line that a search runs; of an interpreter, with the names that it looks for
        as its script."""
        base = os.path.basename(program[0].text) if program else ""
        scripts = [
            Argument(name, True, is_wild(name))
            for name in names
            if self.entry.is_script(name, self.cwds)
        ]
        return (
            [program[0], *scripts] if scripts and (is_python(base) or base in SHELLS) else program
        )

    def claude_settings(self, rest: list[Argument]) -> None:
        """`claude` changes its own settings with verbs of its own."""
        operands = [item.text for item in rest if not item.text.startswith("-")]
        changes = operands[:1] and operands[0] in ("mcp", "config", "plugin") and len(operands) > 1
        if changes and operands[1] not in ("list", "get", "validate"):
            self.denials.append(settings_command(" ".join(["claude", *operands[:2]])))

    def own_language(self, base: str, rest: list[Argument], inputs: tuple[str, ...]) -> None:
        """Text in a program's own language, which may run anything: held to what it names."""
        if base == "claude":
            self.claude_settings(rest)
        if base not in OWN_LANGUAGE:
            return

        denial = start_named(
            " ".join([*(item.text for item in rest), *inputs]), self.snapshot, self.entry
        )
        if denial is None and base not in HANDS_TO_SHELL:
            texts = [item.text for item in rest if any(sign in item.text for sign in " ;(!:|")]
            named = next(
                filter(None, (self.judge.names(text, frozen=True) for text in (*texts, *inputs))),
                None,
            )
            denial = unreadable(f"{base} runs text of its own language", named) if named else None
        self.denials += [denial] if denial else []


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


def start_named(text: str, snapshot: dict[str, Any], entry: TrainingEntry) -> Denial | None:
    """Why `text`, handed to a program with a language of its own, would start what it may not."""
    verb = verb_named(text, snapshot)
    if verb:
        return persons_verb(snapshot, verb)
    tokens = words_of(text)
    runs = any(
        is_python(os.path.basename(token)) or os.path.basename(token) in SHELLS for token in tokens
    )
    script = _script(tokens, entry)
    return training_outside(snapshot, [script]) if runs and script else None


def unclear(text: str, why: str, snapshot: dict[str, Any], entry: TrainingEntry) -> Denial | None:
    """Why a command line may not run of which one program, or what it runs, is not known: it names
    a start."""
    plain = "".join(character for character in text if character not in "\"'\\")
    verb = verb_named(plain, snapshot)
    named = f"harness {verb}" if verb else _script(words_of(plain), entry)
    return unclear_start(snapshot, why, named, training=not verb) if named else None


def commands_within(words: list[Argument], snapshot: dict[str, Any]) -> list[list[Argument]]:
    """The command lines that may stand at the end of a program's words: from each word on that runs
    something."""
    commands = []
    for place, word in enumerate(words):
        name = os.path.basename(word.text)
        if (
            name in snapshot["harness"]
            or name in SHELLS
            or name in LAUNCHERS
            or name in WRAPPERS
            or is_python(name)
        ):
            commands.append(words[place:])
    return commands


def texts_within(
    words: list[Argument], inputs: tuple[str, ...], snapshot: dict[str, Any], entry: TrainingEntry
) -> list[str]:
    """Words and inputs that may be command lines and name something that starts; of an option, its
    value."""
    lines = []
    for text in (*(word.text for word in words if " " in word.text), *inputs):
        marks = [name for name in (*snapshot["harness"], entry.stem) if name and name in text]
        if not marks:
            continue
        lines.append(text)
        if text.startswith("-"):
            start = min(text.find(mark) for mark in marks)
            lines += [text[start:], text.partition("=")[2]]
    return lines


def _script(tokens: set[str], entry: TrainingEntry) -> str:
    return next((token for token in sorted(tokens) if entry.is_script(token, (entry.root,))), "")
