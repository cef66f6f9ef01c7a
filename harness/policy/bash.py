"""What a shell command line may do: the rules of one path and of one program, over all that it would run."""

from __future__ import annotations

import os

from .code import code_denial, may_write
from .denials import experiment_open, persons_verb, training_outside, unreadable
from .git import settings_given, tree_change
from .judge import Denial
from .paths import inside
from .shell import read_script
from .training import Entry, harness_verb, human_verb
from .verbs import effects
from .words import Argument, arguments, assigned, expand, remember, table
from .wrappers import INPUT_NAMES, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .effects import Effects
    from .judge import Judge
    from .tokens import Command, Script

DEEPEST = 8
_NAME_GIVERS = table("find fd ls grep egrep fgrep rg ag")
"""Programs whose output names files: of the folders that they are given, else of the current one."""
_TAKES_NAMES = table("rm rmdir unlink shred mv ln touch chmod chown truncate tee cp install rsync sed perl dd git")


class BashRules:
    """One command line, judged. `denials` holds what forbids it, `unsure` why more may be touched than was read."""

    def __init__(
        self, snapshot: dict[str, Any], judge: Judge, cwd: str, read: Callable[[str], Script] | None = None
    ) -> None:
        self.snapshot = snapshot
        self.read_script = read or read_script
        self.judge = judge
        self.entry = Entry(snapshot)
        self.cwds: tuple[str, ...] = (cwd,)
        self.environment: dict[str, list[str]] = {
            "PWD": [cwd],
            "OLDPWD": [cwd],
            "HOME": [os.path.expanduser("~")],
            "CLAUDE_PROJECT_DIR": [snapshot["root"]],
            "HARNESS_PROJECT": [snapshot["root"]],
            "XDG_STATE_HOME": [os.path.dirname(os.path.dirname(snapshot["state"]))],
        }
        self.denials: list[Denial] = []
        self.unsure: list[str] = []
        self.paths: list[str] = []
        self.fed = False
        self.listed: list[Argument] = []
        """Folders and files whose names an earlier command printed, perhaps for xargs."""

    def run(self, text: str, depth: int = 0) -> None:
        """Judge `text`, and then what could not be read of it by what it spells out."""
        self.script(text, depth)
        if self.unsure and not self.denials:
            self.spelled(text)

    def script(self, text: str, depth: int) -> None:
        if depth > DEEPEST:
            self.unsure.append("it is nested too deeply")
            return
        script = self.read_script(text)
        if script.problem:
            self.unsure.append(script.problem)
        for command in script.commands:
            assigned(command, self.environment)
        for name, words in script.loops:
            remember(name, arguments(words, self.environment), self.environment)
        for command in script.commands:
            self.command(command, depth)

    def spelled(self, text: str) -> None:
        """A command that cannot be read to its end is denied when it names something protected, or stands in it."""
        named = self.judge.names(text, frozen=True)
        if named is None and any(self.judge.write(".", cwd) for cwd in self.cwds):
            named = next(self.judge.shown(cwd) for cwd in self.cwds if self.judge.write(".", cwd))
        if named is not None:
            self.denials.append(unreadable(self.unsure[0], named))

    def command(self, command: Command, depth: int) -> None:
        words = assigned(command, self.environment)
        for redirection in command.redirections:
            for target in expand(redirection.target, self.environment):
                if redirection.operator in (">&", "<&") and not target.text.strip("0123456789-"):
                    continue  # another descriptor
                if redirection.operator in ("<", "<&"):
                    self.read(target)
                    self.fed = self.fed or self.entry.is_script(target.text, self.cwds)
                else:
                    self.change(target)
        self.words(arguments(words, self.environment), command.inputs, depth)

    def words(self, given: list[Argument], inputs: tuple[str, ...], depth: int) -> None:
        """One program with its arguments, wrappers still in front."""
        found = unwrap(given)
        for folder in found.folders:
            self.enter(folder)
        for item in found.files:
            self.change(item)
        for script in found.scripts:
            self.unsure += [] if script.known else ["a wrapper runs text that is not known here"]
            self.script(script.text, depth + 1)
        if not found.arguments:
            return
        head, rest = found.arguments[0], found.arguments[1:]
        if found.wrappers and " " in head.text:  # watch and parallel hand their words to a shell
            self.script(" ".join(argument.text for argument in found.arguments), depth + 1)
        if not head.known or head.pattern:
            self.unsure.append(f"the program {head.text} is not known here")
            self.unknown(rest)
            return
        self.program(head.text, rest, inputs, depth, named_by_input=any(name in INPUT_NAMES for name in found.wrappers))

    def program(
        self, program: str, rest: list[Argument], inputs: tuple[str, ...], depth: int, *, named_by_input: bool
    ) -> None:
        base = os.path.basename(program)
        if self.harness(program, rest):
            return
        if self.entry.started_by(program, rest, self.cwds, self.fed and not inputs):
            words = [program, *[argument.text for argument in rest]]
            self.denials.append(training_outside(self.snapshot, words))
            return
        if base in ("cd", "pushd", "chdir"):
            for folder in [item for item in rest if not item.text.startswith("-")][:1] or [Argument("~")]:
                self.enter(folder)
        if base == "git":
            self.git(rest, depth)
            self.unsure += ["git takes names from its input"] if named_by_input else []
            return
        known = effects(base, rest, inputs)
        if known is None:
            self.unknown(rest)
            if named_by_input:
                self.unsure.append("a program takes names from its input")
            return
        if base in _NAME_GIVERS:
            sought = 0 if base in ("find", "fd", "ls") else 1  # grep's first word is what it looks for
            self.listed += known.reads[sought:] or [Argument(".")]
        if named_by_input and (known.changes or known.trees or known.code or known.given or base in _TAKES_NAMES):
            self.unsure.append(f"{base} takes names from its input")
            for argument in self.listed:
                self.change(argument, below=True)
        self.apply(known, depth)

    def apply(self, known: Effects, depth: int) -> None:
        for argument in known.changes:
            self.change(argument)
        for argument in known.trees:
            self.change(argument, below=True)
        if known.given and any(may_write(code) for code in known.code):
            for argument in known.given:
                self.change(argument)
        else:
            self.unknown(known.given)
        self.unsure += [known.unsure] if known.unsure else []
        for argument in known.reads:
            self.read(argument)
            self.fed = self.fed or self.entry.is_script(argument.text, self.cwds)
        for code in known.code:
            denial = code_denial(code, self.judge, self.entry, self.cwds)
            self.denials += [denial] if denial else []
        for script in known.scripts:
            self.script(script, depth + 1)
        for program in known.programs:
            self.words(program, (), depth + 1)

    def harness(self, program: str, rest: list[Argument]) -> bool:
        """Whether it is the harness's own command; its verbs are judged here."""
        words = harness_verb(program, rest, self.snapshot["harness"])
        if words is None:
            return False
        verb = human_verb(words, self.snapshot["human_verbs"])
        if verb:
            self.denials.append(persons_verb(verb))
        elif words[:2] == ["experiment", "new"] and self.snapshot["open_experiment"]:
            self.denials.append(experiment_open(self.snapshot))
        return True

    def git(self, rest: list[Argument], depth: int) -> None:
        before = self.cwds
        change = tree_change(rest, self.cwds)
        for folder in change.folders:
            self.enter(folder)
        for script in settings_given(rest):
            self.script(script, depth + 1)
        for path in change.paths:
            self.change(path, below=True)
        if change.whole and not self.denials and self.judge.tree_is_ours(self.cwds):
            reason = f"{change.whole}, and protected files are among them."
            mend = "Name the files after `--`, e.g. `git checkout -- train.py`; take other changes with Edit."
            self.denials.append(Denial("git_over_protected", reason, mend))
        self.cwds = before

    def enter(self, folder: Argument) -> None:
        """A change of directory adds a place where the commands may run: branches are not followed."""
        if folder.text == "-":
            return
        if not folder.known or folder.pattern:
            self.unsure.append("it changes to a directory that is not known here")
            return
        added = [os.path.normpath(os.path.join(cwd, os.path.expanduser(folder.text))) for cwd in self.cwds]
        self.cwds = tuple(dict.fromkeys([*self.cwds, *added]))[:16]
        self.environment["PWD"] = list(self.cwds)
        for place in added:
            denial = self.judge.read(place, place)
            if denial:
                self.denials.append(denial)

    def change(self, argument: Argument, *, below: bool = False) -> None:
        if not argument.known:
            self.unsure.append(f"{argument.text} is not known here")
            return
        for cwd in self.cwds:
            if argument.pattern:
                denial = self.judge.write_pattern(argument.text, cwd, below=below)
            else:
                denial = self.judge.write(argument.text, cwd, below=below)
            if denial:
                self.denials.append(denial)
                return
        self.paths.append(argument.text)

    def read(self, argument: Argument) -> None:
        for cwd in self.cwds:
            denial = self.judge.read(argument.text, cwd)
            if denial:
                self.denials.append(denial)
                return
        self.paths.append(argument.text)

    def unknown(self, rest: list[Argument]) -> None:
        """A program of which nothing is known: it may change what it is given, so control files are not given to it."""
        experiments = self.judge.absolute(self.snapshot["experiments"])
        for argument in rest:
            text = argument.text
            for piece in {
                text,
                text.partition("=")[2] or text,
                text[2:] if text.startswith("-") and text[2:] else text,
            }:
                for cwd in self.cwds:
                    denial = self.judge.read(piece, cwd) or self.judge.write(piece, cwd)
                    reading = denial and (denial.rule == "frozen_by_plan" or inside(denial.path, experiments))
                    if denial and denial.rule != "read_only_role" and not reading:
                        self.denials.append(denial)
                        return
