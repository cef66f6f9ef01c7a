"""A request is checked on every bound before a specification is recorded."""

from collections.abc import (
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import (
    Any,
    TypeVar,
)

from harness.artifacts.content import hash_path
from harness.domain.composition import Composition
from harness.errors import HarnessError
from harness.ledger.project import Project
from harness.posttrain.base_models import known_models
from harness.posttrain.bounds import number_of
from harness.posttrain.code_hashes import code_hash
from harness.posttrain.composition import (
    read_composition,
    rows_problems,
    teacher_of,
)
from harness.posttrain.contamination import (
    Contamination,
    contamination,
)
from harness.posttrain.field_problems import (
    FieldProblems,
    SpecificationError,
)
from harness.posttrain.specification import (
    Request,
    Specification,
    config_fingerprint,
)
from harness.posttrain.tables import (
    ANY_FORM,
    ONE_TEXT,
    ROLLOUTS,
    Table,
    benchmark_of,
    read_table,
)
from harness.posttrain.vocabulary import (
    DTYPES,
    FORMAT,
    HYPERPARAMETERS,
    MINUTES,
    SEEDS,
    TOKENS,
    Backend,
    Evaluator,
    HardwareTier,
    Mode,
    Profile,
)
from harness.settings import Settings

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class CheckedRequest:
    """A specification, and what was read for it, once."""

    spec: Specification
    rows: list[dict[str, Any]]
    """To train on."""
    contamination: Contamination
    """Of the benchmark, by them."""
    layouts: Mapping[str, int]
    """Layout of the training rows -> how many have it."""


def check_request(project: Project, request: Request) -> CheckedRequest:
    """Check everything and hash everything. Raises SpecificationError with all problems."""
    problems, settings = FieldProblems(), project.settings
    backend = _word(problems, Backend, "backend", request.backend)
    mode = _word(problems, Mode, "mode", request.mode)
    profile = _word(problems, Profile, "profile", request.profile)
    without_gpu = backend in (Backend.DRY_RUN, Backend.COMMAND)
    usual = HardwareTier.CPU if without_gpu else HardwareTier.CONSUMER_GPU
    tier = _word(
        problems, HardwareTier, "hardware_tier", usual if request.tier is None else request.tier
    )
    number_of(problems, "seed", SEEDS, request.seed)
    number_of(problems, "budget.minutes", MINUTES, request.minutes)
    number_of(problems, "budget.tokens", TOKENS, request.tokens)
    hyperparameters = _hyperparameters(problems, request.hyperparameters)
    model = _model(problems, project, request.model, backend, profile, tier)
    composition = _composition(problems, project, request, backend)
    teacher = _teacher(problems, project, composition, tier)
    evaluator = evaluator_of(problems, settings, request.evaluator)
    dataset = _dataset(problems, project, request, mode)
    if composition is not None and dataset.rows:
        rows_problems(problems, composition, dataset.rows)
    benchmark = benchmark_of(problems, project, request.benchmark, evaluator)
    told = contamination(dataset.rows, benchmark.rows)
    # A prompt that was trained on would measure memory, not learning.
    if shared := [name for name, kind in told.found.items() if kind == "prompt"]:
        reason = f"{len(shared)} are in both"
        problems.add("benchmark", "prompts that are not trained on", f"row {shared[0]}", reason)
    _consistent(problems, request, backend, mode)
    code = _code(problems, settings, backend, request.command, "code_hash")
    if problems or not (backend and mode and profile and tier):
        raise SpecificationError(problems)
    configuration: dict[str, Any] = {
        "dtype": request.dtype or ("float32" if tier is HardwareTier.CPU else "bfloat16"),
        "seed": int(request.seed),
        "hyperparameters": hyperparameters,
        "composition": None if composition is None else composition.plain(),
    }
    spec = Specification(
        backend=backend,
        mode=mode,
        profile=profile,
        hardware_tier=tier,
        command=tuple(request.command) if request.command else None,
        model=model,
        teacher=teacher,
        dataset=dataset.plain(),
        benchmark={**benchmark.plain(), "evaluator": evaluator},
        budget={"minutes": float(request.minutes), "tokens": int(request.tokens)},
        artifact={"path": request.artifact, "format": FORMAT},
        config_fingerprint=config_fingerprint(
            backend=backend.value, mode=mode.value, **configuration
        ),
        code_hash=code,
        **configuration,
    )
    return CheckedRequest(
        spec=spec, rows=dataset.rows, contamination=told, layouts=dataset.layouts
    )


def _dataset(
    problems: FieldProblems, project: Project, request: Request, mode: Mode | None
) -> Table:
    texts = mode.row_texts if mode else ()
    form = ROLLOUTS if mode is Mode.COMPOSED else ONE_TEXT if mode is Mode.GRPO else ANY_FORM
    return read_table(problems, project, "dataset", request.dataset, texts, form=form)


def _word(problems: FieldProblems, words: type[Word], name: str, value: Any) -> Word | None:
    try:
        return words(value)
    except ValueError:
        problems.add(name, "/".join(words), value, "unknown")
        return None


def _consistent(
    problems: FieldProblems,
    request: Request,
    backend: Backend | None,
    mode: Mode | None,
) -> None:
    if backend and mode and mode not in backend.modes:
        problems.add("mode", "/".join(sorted(backend.modes)), mode, f"{backend} does no other")
    if request.dtype not in (None, *DTYPES):
        problems.add("dtype", "/".join(DTYPES), request.dtype, "unknown")
    path = Path(request.artifact)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        expected = "a path below the output folder"
        problems.add("artifact.path", expected, request.artifact, "it leads out of it")
    if (backend is Backend.COMMAND) != bool(request.command):
        expected = "words with the backend command only"
        problems.add("command", expected, request.command, f"the backend is {backend}")


def _hyperparameters(
    problems: FieldProblems, requested: Mapping[str, Any]
) -> dict[str, float | int]:
    """All of them; one that is not requested has its default."""
    for name in sorted(set(requested) - set(HYPERPARAMETERS)):
        problems.add(f"hyperparameters.{name}", "/".join(HYPERPARAMETERS), name, "unknown")
    return {
        name: number_of(
            problems, f"hyperparameters.{name}", bound, requested.get(name, bound.default)
        )
        for name, bound in HYPERPARAMETERS.items()
    }


def _model(
    problems: FieldProblems,
    project: Project,
    identifier: str,
    backend: Backend | None,
    profile: Profile | None,
    tier: HardwareTier | None,
) -> dict[str, Any]:
    models = known_models(project.layout)
    model = models.get(identifier)
    if model is None:
        known = f"known: {', '.join(sorted(models))}"
        problems.add("model", "an id of the registry", identifier, known)
        return {}
    if profile and profile not in model.profiles:
        reason = f"it is for {'/'.join(model.profiles)}"
        problems.add("model", f"a model for {profile}", model.id, reason)
    if tier and backend is not Backend.DRY_RUN and model.parameters > tier.largest_model:
        expected = f"at most {tier.largest_model:,} parameters"
        problems.add("model", expected, model.parameters, f"too large for {tier}")
    if model.path is None and backend not in (Backend.DRY_RUN, Backend.COMMAND):
        hint = "add them: `harness posttrain model add`"
        problems.add("model.path", "weights of the model", "none", hint)
    if model.path is not None and (now := _hash(Path(model.path))) != model.sha256:
        problems.add("model.sha256", model.sha256, now, "the weights changed")
    return {"id": model.id, "family": model.family, "path": model.path, "sha256": model.sha256}


def _composition(
    problems: FieldProblems, project: Project, request: Request, backend: Backend | None
) -> Composition | None:
    """Of the backend `composed`; another one has none."""
    if backend is Backend.COMPOSED:
        return read_composition(problems, project, request.composition)
    if request.composition is not None:
        reason = f"the backend is {backend}"
        problems.add("composition", "none but with composed", request.composition, reason)
    return None


def _teacher(
    problems: FieldProblems,
    project: Project,
    composition: Composition | None,
    tier: HardwareTier | None,
) -> dict[str, Any] | None:
    """The model that the composition names as its teacher, hashed as the base model is."""
    name = None if composition is None else teacher_of(composition)
    if name is None:
        return None
    found = FieldProblems()
    model = _model(found, project, name, Backend.COMPOSED, None, tier)
    for one in found:
        where = one.field.replace("model", "composition.distillation.teacher", 1)
        problems.add(where, one.expected, one.actual, one.reason)
    return model


def _hash(path: Path) -> str:
    """Hash of what is there now; the reason where nothing can be read."""
    try:
        return hash_path(path)
    except HarnessError as error:
        return error.message


def evaluator_of(
    problems: FieldProblems, settings: Settings, evaluator: str | Sequence[str]
) -> Any:
    """A name, or {command, code_hash}: a program's scores count only while it is this code."""
    if not isinstance(evaluator, str):
        code = _code(problems, settings, Backend.COMMAND, evaluator, "benchmark.evaluator")
        return {"command": list(evaluator), "code_hash": code}
    word = _word(problems, Evaluator, "benchmark.evaluator", evaluator)
    return word.value if word else evaluator


def _code(
    problems: FieldProblems,
    settings: Settings,
    backend: Backend | None,
    command: Sequence[str] | None,
    name: str,
) -> str:
    if backend is None:
        return ""
    try:
        return code_hash(backend, command, settings)
    except HarnessError as error:
        problems.add(name, "a program that can be read", backend, error.message)
        return ""
