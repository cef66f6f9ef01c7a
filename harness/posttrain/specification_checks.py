"""A request is checked on every bound before a specification is recorded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from harness.artifacts.content import hash_path
from harness.errors import HarnessError
from harness.ledger.project import Project
from harness.posttrain.base_models import known_models
from harness.posttrain.code_hashes import code_hash
from harness.posttrain.field_problems import FieldProblems, SpecificationError
from harness.posttrain.specification import Request, Specification, config_fingerprint
from harness.posttrain.untrusted_json import is_finite, read_json_lines
from harness.posttrain.vocabulary import (
    DTYPES,
    FORMAT,
    HYPERPARAMETERS,
    MINUTES,
    PAIR,
    SEEDS,
    THRESHOLDS,
    TOKENS,
    Backend,
    Bound,
    Evaluator,
    HardwareTier,
    Mode,
    Profile,
    RowTexts,
)

Word = TypeVar("Word", bound=StrEnum)


def specify(project: Project, request: Request) -> Specification:
    """Check everything and hash everything. Raises SpecificationError with all problems."""
    problems, root = FieldProblems(), project.layout.root
    backend = _word(problems, Backend, "backend", request.backend)
    mode = _word(problems, Mode, "mode", request.mode)
    profile = _word(problems, Profile, "profile", request.profile)
    without_gpu = backend in (Backend.DRY_RUN, Backend.COMMAND)
    usual = HardwareTier.CPU if without_gpu else HardwareTier.CONSUMER_GPU
    tier = _word(
        problems, HardwareTier, "hardware_tier", usual if request.tier is None else request.tier
    )
    _number(problems, "seed", SEEDS, request.seed)
    _number(problems, "budget.minutes", MINUTES, request.minutes)
    _number(problems, "budget.tokens", TOKENS, request.tokens)
    hyperparameters = _hyperparameters(problems, request.hyperparameters)
    model = _model(problems, project, request.model, backend, profile, tier)
    evaluator = _evaluator(problems, root, request.evaluator)
    dataset, prompts = _dataset(problems, root, request.dataset, mode)
    benchmark, held_out = _benchmark(problems, root, request.benchmark, evaluator)
    # A prompt that was trained on would measure memory, not learning.
    if shared := sorted(prompts & held_out):
        reason = f"{len(shared)} are in both"
        problems.add("benchmark", "prompts that are not trained on", shared[0], reason)
    _consistent(problems, request, backend, mode, tier)
    code = _code(problems, root, backend, request.command, "code_hash")
    if problems or not (backend and mode and profile and tier):
        raise SpecificationError(problems)
    seed = int(request.seed)
    return Specification(
        backend=backend,
        mode=mode,
        profile=profile,
        hardware_tier=tier,
        command=tuple(request.command) if request.command else None,
        model=model,
        dataset=dataset,
        benchmark={**benchmark, "evaluator": evaluator},
        seed=seed,
        dtype=request.dtype,
        hyperparameters=hyperparameters,
        budget={"minutes": float(request.minutes), "tokens": int(request.tokens)},
        artifact={"path": request.artifact, "format": FORMAT},
        config_fingerprint=config_fingerprint(
            backend=backend.value,
            mode=mode.value,
            dtype=request.dtype,
            seed=seed,
            hyperparameters=hyperparameters,
        ),
        code_hash=code,
    )


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
    tier: HardwareTier | None,
) -> None:
    if backend and mode and mode not in backend.modes:
        problems.add("mode", "/".join(sorted(backend.modes)), mode, f"{backend} does no other")
    if backend and tier and tier not in backend.tiers:
        tiers = "/".join(sorted(backend.tiers))
        problems.add("hardware_tier", tiers, tier, f"{backend} runs on no other")
    if request.dtype not in DTYPES:
        problems.add("dtype", "/".join(DTYPES), request.dtype, "unknown")
    path = Path(request.artifact)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        expected = "a path below the output folder"
        problems.add("artifact.path", expected, request.artifact, "it leads out of it")
    if (backend is Backend.COMMAND) != bool(request.command):
        expected = "words with the backend command only"
        problems.add("command", expected, request.command, f"the backend is {backend}")


def _number(problems: FieldProblems, name: str, bound: Bound, value: Any) -> float | int:
    """The number as it is recorded. Out of bounds: a problem is added, the default returned."""
    # `is_finite` first: a text, a boolean and NaN must not reach the comparisons.
    good = (
        is_finite(value)
        and (value > bound.low if bound.open_low else value >= bound.low)
        and value <= bound.high
    )
    if not good or (bound.whole and int(value) != value):
        problems.add(name, str(bound), value, "out of bounds")
        return bound.default
    return int(value) if bound.whole else float(value)


def _hyperparameters(
    problems: FieldProblems, requested: Mapping[str, Any]
) -> dict[str, float | int]:
    """All of them; one that is not requested has its default."""
    for name in sorted(set(requested) - set(HYPERPARAMETERS)):
        problems.add(f"hyperparameters.{name}", "/".join(HYPERPARAMETERS), name, "unknown")
    return {
        name: _number(
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


def _hash(path: Path) -> str:
    """Hash of what is there now; the reason where nothing can be read."""
    try:
        return hash_path(path)
    except HarnessError as error:
        return error.message


def _evaluator(problems: FieldProblems, root: Path, evaluator: str | Sequence[str]) -> Any:
    """A name, or {command, code_hash}: a program's scores count only while it is this code."""
    if not isinstance(evaluator, str):
        code = _code(problems, root, Backend.COMMAND, evaluator, "benchmark.evaluator")
        return {"command": list(evaluator), "code_hash": code}
    word = _word(problems, Evaluator, "benchmark.evaluator", evaluator)
    return word.value if word else evaluator


def _code(
    problems: FieldProblems,
    root: Path,
    backend: Backend | None,
    command: Sequence[str] | None,
    name: str,
) -> str:
    if backend is None:
        return ""
    try:
        return code_hash(backend, command, root)
    except HarnessError as error:
        problems.add(name, "a program that can be read", backend, error.message)
        return ""


def _dataset(
    problems: FieldProblems, root: Path, path: str, mode: Mode | None
) -> tuple[dict[str, Any], set[str]]:
    """{path, sha256, rows} of the rows to train on, and their prompts."""
    described, rows = _table(problems, root, "dataset", path, mode.row_texts if mode else ())
    return described, _prompts(rows)


def _benchmark(
    problems: FieldProblems, root: Path, path: str, evaluator: Any
) -> tuple[dict[str, Any], set[str]]:
    """As `_dataset`: rows that the evaluator can score one by one, and enough for a verdict."""
    texts: RowTexts = (("id",), ("prompt",))
    if isinstance(evaluator, str) and evaluator in tuple(Evaluator):
        texts = Evaluator(evaluator).row_texts
    described, rows = _table(problems, root, "benchmark", path, texts)
    counts = Counter(str(row.get("id")) for row in rows)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        problems.add("benchmark", "an id of its own for each row", repeated[0], "it is there twice")
    if rows and len(rows) < THRESHOLDS.rows:
        reason = "too few for any verdict but INCONCLUSIVE"
        problems.add("benchmark", f"at least {THRESHOLDS.rows} rows", len(rows), reason)
    return described, _prompts(rows)


def _table(
    problems: FieldProblems, root: Path, name: str, path: str, texts: RowTexts
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    resolved = (root / path).resolve()
    try:
        digest, rows = read_json_lines(resolved)
    except (HarnessError, OSError) as error:
        problems.add(name, "a file with one JSON object a line", path, str(error))
        return {}, []
    for number, row in enumerate(rows, 1):
        if fault := _row_fault(row, texts):
            problems.add(f"{name} row {number}", *fault)
            break
    inside = resolved.is_relative_to(root)
    shown = resolved.relative_to(root).as_posix() if inside else str(resolved)
    return {"path": shown, "sha256": digest, "rows": len(rows)}, rows


def _row_fault(row: dict[str, Any], texts: RowTexts) -> tuple[str, Any, str] | None:
    """(expected, actual, reason)."""
    missing = [
        keys
        for keys in texts
        if not any(isinstance(row.get(key), str) and row[key].strip() for key in keys)
    ]
    if missing:
        return f"text in {', '.join(map(' or '.join, missing))}", row.get(missing[0][0]), "missing"
    if texts[-3:] == PAIR and row["chosen"] == row["rejected"]:
        return "chosen that differs from rejected", row["chosen"], "equal"
    return None


def _prompts(rows: list[dict[str, Any]]) -> set[str]:
    # White space is normalised: the same prompt with other line breaks is still contamination.
    return {" ".join(str(row.get("prompt")).split()) for row in rows}
