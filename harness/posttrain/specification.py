"""The specification of a training program: what a trainer is asked to do.

`specification_checks.specify` makes one of a request.
"""

from collections.abc import (
    Mapping,
    Sequence,
)
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.posttrain.field_problems import (
    FieldProblems,
    SpecificationError,
    field_problem,
)
from harness.posttrain.vocabulary import (
    MINUTES,
    SCHEMA,
    TOKENS,
    Backend,
    HardwareTier,
    Mode,
    Profile,
)

_ONLY_COMPOSED = ("composition", "teacher")
_WORDS: Mapping[str, type[Backend | Mode | Profile | HardwareTier]] = {
    "backend": Backend,
    "mode": Mode,
    "profile": Profile,
    "hardware_tier": HardwareTier,
}
"""Fields of a closed vocabulary."""


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
    dtype: str | None = None
    """By default bfloat16 on a GPU's tier, else float32."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    minutes: Any = MINUTES.default
    tokens: Any = TOKENS.default
    artifact: str = "adapter"
    composition: str | None = None
    """A TOML file; for the backend composed only, where it may be left out."""


@dataclass(frozen=True, kw_only=True)
class Specification:
    backend: Backend
    mode: Mode
    profile: Profile
    hardware_tier: HardwareTier
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
    composition: dict[str, Any] | None = None
    """Of the backend composed: `Composition.plain`."""
    teacher: dict[str, Any] | None = None
    """The local model that its distillation learns from, where that is not the student itself."""

    def fingerprint(self) -> str:
        """The configuration's fingerprint, computed anew."""
        return config_fingerprint(
            backend=self.backend.value,
            mode=self.mode.value,
            dtype=self.dtype,
            seed=self.seed,
            hyperparameters=self.hyperparameters,
            composition=self.composition,
        )

    def plain(self) -> dict[str, Any]:
        """The form of the ledger: paths inside the project are relative to it."""
        # Two clones of a project then have the same specification and the same hash.
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["command"] = None if self.command is None else list(self.command)
        for name in _ONLY_COMPOSED:
            if values[name] is None:
                del values[name]  # other backends' specifications never had them
        return {"schema": SCHEMA, **values}

    def for_trainer(self, root: Path, *, experiment: str, run: str) -> dict[str, Any]:
        """The form of spec.json, which the trainer reads: with absolute paths."""
        values = {**self.plain(), "experiment": experiment, "run": run}
        for name in {"model", "dataset", "benchmark", "teacher"} & set(values):
            path = values[name]["path"]
            values[name] = {**values[name], "path": None if path is None else str(root / path)}
        return values

    @property
    def sha256(self) -> str:
        return sha256_bytes(canonical_json(self.plain()))


def specification_from(values: Mapping[str, Any]) -> Specification:
    """The inverse of `Specification.plain`. Raises SpecificationError for another schema, and for
    a word that an earlier version had, e.g. the backend unsloth-orpo."""
    if values.get("schema") != SCHEMA:
        raise SpecificationError(
            [field_problem("schema", SCHEMA, values.get("schema"), "another version wrote it")]
        )
    own = {name: value for name, value in values.items() if name != "schema"}
    _require_known(own)
    words = {name: kind(own[name]) for name, kind in _WORDS.items()}
    command = own["command"]
    return Specification(
        **{**own, **words, "command": None if command is None else tuple(command)}
    )


def _require_known(own: Mapping[str, Any]) -> None:
    problems = FieldProblems()
    for name, kind in _WORDS.items():
        if own[name] not in set(kind):
            listed = ", ".join(kind)
            problems.add(name, f"one of {listed}", own[name], "it is no longer supported")
    if problems:
        mode = own["mode"]
        able = [one.value for one in Backend if mode in one.modes]
        raise SpecificationError(
            problems,
            hint="What it made stays. To train anew: `harness posttrain spec` with --mode"
            f" {mode} and --backend {' or '.join(able) or Backend.COMMAND}.",
        )


def config_fingerprint(
    *,
    backend: str,
    mode: str,
    dtype: str,
    seed: int,
    hyperparameters: Mapping[str, float | int],
    composition: Mapping[str, Any] | None = None,
) -> str:
    """Hash of everything that changes the training but data, model and code."""
    values: dict[str, Any] = {
        "backend": backend,
        "mode": mode,
        "dtype": dtype,
        "seed": seed,
        "hyperparameters": dict(hyperparameters),
    }
    if composition is not None:
        values["composition"] = composition
    return sha256_bytes(canonical_json(values))
