"""What a shell command line may do: the rules of one path and of one program, over all that it
would run."""

from __future__ import annotations

import os

from .arguments import Argument, arguments, assigned, expand, remember, table
from .denials import training_outside, unreadable
from .git import settings_given, tree_change
from .language_programs import CODE, SHELLS, is_python, may_write
from .path_rules import Denial, taught
from .program_effects import effects
from .program_starts import Starts
from .program_text import code_denial
from .shell_reader import read_script
from .wrappers import INPUT_NAMES, WRAPPERS, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .effects import Effects
    from .path_rules import PathRules
    from .shell_script import Command, ShellScript

DEEPEST = 8
_NAME_GIVERS = table("find fd ls grep egrep fgrep rg ag")
"""Programs whose output names files: of the folders that they are given, else of the current
one."""
_EVALUATES = table("let test [ printf unset read declare typeset local export")
"""Builtins that expand a subscript in a name once more: `test -v 'a[$(rm x)]'`."""
_TAKES_NAMES = table(
    "rm rmdir unlink shred mv ln touch chmod chown truncate tee cp install rsync sed perl dd git"
)


class BashRules(Starts):
    """One command line, judged. `run` judges it; `denials` holds what forbids it."""

    def __init__(
        self,
        snapshot: dict[str, Any],
        judge: PathRules,
        cwd: str,
        read: Callable[[str], ShellScript] | None = None,
    ) -> None:
        super().__init__(snapshot, judge, cwd)
        self.read_script = read or read_script
        self.environment = {
            "PWD": [cwd],
            "OLDPWD": [cwd],
            "HOME": [os.path.expanduser("~")],
            "CLAUDE_PROJECT_DIR": [snapshot["root"]],
            "HARNESS_PROJECT": [snapshot["root"]],
            "XDG_STATE_HOME": [os.path.dirname(os.path.dirname(snapshot["state"]))],
        }
        self.taught = [one for one in snapshot.get("taught", ()) if one["form"] == "deny command"]
        self.listed: list[tuple[Argument, tuple[str, ...]]] = []
        """Folders and files whose names an earlier command printed, perhaps for xargs."""

    def run(self, text: str, depth: int = 0) -> None:
        """Judge `text`, and then what could not be read of it by what it spells out."""
        self.script(text, depth)
        if self.unsure and not self.denials:
            self.spelled(text)
        self.judge_blind(text)

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
        """A command that cannot be read to its end is denied when it names something protected, or
        stands in it."""
        named = self.judge.names(text, frozen=True)
        if named is None and any(self.judge.write(".", cwd) for cwd in self.cwds):
            named = next(self.judge.shown(cwd) for cwd in self.cwds if self.judge.write(".", cwd))
        if named is not None:
            self.denials.append(unreadable(self.unsure[0], named))
        self.learned([text], "*{}*")

    def command(self, command: Command, depth: int) -> None:
        words = assigned(command, self.environment)
        for script in self.run_by_variables(command):
            self.script(script, depth + 1)
        targets: list[Argument] = []
        for redirection in command.redirections:
            for target in expand(redirection.target, self.environment):
                if redirection.operator in (">&", "<&") and not target.text.strip("0123456789-"):
                    continue  # another descriptor
                if redirection.operator in ("<", "<&"):
                    self.read(target)
                    self.fed = self.fed or self.entry.is_script(target.text, self.cwds)
                else:
                    self.change(target)
                    targets.append(target)
        given = arguments(words, self.environment)
        self.placed(given, targets, command.inputs)
        self.words(given, command.inputs, depth)

    def words(self, line: list[Argument], inputs: tuple[str, ...], depth: int) -> None:
        """One program with its arguments, wrappers still in front."""
        unwrapped = unwrap(line)
        for folder in unwrapped.folders:
            self.enter(folder)
        for item in unwrapped.files:
            self.change(item)
        for script in unwrapped.scripts:
            self.unclear("" if script.known else "a wrapper runs text that is not known here")
            self.script(script.text, depth + 1)
        if not unwrapped.arguments:
            return
        head, rest = unwrapped.arguments[0], unwrapped.arguments[1:]
        after = [argument.text for argument in rest]
        self.learned(
            [" ".join([name, *after]) for name in (head.text, os.path.basename(head.text))]
        )
        if (
            unwrapped.wrappers and " " in head.text
        ):  # watch and parallel hand their words to a shell
            self.script(" ".join(argument.text for argument in unwrapped.arguments), depth + 1)
        named_by_input = any(name in INPUT_NAMES for name in unwrapped.wrappers)
        if named_by_input and inputs:  # a here-string: what it names is known
            rest = [*rest, *(Argument(text) for body in inputs for text in body.split())]
            inputs = ()
        if not head.known or (head.pattern and head.text != "["):
            base = os.path.basename(head.text)
            self.unclear(f"the program {head.text} is not known here")
            if (
                not head.pattern and base and not set(base) & set("${}")
            ):  # `$VENV/bin/python`: its name is
                self.program(base, rest, inputs, depth, named_by_input=named_by_input)
            else:
                self.unknown(rest)
            return
        alias = self.aliases.get(head.text)
        if alias is not None and depth <= DEEPEST:
            self.words([*(Argument(text) for text in alias.split()), *rest], inputs, depth + 1)
            return
        self.program(head.text, rest, inputs, depth, named_by_input=named_by_input)

    def learned(self, lines: list[str], form: str = "{}") -> None:
        """What a prior denies that a person activated, in any of the spellings of a command."""
        if not self.taught:
            return
        from fnmatch import fnmatchcase

        for one in self.taught:
            pattern = form.format(one["pattern"])
            if any(fnmatchcase(line, pattern) for line in lines):
                self.denials.append(taught(one, f"`{lines[0][:120]}`"))

    def program(
        self,
        program: str,
        rest: list[Argument],
        inputs: tuple[str, ...],
        depth: int,
        *,
        named_by_input: bool,
    ) -> None:
        base = os.path.basename(program)
        self.subscripts(base, rest, depth)
        if self.harness(program, rest, more=named_by_input):
            return
        if self.entry.started_by(program, rest, self.cwds, self.fed and not inputs):
            words = [program, *[argument.text for argument in rest]]
            self.denials.append(training_outside(self.snapshot, words))
            return
        if base in ("cd", "pushd", "chdir"):
            for folder in [item for item in rest if not item.text.startswith("-")][:1] or [
                Argument("~")
            ]:
                self.enter(folder)
        if base == "git":
            self.git(rest, depth)
            self.unsure += ["git takes names from its input"] if named_by_input else []
            return
        if base == "alias":
            for name, _, value in (item.text.partition("=") for item in rest):
                self.aliases.setdefault(name, value)
                self.script(value, depth + 1)
        for body in self.written_before([program, *(item.text for item in rest)]):
            self.text_of_file(body, base, depth)
        if base in ("source", ".") and inputs:
            self.script(inputs[-1], depth + 1)
        self.own_language(base, rest, inputs)
        known = effects(base, rest, inputs)
        if known is None or known.given:
            self.handed_on(rest, inputs if known is None else (), depth)
        if named_by_input and (base in SHELLS or is_python(base) or base in WRAPPERS):
            self.unclear(f"{base} takes what it runs from its input")
        if known is None:
            self.unknown(rest)
            if named_by_input:
                self.unsure.append("a program takes names from its input")
            return
        if base in _NAME_GIVERS:
            sought = (
                0 if base in ("find", "fd", "ls") else 1
            )  # grep's first word is what it looks for
            self.listed += [(item, known.only) for item in known.reads[sought:] or [Argument(".")]]
        for argument, only in self.listed if named_by_input else ():
            self.read(argument, below=True, only=only)
        if named_by_input and (
            known.changes or known.trees or known.code or known.given or base in _TAKES_NAMES
        ):
            self.unsure.append(f"{base} takes names from its input")
            for argument, only in self.listed:
                self.change(argument, below=True, only=only)
        self.apply(known, depth)

    def subscripts(self, base: str, rest: list[Argument], depth: int) -> None:
        """Commands within array subscripts."""
        # These evaluate array subscripts: `[ -v 'x[$(cmd)]' ]` runs cmd, quotes or not.
        for argument in rest if base in _EVALUATES else ():
            if (
                argument.known
                and "[" in argument.text
                and ("$(" in argument.text or "`" in argument.text)
            ):
                self.script(f": {argument.text}", depth + 1)

    def apply(self, known: Effects, depth: int) -> None:
        for argument in known.changes:
            self.change(argument)
        for argument in known.trees:
            self.change(argument, below=True, only=known.only, hint=known.hint)
        if known.given and any(may_write(code) for code in known.code):
            for argument in known.given:
                self.change(argument)
        else:
            self.unknown(known.given)
        self.unclear(known.unsure)
        for argument in known.reads:
            self.read(argument)
            self.fed = self.fed or self.entry.is_script(argument.text, self.cwds)
        for argument in known.scanned:
            self.read(argument, below=True, only=known.only)
        for code in known.code:
            denial = code_denial(code, self.judge, self.entry, self.cwds)
            self.denials += [denial] if denial else []
        for script in known.scripts:
            self.script(script, depth + 1)
        for program in known.programs:
            self.words(self.with_found(program, known.only), (), depth + 1)

    def handed_on(self, rest: list[Argument], inputs: tuple[str, ...], depth: int) -> None:
        """What a program may start of the words and texts that it is given; nothing else of them is
        judged here."""
        from .program_starts import START_RULES, commands_within, texts_within

        if depth > DEEPEST:
            return
        # The words may be mere data. So they are read as commands, and all that this found is taken
        # back but for the denials of a start.
        before = len(self.denials), len(self.unsure), len(self.blind)
        cwds, fed, paths = self.cwds, self.fed, len(self.paths)
        for command in commands_within(rest, self.snapshot):
            self.words(command, (), depth + 1)
        for text in texts_within(rest, inputs, self.snapshot, self.entry):
            self.script(text, depth + 1)
        self.denials[before[0] :] = [
            item for item in self.denials[before[0] :] if item.rule in START_RULES
        ]
        del self.unsure[before[1] :], self.blind[before[2] :], self.paths[paths:]
        self.cwds, self.fed = cwds, fed

    def text_of_file(self, body: str, base: str, depth: int) -> None:
        """A file that this command line writes and then runs."""
        if base in CODE or is_python(base):
            denial = code_denial(body, self.judge, self.entry, self.cwds)
            self.denials += [denial] if denial else []
        else:
            self.script(body, depth + 1)

    def git(self, rest: list[Argument], depth: int) -> None:
        before = self.cwds
        rest = [*self.git_variables(), *rest]
        change = tree_change(rest, self.cwds)
        for folder in change.folders:
            self.enter(folder)
        for script in settings_given(rest):
            self.script(script, depth + 1)
        for path in change.paths:
            self.change(path, below=True)
        for path in change.reads:
            self.read(path, below=change.deep)
        if change.whole and not self.denials and self.judge.tree_is_ours(self.cwds):
            reason = f"{change.whole}, and protected files are among them."
            hint = (
                "Name the files after `--`, e.g. `git checkout -- train.py`; take other changes"
                " with Edit."
            )
            self.denials.append(Denial("git_over_protected", reason, hint))
        self.cwds = before
