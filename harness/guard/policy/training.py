"""Whether a command starts training by itself, and which verbs of the harness's own command it
calls."""

from __future__ import annotations

import os

from .arguments import Argument, is_wild, table
from .language_programs import PYTHON_VALUED, SHELLS, is_python, python_option
from .paths import wild_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAUNCHERS = table(
    "torchrun accelerate deepspeed mpirun mpiexec srun sbatch horovodrun colossalai composer ray"
    " runipy papermill jupyter kernprof scalene memray viztracer pyinstrument py-spy fil-profile"
    " nuitka"
)
"""Programs that run the script that they are given."""
_TASKS = table(
    "make gmake just npm pnpm yarn invoke inv tox nox poe task rake doit hatch pdm rye pixi uvx"
    " pipx"
)
"""Programs that run what a file of the project calls by a name."""
_RUNNING_MODULES = table(
    "cProfile profile pdb trace runpy coverage debugpy torch.distributed.run"
    " torch.distributed.launch accelerate.commands.launch scalene memory_profiler kernprof"
    " viztracer line_profiler memray pyinstrument IPython doctest unittest"
)
_INPUT_MODULES = table("code asyncio")
_STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
COPIERS = table("cp mv ln install dd rsync link")
RUNNING = (
    r"runpy|import_module|__import__|\bexec(?:[lv]p?e?|Sync|File\w*)?\b"
    r"|\b(?:system|popen|qx|spawn\w*)\b|subprocess|child_process|\bmain\s*\("
    r"|%run|^\s*run\s|`\s*[\w/.]*(?:python|harness)"
)
"""Program text that starts another program, or code by its name."""


class TrainingEntry:
    """The plan's training command, in the form that other commands are compared with."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self.words: list[str] = snapshot["entry"]
        self.root: str = snapshot["root"]
        self.script = next((word for word in self.words[1:] if not word.startswith("-")), "")
        self.module = self.words[2] if len(self.words) > 2 and self.words[1] == "-m" else ""
        if not self.script and self.words and not is_python(os.path.basename(self.words[0])):
            self.script = self.words[0]
        base = os.path.basename(self.script)
        stem = os.path.splitext(base)[0]
        self.patterns = (
            [f"{stem}*.py", "train*.py"] if base.endswith(".py") else [base] if base else []
        )
        self.patterns += [stem, f"{stem}.sh", f"{stem}.ipynb"] if base.endswith(".py") else []
        self.stem = stem
        self.copies: set[str] = set()
        """Where the command line itself puts a copy of the script, or a link to it."""

    def is_script(self, text: str, cwds: tuple[str, ...]) -> bool:
        """Whether `text` is the entry's script, or one like it (`train_cnn.py` beside `train.py`);
        tests are not."""
        if not self.words or not text:
            return False
        same = os.path.realpath(os.path.join(self.root, self.script))
        places = [os.path.join(cwd, text) for cwd in cwds]
        if self.script and any(os.path.realpath(place) == same for place in places):
            return True
        if self.copies and any(os.path.normpath(place) in self.copies for place in places):
            return True
        name = os.path.basename(text).lower()
        if is_wild(name) and wild_match(os.path.basename(self.script).lower(), name):
            return any(
                os.path.realpath(os.path.dirname(place)) == os.path.dirname(same)
                for place in places
            )
        if name.endswith("_test.py") or "tests" in text.split("/")[:-1]:
            return False
        return any(wild_match(name, pattern.lower()) for pattern in self.patterns)

    def copied(
        self, program: str, line: list[Argument], targets: list[Argument], cwds: tuple[str, ...]
    ) -> None:
        """Note where `program` puts what it reads of the entry: its redirections' `targets`, and a
        copier's files."""
        if os.path.basename(program) in COPIERS:
            folders = [argument for argument in line[:-1] if not argument.text.startswith("-")]
            names = [os.path.basename(argument.text) for argument in folders]
            last = [line[-1].text] if len(line) > 1 else []
            targets = [
                *targets,
                *map(Argument, last),
                *(Argument(os.path.join(*last, name)) for name in names),
            ]
            targets += [
                argument.with_text(argument.text[3:])
                for argument in line
                if argument.text.startswith("of=")
            ]
        if targets and any(self.is_script(_path(argument.text), cwds) for argument in line):
            self.copies |= {
                os.path.normpath(os.path.join(cwd, argument.text))
                for argument in targets
                for cwd in cwds
            }

    def is_module(self, name: str) -> bool:
        if not self.words:
            return False
        last = name.split(".")[-1]
        return name == self.module or any(
            wild_match(last + ".py", pattern) for pattern in self.patterns
        )

    def in_code(self, code: str) -> bool:
        """Whether program text runs the entry: naming the script is not enough, running it is."""
        if not self.stem or self.stem not in code:
            return False
        import re

        stem = re.escape(self.stem)
        running = rf"{RUNNING}|\$\([^)]*{stem}"
        return bool(re.search(rf"\b{stem}\w*\b", code) and re.search(running, code))

    def started_by(
        self, program: str, arguments: list[Argument], cwds: tuple[str, ...], fed: bool
    ) -> bool:
        """Whether `program` with `arguments` runs the entry. `fed`: the entry's text may come by
        standard input."""
        if not self.words:
            return False
        texts = [argument.text for argument in arguments]
        base = os.path.basename(program)
        if self._exactly(program, texts):
            return True
        if self.is_script(program, cwds):
            return True
        if is_python(base):
            return self._python(arguments, cwds, fed)
        if base in SHELLS or base in ("source", "."):
            return any(self.is_script(text, cwds) for text in texts)
        if base in _TASKS and any(text.split(":")[0] == self.stem for text in texts):
            return True
        if base == "jupyter" and not {"execute", "run", "--execute"}.intersection(texts):
            return False
        return base in LAUNCHERS and any(
            self.is_script(text, cwds) or self.is_module(text)
            for text in texts
            if not text.startswith("-")
        )

    def _exactly(self, program: str, texts: list[str]) -> bool:
        if is_python(os.path.basename(self.words[0])):
            return False  # compared by script, whatever the interpreter is called
        words = [os.path.basename(program), *texts]
        return words[: len(self.words)] == [os.path.basename(self.words[0]), *self.words[1:]]

    def _python(self, arguments: list[Argument], cwds: tuple[str, ...], fed: bool) -> bool:
        texts = [argument.text for argument in arguments]
        index = 0
        while index < len(texts):
            text = texts[index]
            if text in PYTHON_VALUED:
                index += 2
            elif text in ("-V", "-VV", "--version", "-h", "--help"):
                return False
            elif python_option(text, "c") is not None:
                return False  # program text is looked at on its own
            elif (attached := python_option(text, "m")) is not None:
                rest = texts[index + 1 :]
                module, following = (attached, rest) if attached else ("".join(rest[:1]), rest[1:])
                if module in _INPUT_MODULES:
                    return fed
                if module == "timeit":
                    return any(self.in_code(item) for item in following)
                if module in _RUNNING_MODULES:
                    return any(
                        self.is_script(item, cwds) or self.is_module(item) for item in following
                    )
                return self.is_module(module)
            elif text in _STANDARD_INPUT:
                return fed
            elif text.startswith("-"):
                index += 1
            else:
                return self.is_script(text, cwds) or (fed and not arguments[index].known)
        return fed


def harness_verb(program: str, arguments: list[Argument], names: list[str]) -> list[str] | None:
    """The words after the harness's own command, its options last; None for another program. What
    `harness train` or `try` starts, after `--`, is not among them."""
    texts = [argument.text for argument in arguments]
    if not is_harness(program, names):
        if not is_python(os.path.basename(program)):
            return None
        started = _python_starts(texts, names)
        if started is None:
            return None
        texts = texts[started:]
    words: list[str] = []
    options: list[str] = []
    skip = False
    for text in texts:
        if text == "--" and not skip:
            if words[:1] in (["train"], ["try"]):
                break
        elif skip:
            skip = False
        elif text.startswith("-"):
            skip = text == "--project"
            options.append(text)
        else:
            words.append(text)
    return words + options


def is_harness(program: str, names: list[str]) -> bool:
    """Whether `program` is the harness's command, by its name or by where a link of another name
    leads."""
    if os.path.basename(program) in names:
        return True
    return "/" in program and os.path.basename(os.path.realpath(program)) in names


def _python_starts(texts: list[str], names: list[str]) -> int | None:
    """Where the words begin that the harness gets of those after `python`; None when it runs
    something else."""
    skip = False
    for index, text in enumerate(texts):
        if skip:
            skip = False
            continue
        skip = text in PYTHON_VALUED
        module = python_option(text, "m")
        if module is not None:
            taken = [module] if module else texts[index + 1 : index + 2]
            return index + (1 if module else 2) if "".join(taken).split(".")[0] in names else None
        if python_option(text, "c") is not None:
            return None
        if not text.startswith("-"):
            parts = os.path.normpath(text).split("/")
            own = parts[-1] in names or (
                parts[-1] in ("__main__.py", "main.py") and set(parts[-3:-1]) & set(names)
            )
            return index + 1 if own else None
    return None


def unclear_verb(words: list[str], verbs: list[list[str]], *, more: bool) -> bool:
    """Whether `words` may be a person's verb, for one of them is not known, or `more` come from
    standard input."""
    called = [word for word in words if not word.startswith("-")]
    if not called:
        return more
    if "${" in called[0]:
        return True
    for verb in verbs:
        named = [word for word in verb if not word.startswith("-")]
        if called[0] != named[0]:
            continue
        second = called[1] if len(called) > 1 else "${}" if more else ""
        open_end = any("${" in word for word in words[1:]) or more
        if ("${" in second) if len(named) > 1 else (open_end and len(verb) > len(named)):
            return True
    return False


def _path(text: str) -> str:
    """The file in `text`: after the commit of git's `HEAD:train.py`, and after dd's `if=`."""
    return text.rpartition(":")[2].removeprefix("if=")


def human_verb(words: list[str], verbs: list[list[str]]) -> str | None:
    """The verb that only a person uses, when `words` call one; a verb may be one with an option
    only."""
    called = [word for word in words if not word.startswith("-")]
    for verb in verbs:
        named = [word for word in verb if not word.startswith("-")]
        if not all(
            any(_abbreviates(word, option) for word in words) for option in verb[len(named) :]
        ):
            continue
        if any(
            called[start : start + len(named)] == named
            for start in range(1 if len(named) == 1 else 3)
        ):
            return " ".join(verb)
    return None


def _abbreviates(word: str, option: str) -> bool:
    """Whether `word` is `option`, with or without `=VALUE`, or a beginning of it that a command may
    take for it."""
    name = word.partition("=")[0]
    return len(name) > 2 and option.startswith(name)
