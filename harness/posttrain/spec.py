"""A specification: what a trainer is asked to do, checked on every bound before anything is
recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from harness.artifacts.content import hash_path
from harness.errors import HarnessError
from harness.files import canonical_json, sha256_bytes
from harness.ledger.project import Project
from harness.posttrain.fingerprints import code_hash, config_fingerprint
from harness.posttrain.numbers import check_hyperparameters, check_number
from harness.posttrain.problems import Problem, SpecificationError, problem
from harness.posttrain.registry import BaseModel, known_models
from harness.posttrain.tables import check_benchmark, check_dataset
from harness.posttrain.vocabulary import (
    DTYPES,
    FORMAT,
    LARGEST,
    MINUTES,
    MODES,
    SCHEMA,
    SEEDS,
    TIERS,
    TOKENS,
    Backend,
    Evaluator,
    Mode,
    Profile,
    Tier,
)

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person or agent asks for, unchecked. Paths are absolute or relative to the project."""

    backend: str
    mode: str
    profile: str
    model: str
    dataset: str
    benchmark: str
    evaluator: str | Sequence[str] = "preference"
    tier: str | None = None
    """By default cpu-experimental for dry-run and command, else consumer-gpu."""
    command: Sequence[str] | None = None
    seed: Any = 1
    dtype: str = "float32"
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    minutes: Any = MINUTES.default
    tokens: Any = TOKENS.default
    artifact: str = "adapter"


@dataclass(frozen=True, kw_only=True)
class Spec:
    backend: Backend
    mode: Mode
    profile: Profile
    hardware_tier: Tier
    command: tuple[str, ...] | None
    model: dict[str, Any]
    dataset: dict[str, Any]
    benchmark: dict[str, Any]
    seed: int
    dtype: str
    hyperparameters: dict[str, float | int]
    budget: dict[str, float | int]
    artifact: dict[str, str]
    config_fingerprint: str
    code_hash: str

    def fingerprint(self) -> str:
        """The configuration's, computed anew."""
        return config_fingerprint(
            backend=self.backend.value,
            mode=self.mode.value,
            dtype=self.dtype,
            seed=self.seed,
            hyperparameters=self.hyperparameters,
        )

    def plain(self) -> dict[str, Any]:
        """As the ledger keeps it: paths inside the project are relative to it."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["command"] = None if self.command is None else list(self.command)
        return {"schema": SCHEMA, **values}

    def told(self, root: Path, *, experiment: str, run: str) -> dict[str, Any]:
        """As the trainer gets it: with absolute paths."""
        values = {**self.plain(), "experiment": experiment, "run": run}
        for name in ("model", "dataset", "benchmark"):
            path = values[name]["path"]
            values[name] = {**values[name], "path": None if path is None else str(root / path)}
        return values

    @property
    def sha256(self) -> str:
        return sha256_bytes(canonical_json(self.plain()))


def spec_from(values: Mapping[str, Any]) -> Spec:
    """What `Spec.plain` gave. Raises SpecificationError for another schema."""
    if values.get("schema") != SCHEMA:
        raise SpecificationError(
            [problem("schema", SCHEMA, values.get("schema"), "another version wrote it")]
        )
    own = {name: value for name, value in values.items() if name != "schema"}
    words = {
        "backend": Backend(own["backend"]),
        "mode": Mode(own["mode"]),
        "profile": Profile(own["profile"]),
    }
    words |= {"hardware_tier": Tier(own["hardware_tier"])}
    command = own["command"]
    return Spec(**{**own, **words, "command": None if command is None else tuple(command)})


def specify(project: Project, request: Request) -> Spec:
    """Check everything and hash everything. Raises SpecificationError with all problems."""
    found: list[Problem] = []
    backend = _word(found, Backend, "backend", request.backend)
    mode = _word(found, Mode, "mode", request.mode)
    profile = _word(found, Profile, "profile", request.profile)
    usual = Tier.CPU if backend in (Backend.DRY_RUN, Backend.COMMAND) else Tier.CONSUMER_GPU
    tier = _word(found, Tier, "hardware_tier", usual if request.tier is None else request.tier)
    check_number(found, "seed", SEEDS, request.seed)
    check_number(found, "budget.minutes", MINUTES, request.minutes)
    check_number(found, "budget.tokens", TOKENS, request.tokens)
    numbers = check_hyperparameters(found, request.hyperparameters)
    model = _model(found, project, request, backend, profile, tier)
    evaluator = _evaluator(found, project, request.evaluator)
    dataset, prompts = check_dataset(found, project.layout.root, request.dataset, mode)
    benchmark, held = check_benchmark(found, project.layout.root, request.benchmark, evaluator)
    if shared := sorted(prompts & held):
        found.append(
            problem(
                "benchmark",
                "prompts that are not trained on",
                shared[0],
                f"{len(shared)} are in both",
            )
        )
    _words(found, request, backend, mode, tier)
    code = _code(found, project, backend, request.command, "code_hash")
    if found or not (backend and mode and profile and tier):
        raise SpecificationError(found)
    given = {
        "backend": backend.value,
        "mode": mode.value,
        "dtype": request.dtype,
        "seed": int(request.seed),
    }
    return Spec(
        backend=backend,
        mode=mode,
        profile=profile,
        hardware_tier=tier,
        command=tuple(request.command) if request.command else None,
        model=model,
        dataset=dataset,
        benchmark={**benchmark, "evaluator": evaluator},
        seed=int(request.seed),
        dtype=request.dtype,
        hyperparameters=numbers,
        budget={"minutes": float(request.minutes), "tokens": int(request.tokens)},
        artifact={"path": request.artifact, "format": FORMAT},
        config_fingerprint=config_fingerprint(**given, hyperparameters=numbers),  # type: ignore[arg-type]
        code_hash=code,
    )


def _word(found: list[Problem], kind: type[Word], name: str, value: Any) -> Word | None:
    try:
        return kind(value)
    except ValueError:
        found.append(problem(name, "/".join(kind), value, "unknown"))
        return None


def _words(
    found: list[Problem],
    request: Request,
    backend: Backend | None,
    mode: Mode | None,
    tier: Tier | None,
) -> None:
    if backend and mode and mode not in MODES[backend]:
        found.append(
            problem("mode", "/".join(sorted(MODES[backend])), mode, f"{backend} does no other")
        )
    if backend and tier and tier not in TIERS[backend]:
        found.append(
            problem(
                "hardware_tier",
                "/".join(sorted(TIERS[backend])),
                tier,
                f"{backend} runs on no other",
            )
        )
    if request.dtype not in DTYPES:
        found.append(problem("dtype", "/".join(DTYPES), request.dtype, "unknown"))
    path = Path(request.artifact)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        found.append(
            problem(
                "artifact.path",
                "a path below the output folder",
                request.artifact,
                "it leads out of it",
            )
        )
    if (backend is Backend.COMMAND) != bool(request.command):
        found.append(
            problem(
                "command",
                "words with the backend command only",
                request.command,
                f"it is {backend}",
            )
        )


def _evaluator(found: list[Problem], project: Project, value: str | Sequence[str]) -> Any:
    """A name, or {command, code_hash}: what a program of the project says of a model counts while
    it is this code."""
    if not isinstance(value, str):
        code = _code(found, project, Backend.COMMAND, value, "benchmark.evaluator")
        return {"command": list(value), "code_hash": code}
    word = _word(found, Evaluator, "benchmark.evaluator", value)
    return word.value if word else value


def _model(
    found: list[Problem],
    project: Project,
    request: Request,
    backend: Backend | None,
    profile: Profile | None,
    tier: Tier | None,
) -> dict[str, Any]:
    models = known_models(project.layout)
    model: BaseModel | None = models.get(request.model)
    if model is None:
        found.append(
            problem(
                "model",
                "an id of the registry",
                request.model,
                f"known: {', '.join(sorted(models))}",
            )
        )
        return {}
    if profile and profile not in model.profiles:
        found.append(
            problem(
                "model", f"a model for {profile}", model.id, f"it is for {'/'.join(model.profiles)}"
            )
        )
    if tier and backend is not Backend.DRY_RUN and model.parameters > LARGEST[tier]:
        found.append(
            problem(
                "model",
                f"at most {LARGEST[tier]:,} parameters",
                model.parameters,
                f"too large: {tier}",
            )
        )
    if model.path is None and backend not in (Backend.DRY_RUN, Backend.COMMAND):
        found.append(
            problem(
                "model.path",
                "weights of the model",
                "none",
                "add them: `harness posttrain model add`",
            )
        )
    if model.path is not None and _hash(Path(model.path)) != model.sha256:
        found.append(
            problem("model.sha256", model.sha256, _hash(Path(model.path)), "the weights changed")
        )
    return {"id": model.id, "family": model.family, "path": model.path, "sha256": model.sha256}


def _hash(path: Path) -> str:
    """Of what is there now; the reason where nothing can be read."""
    try:
        return hash_path(path)
    except HarnessError as error:
        return error.message


def _code(
    found: list[Problem],
    project: Project,
    backend: Backend | None,
    command: Sequence[str] | None,
    name: str,
) -> str:
    if backend is None:
        return ""
    try:
        return code_hash(backend, command, project.layout.root)
    except HarnessError as error:
        found.append(problem(name, "a program that can be read", backend, error.message))
        return ""
