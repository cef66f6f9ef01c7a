"""`--composition FILE`: the channels of the backend `composed`, in TOML, every bound checked."""

import ast
import json
import os
import subprocess
import tomllib
from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import (
    dataclass,
    fields,
)
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.domain.commands import for_helpers
from harness.domain.composition import (
    REWARDS,
    Average,
    Composition,
    Context,
    DistillationChannel,
    FrozenFunction,
    Objective,
    PreferenceChannel,
    Reference,
    RewardChannel,
    Rollouts,
    Teacher,
    is_action,
)
from harness.domain.plain_text import one_line
from harness.domain.row_forms import flat
from harness.errors import HarnessError
from harness.files import sha256_bytes
from harness.ledger.project import Project
from harness.posttrain.bounds import number_of
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.untrusted_json import read_within
from harness.posttrain.vocabulary import Bound
from harness.settings import granted, require_interpreter

_WEIGHT = Bound(default=1.0, low=0, high=1000)
_SHARE = Bound(default=0.0, low=0, high=1)
NUMBERS: dict[str, Bound] = {
    "reward.kl": Bound(default=0.0, low=0, high=10),
    "distillation.ema_rate": Bound(default=0.05, low=0, high=1),
    "distillation.success": Bound(default=1.0, low=-1e6, high=1e6),
    "distillation.beta": Bound(default=0.5, low=0, high=1),
    "distillation.temperature": Bound(default=1.0, low=0, high=100, open_low=True),
    "distillation.clip": Bound(default=1.0, low=0, high=1e6, open_low=True),
    "distillation.top_k": Bound(default=100, low=1, high=1_000_000, whole=True),
    "distillation.ratio_cap": Bound(default=2.0, low=0, high=1e6, open_low=True),
    "dpo.pairs": Bound(default=1, low=1, high=1024, whole=True),
    "rollouts.generations": Bound(default=2, low=2, high=1024, whole=True),
    "rollouts.max_tokens": Bound(default=256, low=1, high=131_072, whole=True),
    "rollouts.iterations": Bound(default=1, low=1, high=100, whole=True),
    "rollouts.tool_turns": Bound(default=4, low=1, high=1000, whole=True),
    "gradients_every": Bound(default=10, low=0, high=1_000_000, whole=True),
}
for _channel in ("reward", "distillation", "dpo"):
    NUMBERS |= {f"{_channel}.{name}": _WEIGHT for name in ("weight", "final_weight")}
    NUMBERS[f"{_channel}.warmup"] = _SHARE
WORDS: dict[str, Sequence[str]] = {
    "distillation.objective": tuple(Objective),
    "distillation.average": tuple(Average),
    "dpo.reference": tuple(Reference),
}
PARTS: dict[str, type] = {
    "reward": RewardChannel,
    "distillation": DistillationChannel,
    "dpo": PreferenceChannel,
    "rollouts": Rollouts,
}
MOST_SOURCE = 64 * 1024
_Fault = Callable[[ast.Module, str], str]
_PACKAGES = "harness.training.reward_packages"


def read_composition(
    problems: FieldProblems, project: Project, path: str | None
) -> Composition | None:
    """What the file says, with the defaults of everything else; None where it cannot be read."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(_text(project, path, MOST_SOURCE))
        except (HarnessError, OSError, ValueError) as error:
            problems.add("composition", "a TOML file of the project", path, str(error))
            return None
    before = len(problems)
    reading = _Reading(problems=problems, project=project)
    parts = {name: reading.part(name, values.pop(name, {})) for name in PARTS}
    every = reading.number("gradients_every", values.pop("gradients_every", 10))
    for name in values:
        problems.add(f"composition.{name}", "/".join((*PARTS, "gradients_every")), name, "unknown")
    if len(problems) > before:
        return None
    made = Composition(
        **{name: kind(**parts[name]) for name, kind in PARTS.items()}, gradients_every=int(every)
    )
    _consistent(problems, made)
    return made


def _consistent(problems: FieldProblems, made: Composition) -> None:
    if not any(channel.used for channel in made.channels.values()):
        problems.add(
            "composition", "a channel with a weight above 0", "none", "nothing is learned"
        )
    environment = made.rollouts.environment
    actions, scores = _methods(environment)
    for name, given in (("tools", made.rollouts.tools), ("environment", environment)):
        if given and not made.rolls_out:
            problems.add(f"composition.rollouts.{name}", "rollouts", "none", "nothing calls them")
    names = [*(one.name for one in made.rollouts.tools), *actions]
    if len(set(names)) < len(names):
        problems.add("composition.rollouts.tools", "names that differ", names, "two are one name")
    functions, weights = made.reward.functions, made.reward.function_weights
    if made.needs_rewards and not (functions or scores):
        expected = "a function, or an environment with get_reward"
        problems.add("composition.reward.functions", expected, [], "nothing is scored")
    if len(functions) != len(weights):
        expected = f"{len(functions)} numbers, one a function"
        problems.add(
            "composition.reward.function_weights", expected, len(weights), "another count"
        )
    sampled = made.distillation.objective == Objective.SAMPLED
    if sampled and made.distillation.beta != 1:
        reason = "the sampled token estimates KL(student || teacher) alone"
        problems.add(
            "composition.distillation.beta", "1 with sampled", made.distillation.beta, reason
        )


def rows_problems(
    problems: FieldProblems, made: Composition, rows: Sequence[Mapping[str, Any]]
) -> None:
    """A channel with a weight that no row can ever feed is a problem before anything is trained."""
    if made.dpo.used and not any(_has(row, "chosen", "rejected") for row in rows):
        problems.add(
            "composition.dpo.weight", "rows with chosen and rejected", "none", "no row fires"
        )
    only = tuple(made.distillation.contexts) == (Context.HINT,)
    if made.distillation.used and only and not any(_has(row, "hint") for row in rows):
        problems.add(
            "composition.distillation.contexts", "rows with a hint", "none", "no row fires"
        )
    asked = any(one.name in REWARDS and not one.sha256 for one in made.reward.functions)
    if made.needs_rewards and asked and not any(_has(row, "answer") for row in rows):
        problems.add("composition.reward.functions", "rows with an answer", "none", "no row fires")


def _has(row: Mapping[str, Any], *names: str) -> bool:
    return all(flat(row.get(name)).strip() for name in names)


def _text(project: Project, path: str, most: int) -> str:
    layout: Layout = project.layout
    root = layout.root.resolve()
    places = [root, *(place.resolve() for place in granted(project.settings))]
    data = read_within(root / path, places)
    if (root / path).resolve().is_relative_to(layout.state.resolve()):
        raise ValueError("it is the harness's own")
    if len(data) > most:
        raise ValueError(f"it has {len(data)} bytes; at most {most} are read")
    return data.decode("utf-8")


@dataclass(frozen=True, kw_only=True)
class _Reading:
    problems: FieldProblems
    project: Project

    def part(self, part: str, given: Any) -> dict[str, Any]:
        """The arguments of the part's class; what is wrong is a problem and left out."""
        if not isinstance(given, dict):
            self.problems.add(f"composition.{part}", "a table", given, "it is none")
            return {}
        names = [one.name for one in fields(PARTS[part])]
        read: dict[str, Any] = {}
        for name, value in given.items():
            if name not in names:
                self.problems.add(f"composition.{part}.{name}", "/".join(names), name, "unknown")
            else:
                read[name] = self._value(f"{part}.{name}", value)
        return read

    def number(self, name: str, value: Any) -> float | int:
        return number_of(self.problems, f"composition.{name}", NUMBERS[name], value)

    def _value(self, name: str, value: Any) -> Any:
        if name in NUMBERS:
            return self.number(name, value)
        if name in WORDS:
            return self._word(name, WORDS[name], value)
        if name == "reward.functions":
            each = self._list(name, value, empty=True)
            return tuple(self._function(one) for one in each)
        if name == "rollouts.tools":
            return tuple(self._tool(one) for one in self._list(name, value))
        if name == "rollouts.environment":
            return self._of_file(name, str(value), "FILE.py:CLASS", fault=_class_fault)
        if name == "reward.function_weights":
            each = self._list(name, value, empty=True)
            return tuple(
                float(number_of(self.problems, f"composition.{name}", _WEIGHT, one))
                for one in each
            )
        if name == "distillation.contexts":
            each = self._list(name, value)
            return tuple(self._word(name, tuple(Context), one) for one in each)
        if not isinstance(value, bool if name == "distillation.tail" else str):
            expected = "true or false" if name == "distillation.tail" else "a text"
            self.problems.add(f"composition.{name}", expected, value, "it is none")
        return value

    def _word(self, name: str, words: Sequence[str], value: Any) -> Any:
        if value not in words:
            self.problems.add(f"composition.{name}", "/".join(words), value, "unknown")
        return value

    def _list(self, name: str, value: Any, *, empty: bool = False) -> list[Any]:
        if isinstance(value, list) and (value or empty):
            return value
        self.problems.add(f"composition.{name}", "a list", value, "it is none, or empty")
        return []

    def _function(self, word: Any) -> FrozenFunction:
        """One of REWARDS, `FILE.py:FUNCTION` with the file's text as it is now, or
        `package:DISTRIBUTION:NAME` with the hash of what is installed."""
        if word in REWARDS:
            return FrozenFunction(name=word)
        if str(word).startswith("package:"):
            return self._packaged(str(word))
        asked = f"{'/'.join(REWARDS)}, FILE.py:FUNCTION or package:DISTRIBUTION:NAME"
        return self._of_file("reward.functions", str(word), asked, fault=_function_fault)

    def _tool(self, word: Any) -> FrozenFunction:
        """`FILE.py:FUNCTION`, with a docstring and types: what the model is told of it."""
        return self._of_file("rollouts.tools", str(word), "FILE.py:FUNCTION", fault=_tool_fault)

    def _of_file(self, place: str, word: str, asked: str, *, fault: _Fault) -> FrozenFunction:
        """With the file's text as it is now."""
        file, _, name = word.rpartition(":")
        if not file.endswith(".py") or not name.isidentifier():
            self.problems.add(f"composition.{place}", asked, word, "unknown")
            return FrozenFunction(name=word)
        try:
            source = _text(self.project, file, MOST_SOURCE)
            folder = self.project.layout.root / Path(file).parent
            wrong = _source_fault(source, name, folder, fault)
        except (HarnessError, OSError, ValueError) as error:
            source, wrong = "", str(error)
        if wrong:
            kind = "class" if fault is _class_fault else "function"
            expected = f"a file of its own with that {kind}"
            self.problems.add(f"composition.{place}", expected, word, wrong)
        digest = sha256_bytes(source.encode())
        return FrozenFunction(name=name, file=file, sha256=digest, source=source)

    def _packaged(self, word: str) -> FrozenFunction:
        """As the project's interpreter has it."""
        _, package, name = (*word.split(":", 2), "", "")[:3]
        told: Any = {"error": "it names no package and function"}
        if package and name:
            told = _of_interpreter(self.project, package, name)
        if error := told.get("error"):
            expected = "package:DISTRIBUTION:NAME, installed, with that entry point"
            self.problems.add("composition.reward.functions", expected, word, str(error))
            return FrozenFunction(name=word)
        return FrozenFunction(
            name=name, package=package, version=told["version"], sha256=told["sha256"]
        )


def _of_interpreter(project: Project, package: str, name: str) -> Any:
    """What `harness.training.reward_packages` prints."""
    interpreter = require_interpreter(project.settings)
    done = subprocess.run(
        [interpreter, "-I", "-m", _PACKAGES, package, name],
        env=for_helpers(os.environ),
        capture_output=True,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return {"error": one_line(told[-1] if told else "no answer", 200)}


def _source_fault(source: str, name: str, folder: Path, fault: _Fault) -> str:
    """Why the source cannot be used by itself, or nothing; `fault` says it of what it defines."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    if wrong := fault(tree, name):
        return wrong
    for node in ast.walk(tree):
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = ["." if node.level else str(node.module)]
        for module in modules:
            top = module.partition(".")[0]
            if not top or (folder / f"{top}.py").exists() or (folder / top).is_dir():
                return f"it imports {module} of the project; only this file is kept"
    return ""


def _function_fault(tree: ast.Module, name: str) -> str:
    return "" if _defined(tree, name, ast.FunctionDef) else f"it has no function {name}"


def _tool_fault(tree: ast.Module, name: str) -> str:
    function = _defined(tree, name, ast.FunctionDef)
    return _function_fault(tree, name) or _untold(function, 0)


def _class_fault(tree: ast.Module, name: str) -> str:
    made = _defined(tree, name, ast.ClassDef)
    if made is None:
        return f"it has no class {name}"
    methods = [one for one in made.body if isinstance(one, ast.FunctionDef)]
    if not any(one.name == "reset" and one.args.kwarg for one in methods):
        return f"{name} has no method reset(self, **row)"
    faults = (_untold(one, 1) for one in methods if is_action(one.name))
    return next(filter(None, faults), "")


def _defined(tree: Any, name: str, kind: type[Any]) -> Any:
    """The last one, or None."""
    named = [one for one in tree.body if isinstance(one, kind) and one.name == name]
    return named[-1] if named else None


def _methods(environment: FrozenFunction | None) -> tuple[list[str], bool]:
    """Those that the model may call, and whether the environment scores."""
    if environment is None:
        return [], False
    made = _defined(ast.parse(environment.source or ""), environment.name, ast.ClassDef)
    body = made.body if made else []
    names = [one.name for one in body if isinstance(one, ast.FunctionDef)]
    return [one for one in names if is_action(one)], "get_reward" in names


def _untold(function: ast.FunctionDef, bound: int) -> str:
    """What the description of a tool is made of, and the function has not; or nothing. The first
    `bound` arguments are not the model's."""
    missing = _undescribed(function, bound)
    told = "and the model is told of it by that"
    return f"{function.name} has no {missing}, {told}" if missing else ""


def _undescribed(function: ast.FunctionDef, bound: int) -> str:
    words = function.args
    each = [*words.posonlyargs, *words.args, *words.kwonlyargs][bound:]
    bare = [one.arg for one in each if one.annotation is None]
    if bare:
        return f"type for {bare[0]}"
    text = ast.get_docstring(function) or ""
    if not text:
        return "docstring"
    lacking = [one.arg for one in each if f"{one.arg}:" not in text]
    return f"line `{lacking[0]}: ...` under Args: in its docstring" if lacking else ""


def teacher_of(made: Composition) -> str | None:
    """The id of the registry that the composition names as its teacher."""
    teacher = made.distillation.teacher
    return None if not made.distillation.used or teacher in tuple(Teacher) else teacher
