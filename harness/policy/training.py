"""Whether a command starts training by itself, and which verbs of the harness's own command it calls."""

from __future__ import annotations

import os

from .interpreters import PYTHON_VALUED, SHELLS, is_python, python_option
from .paths import wild_match
from .words import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .words import Argument

_LAUNCHERS = table(
    "torchrun accelerate deepspeed mpirun mpiexec srun sbatch horovodrun colossalai composer ray jupyter runipy "
    "papermill"
)
_RUNNING_MODULES = table(
    "cProfile profile pdb trace runpy coverage debugpy torch.distributed.run torch.distributed.launch "
    "accelerate.commands.launch scalene memory_profiler kernprof viztracer"
)


class Entry:
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
        self.patterns = [f"{stem}*.py", "train*.py"] if base.endswith(".py") else [base] if base else []
        self.stem = stem

    def is_script(self, text: str, cwds: tuple[str, ...]) -> bool:
        """Whether `text` is the entry's script, or one like it (`train_cnn.py` beside `train.py`)."""
        if not self.words:
            return False
        same = os.path.realpath(os.path.join(self.root, self.script))
        if self.script and any(os.path.realpath(os.path.join(cwd, text)) == same for cwd in cwds):
            return True
        return any(wild_match(os.path.basename(text).lower(), pattern.lower()) for pattern in self.patterns)

    def is_module(self, name: str) -> bool:
        if not self.words:
            return False
        last = name.split(".")[-1]
        return name == self.module or any(wild_match(last + ".py", pattern) for pattern in self.patterns)

    def in_code(self, code: str) -> bool:
        """Whether program text runs the entry: naming the script is not enough, running it is."""
        if not self.stem or self.stem not in code:
            return False
        import re

        stem = re.escape(self.stem)
        running = r"runpy|exec\s*\(|os\.(?:system|popen|exec\w*|spawn\w*)|subprocess|\bmain\s*\("
        return bool(re.search(rf"\b{stem}\w*\b", code) and re.search(running, code))

    def started_by(self, program: str, arguments: list[Argument], cwds: tuple[str, ...], fed: bool) -> bool:
        """Whether `program` with `arguments` runs the entry. `fed`: the entry's text may come by standard input."""
        if not self.words:
            return False
        texts = [argument.text for argument in arguments]
        base = os.path.basename(program)
        if self._exactly(program, texts):
            return True
        if self.is_script(program, cwds):
            return True
        if is_python(base):
            return self._python(texts, cwds, fed)
        if base in SHELLS or base in ("source", "."):
            return any(self.is_script(text, cwds) for text in texts)
        return base in _LAUNCHERS and any(
            self.is_script(text, cwds) or self.is_module(text) for text in texts if not text.startswith("-")
        )

    def _exactly(self, program: str, texts: list[str]) -> bool:
        if is_python(os.path.basename(self.words[0])):
            return False  # compared by script, whatever the interpreter is called
        words = [os.path.basename(program), *texts]
        return words[: len(self.words)] == [os.path.basename(self.words[0]), *self.words[1:]]

    def _python(self, texts: list[str], cwds: tuple[str, ...], fed: bool) -> bool:
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
                if module in _RUNNING_MODULES:
                    return any(self.is_script(item, cwds) or self.is_module(item) for item in following)
                return self.is_module(module)
            elif text == "-":
                return fed
            elif text.startswith("-"):
                index += 1
            else:
                return self.is_script(text, cwds)
        return fed


def harness_verb(program: str, arguments: list[Argument], names: list[str]) -> list[str] | None:
    """The words after the harness's own command, up to `--`, its options last; None for another program."""
    texts = [argument.text for argument in arguments]
    if os.path.basename(program) not in names:
        module = texts.index("-m") if "-m" in texts else -1
        if not is_python(os.path.basename(program)) or module < 0:
            return None
        if "".join(texts[module + 1 : module + 2]).split(".")[0] not in names:
            return None
        texts = texts[module + 2 :]
    words: list[str] = []
    options: list[str] = []
    skip = False
    for text in texts:
        if text == "--":
            break
        if skip:
            skip = False
        elif text.startswith("-"):
            skip = text == "--project"
            options.append(text)
        else:
            words.append(text)
    return words + options


def human_verb(words: list[str], verbs: list[list[str]]) -> str | None:
    """The verb that only a person uses, when `words` call one; a verb may be one with an option only."""
    called = [word for word in words if not word.startswith("-")]
    for verb in verbs:
        named = [word for word in verb if not word.startswith("-")]
        if not all(word in words for word in verb[len(named) :]):
            continue
        if any(called[start : start + len(named)] == named for start in range(1 if len(named) == 1 else 3)):
            return " ".join(verb)
    return None
