"""Is a trainer's result to be believed? Every field against the specification and the files; all
problems at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.errors import HarnessError
from harness.posttrain.problems import Problem, problem
from harness.posttrain.reading import is_finite, read_object
from harness.posttrain.spec import Spec
from harness.posttrain.vocabulary import SCHEMA, Backend
from harness.posttrain.weights import artifact_fault

LARGEST = 1024 * 1024
"""Bytes of a result."""
_KEYS = (
    *(
        "schema",
        "experiment",
        "run",
        "backend",
        "mode",
        "profile",
        "model",
        "seed",
        "dtype",
        "status",
        "spec_sha256",
    ),
    *(
        "config_fingerprint",
        "dataset_sha256",
        "dataset_rows",
        "rows_used",
        "rows_refused",
        "base_model_sha256",
    ),
    *("metrics", "artifact", "failure"),
)
_METRICS = ("wall_clock_minutes", "final_loss", "tokens_seen", "steps")
_SLACK_MINUTES = 0.05


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the harness saw itself."""

    experiment: str
    run: str
    spec_sha256: str
    exit_code: int | None
    output: Path
    minutes: float
    tokens: float | None
    """The largest `tokens_seen` of the run's rows; None when no row says it."""
    rows: int | None
    """Of the run logger; None when nobody here could see them."""
    before: Mapping[str, str | None]
    """dataset_sha256, base_model_sha256, code_hash when the trainer was started, and"""
    after: Mapping[str, str | None]
    """the same when it had ended."""
    spent: float = 0.0
    """Tokens of all attempts, steps that a later one repeated included, as the rows say."""
    began: float | None = None
    """The file system's time before the trainer was started; by default when the run was
    registered."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What came of stdout and the result file."""

    result: dict[str, Any] | None
    source: str
    problems: tuple[Problem, ...] = ()


def read_result(stdout: Path, file: Path) -> Read:
    """stdout's object, else the file's. Junk on stdout is a problem even where the file is good."""
    printed, said = read_object(stdout, "stdout", largest=LARGEST)
    written, wrote = read_object(file, "result.json", largest=LARGEST)
    if said is not None:
        return Read(
            result=written,
            source="file" if written else "none",
            problems=(said, *([wrote] if wrote else [])),
        )
    if printed is not None:
        if wrote is not None:
            return Read(result=printed, source="stdout", problems=(wrote,))
        if written is not None and written != printed:
            differ = problem(
                "result",
                "the same object on stdout and in result.json",
                "two",
                "nobody can say which",
            )
            return Read(result=printed, source="stdout", problems=(differ,))
        return Read(result=printed, source="stdout")
    if written is not None:
        return Read(result=written, source="file")
    none = wrote or problem(
        "result", "one JSON object on stdout or in result.json", "nothing", "the trainer gave none"
    )
    return Read(result=None, source="none", problems=(none,))


def validate(
    spec: Spec, result: Mapping[str, Any], seen: Observed
) -> tuple[list[Problem], str | None]:
    """(all problems, content hash of the artifact). No problem and a hash: it is believed. A failed
    result that is right has neither. No field can set a promotion state: there is none for it, and
    unknown ones are problems."""
    found: list[Problem] = []
    for name in sorted(set(result) - {*_KEYS, "extra"}):
        found.append(problem(name, "no such key", result[name], "unknown"))
    for name in (name for name in _KEYS if name not in result):
        found.append(problem(name, "a value", "nothing", "missing"))
    status = result.get("status")
    _identity(found, spec, result, seen, computed=status != "failed")
    _status(found, spec, result, seen)
    found += changes(spec, seen)
    if status == "failed":
        return found, None
    _rows(found, spec, result)
    _metrics(found, spec, result, seen)
    _extra(found, result.get("extra", {}))
    return found, _artifact(found, spec, result, seen)


def _identity(
    found: list[Problem], spec: Spec, result: Mapping[str, Any], seen: Observed, *, computed: bool
) -> None:
    same: dict[str, tuple[Any, str]] = {
        "schema": (SCHEMA, "another version of the protocol"),
        "experiment": (seen.experiment, "the result is of another experiment"),
        "run": (seen.run, "the result is of another run"),
        "backend": (spec.backend.value, "another backend made it"),
        "mode": (spec.mode.value, "another mode"),
        "profile": (spec.profile.value, "for another worker"),
        "model": (spec.model["id"], "another base model"),
        "seed": (spec.seed, "another seed"),
        "dtype": (spec.dtype, "another dtype"),
    }
    hashes = {
        "spec_sha256": (seen.spec_sha256, "it read another specification"),
        "config_fingerprint": (spec.fingerprint(), "it trained with another configuration"),
        "dataset_sha256": (spec.dataset["sha256"], "it read other rows"),
        "base_model_sha256": (spec.model["sha256"], "it started from other weights"),
    }
    for name, (expected, reason) in {**same, **hashes}.items():
        told = result.get(name)
        may_lack = name in hashes and not computed and told is None
        if not may_lack and (told != expected or type(told) is not type(expected)):
            found.append(problem(name, expected, told, reason))


def _status(found: list[Problem], spec: Spec, result: Mapping[str, Any], seen: Observed) -> None:
    status, dry = result.get("status"), spec.backend is Backend.DRY_RUN
    allowed = ("dry_run", "failed") if dry else ("completed", "failed")
    if status not in allowed:
        found.append(
            problem("status", "/".join(allowed), status, f"not of the backend {spec.backend}")
        )
    if seen.exit_code is not None and (status == "failed") == (seen.exit_code == 0):
        found.append(
            problem("status", f"what exit code {seen.exit_code} says", status, "they disagree")
        )
    failure = result.get("failure")
    if (status == "failed") != (isinstance(failure, str) and bool(failure.strip())):
        found.append(
            problem(
                "failure",
                "a sentence when it failed, else null",
                failure,
                f"the status is {status}",
            )
        )
    if (dry or status == "failed") and result.get("artifact") is not None:
        found.append(problem("artifact", "null", result.get("artifact"), "nothing may come of it"))


def changes(spec: Spec, seen: Observed) -> list[Problem]:
    """Dataset, base model and trainer, hashed by the harness before and after: each that is not
    what was specified."""
    found: list[Problem] = []
    wanted = {"dataset_sha256": spec.dataset["sha256"], "base_model_sha256": spec.model["sha256"]}
    for name, expected in {**wanted, "code_hash": spec.code_hash}.items():
        for when, hashes in (("before", seen.before), ("after", seen.after)):
            if hashes[name] != expected:
                found.append(
                    problem(
                        name, expected, hashes[name], f"changed, as the harness saw {when} training"
                    )
                )
    return found


def _rows(found: list[Problem], spec: Spec, result: Mapping[str, Any]) -> None:
    used, refused = result.get("rows_used"), result.get("rows_refused")
    if result.get("dataset_rows") != spec.dataset["rows"]:
        found.append(
            problem(
                "dataset_rows",
                spec.dataset["rows"],
                result.get("dataset_rows"),
                "it read other rows",
            )
        )
    good = (
        _whole(used)
        and isinstance(refused, dict)
        and all(_whole(count) for count in refused.values())
    )
    if not good or int(used or 0) + sum((refused or {}).values()) != spec.dataset["rows"]:
        found.append(
            problem(
                "rows_used",
                f"{spec.dataset['rows']} less those refused",
                used,
                f"refused: {refused!r}",
            )
        )


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _metrics(found: list[Problem], spec: Spec, result: Mapping[str, Any], seen: Observed) -> None:
    metrics = result.get("metrics")
    if not isinstance(metrics, dict) or set(metrics) != set(_METRICS):
        found.append(problem("metrics", ", ".join(_METRICS), metrics, "missing or unknown"))
        return
    dry = spec.backend is Backend.DRY_RUN
    for name, value in metrics.items():
        missing = dry and name == "final_loss" and value is None
        if not missing and not is_finite(value):
            found.append(problem(f"metrics.{name}", "a finite number", value, "it is none"))
        elif not missing and name != "final_loss" and value < 0:
            found.append(problem(f"metrics.{name}", "0 or more", value, "negative"))
    minutes, tokens = metrics["wall_clock_minutes"], metrics["tokens_seen"]
    least = min(float(spec.budget["minutes"]), seen.minutes) + _SLACK_MINUTES
    if is_finite(minutes) and minutes > least:
        found.append(
            problem(
                "metrics.wall_clock_minutes",
                f"at most {least:.4g}",
                minutes,
                "beyond budget or clock",
            )
        )
    if is_finite(tokens) and tokens > spec.budget["tokens"]:
        found.append(
            problem(
                "metrics.tokens_seen",
                f"at most {spec.budget['tokens']}",
                tokens,
                "beyond the budget",
            )
        )
    if seen.spent > spec.budget["tokens"]:
        found.append(
            problem(
                "tokens",
                f"at most {spec.budget['tokens']}",
                seen.spent,
                "budget.tokens, all attempts",
            )
        )
    if is_finite(tokens) and seen.tokens is not None and tokens < seen.tokens:
        found.append(
            problem(
                "metrics.tokens_seen", f"at least {seen.tokens:g}", tokens, "less than it logged"
            )
        )
    if not dry and seen.rows == 0:
        found.append(
            problem(
                "metrics",
                "rows of the run logger",
                "none",
                "no detector and no budget saw the training",
            )
        )


def _extra(found: list[Problem], extra: Any) -> None:
    flat = isinstance(extra, dict) and all(
        is_finite(item) or isinstance(item, str) for item in extra.values()
    )
    if not flat:
        found.append(
            problem("extra", "a flat object of finite numbers and texts", extra, "it is none")
        )


def _artifact(
    found: list[Problem], spec: Spec, result: Mapping[str, Any], seen: Observed
) -> str | None:
    if spec.backend is Backend.DRY_RUN:
        return None
    told = result.get("artifact")
    if told != spec.artifact:
        found.append(problem("artifact", spec.artifact, told, "not what the specification expects"))
        return None
    path = seen.output / spec.artifact["path"]
    if path.is_symlink() or not path.resolve().is_relative_to(seen.output.resolve()):
        found.append(
            problem("artifact.path", "inside the output folder", path, "it leads out of it")
        )
        return None
    if fault := artifact_fault(path):
        found.append(problem("artifact", f"a {spec.artifact['format']} that loads", path, fault))
        return None
    try:
        digest = hash_path(path)
    except (HarnessError, OSError, ValueError) as error:  # a name that is no text, too
        found.append(problem("artifact", "files that can be read", path, str(error)))
        return None
    if digest == spec.model["sha256"]:
        found.append(
            problem(
                "artifact", "weights that were trained", digest[:12], "the bytes of the base model"
            )
        )
    return digest
