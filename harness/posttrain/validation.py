"""Every field of a trainer's result is compared with the specification and with what the harness
observed; all problems are collected."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.errors import HarnessError
from harness.posttrain.adapter import adapter_fault
from harness.posttrain.field_problems import (
    FieldProblem,
    FieldProblems,
    field_problem,
)
from harness.posttrain.specification import Specification
from harness.posttrain.untrusted_json import (
    is_finite,
    read_object,
)
from harness.posttrain.vocabulary import (
    SCHEMA,
    Backend,
)

LARGEST = 1024 * 1024
"""Bytes of a result."""
_NAMES = ("schema", "experiment", "run", "backend", "mode", "profile", "model", "seed", "dtype")
_HASHES = ("spec_sha256", "config_fingerprint", "dataset_sha256", "base_model_sha256")
_COUNTS = ("dataset_rows", "rows_used", "rows_refused", "metrics")
_KEYS = (*_NAMES, "status", *_HASHES, *_COUNTS, "artifact", "failure")
_METRICS = ("wall_clock_minutes", "final_loss", "tokens_seen", "steps")
_TRAINED = ("steps", "tokens_seen")
_SLACK_MINUTES = 0.05
_SAME_LOSS = 0.01
"""Relative: a row may round the loss that the result tells whole."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the harness saw itself."""

    experiment: str
    run: str
    spec_sha256: str
    exit_code: int | None
    """None for a trainer that ran elsewhere."""
    output: Path
    minutes: float
    tokens: float | None
    """The largest `tokens_seen` of the run's rows; None when no row has it."""
    rows: int | None
    """Rows of the run logger; None when nobody here could see them."""
    loss: float | None
    """Of the last row that has one."""
    before: Mapping[str, str | None]
    """dataset_sha256, base_model_sha256, code_hash when the trainer was started, and"""
    after: Mapping[str, str | None]
    """the same when it had ended."""
    spent: float = 0.0
    """Tokens of all attempts, by their rows; steps that a later attempt repeated count again."""
    began: float | None = None
    """The file system's time before the start; by default when the run was registered."""


@dataclass(frozen=True, kw_only=True)
class ReportedResult:
    """The result that a trainer reported, on stdout or in its result file."""

    result: dict[str, Any] | None
    source: str
    problems: tuple[FieldProblem, ...] = ()


def read_result(stdout: Path, file: Path) -> ReportedResult:
    """The object on stdout, else that of the file. Junk on stdout is a problem all the same."""
    printed, stdout_problem = read_object(stdout, "stdout", largest=LARGEST)
    written, file_problem = read_object(file, "result.json", largest=LARGEST)
    of_file = (file_problem,) if file_problem else ()
    if stdout_problem is not None:
        source = "file" if written else "none"
        return ReportedResult(result=written, source=source, problems=(stdout_problem, *of_file))
    if printed is not None:
        if not of_file and written is not None and written != printed:
            expected = "the same object on stdout and in result.json"
            of_file = (field_problem("result", expected, "two", "which one holds is unknown"),)
        return ReportedResult(result=printed, source="stdout", problems=of_file)
    if written is not None:
        return ReportedResult(result=written, source="file")
    expected = "one JSON object on stdout or in result.json"
    none = field_problem("result", expected, "nothing", "the trainer gave none")
    return ReportedResult(result=None, source="none", problems=of_file or (none,))


def validate(
    spec: Specification, result: Mapping[str, Any], seen: Observed
) -> tuple[FieldProblems, str | None]:
    """(all problems, content hash of the artifact). The result is believed when there is a hash and
    no problem; a correct result that says "failed" has neither."""
    problems = FieldProblems()
    for name in sorted(set(result) - {*_KEYS, "extra"}):
        problems.add(name, "no such key", result[name], "unknown")
    for name in (name for name in _KEYS if name not in result):
        problems.add(name, "a value", "nothing", "missing")
    status = result.get("status")
    _check_identity(problems, spec, result, seen)
    _check_status(problems, spec, result, seen)
    problems += changes(spec, seen)
    if status == "failed":
        return problems, None
    _check_rows(problems, spec, result)
    _check_metrics(problems, spec, result, seen)
    _check_extra(problems, result.get("extra", {}))
    return problems, _check_artifact(problems, spec, result, seen)


def changes(spec: Specification, seen: Observed) -> FieldProblems:
    """Dataset, base model and trainer code that differed from the specification, before or after
    training."""
    problems = FieldProblems()
    specified = {
        "dataset_sha256": spec.dataset["sha256"],
        "base_model_sha256": spec.model["sha256"],
        "code_hash": spec.code_hash,
    }
    for name, expected in specified.items():
        for when, hashes in (("before", seen.before), ("after", seen.after)):
            if hashes[name] != expected:
                reason = f"changed, as the harness saw {when} training"
                problems.add(name, expected, hashes[name], reason)
    return problems


def _check_identity(
    problems: FieldProblems, spec: Specification, result: Mapping[str, Any], seen: Observed
) -> None:
    names: dict[str, tuple[Any, str]] = {
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
    hashes: dict[str, tuple[Any, str]] = {
        "spec_sha256": (seen.spec_sha256, "it read another specification"),
        "config_fingerprint": (spec.fingerprint(), "it trained with another configuration"),
        "dataset_sha256": (spec.dataset["sha256"], "it read other rows"),
        "base_model_sha256": (spec.model["sha256"], "it started from other weights"),
    }
    failed = result.get("status") == "failed"
    for name, (expected, reason) in {**names, **hashes}.items():
        actual = result.get(name)
        # A trainer that failed early has not computed its hashes yet.
        may_lack = name in hashes and failed and actual is None
        # The types, too: 1 == True and 1 == 1.0, and neither is the seed 1.
        if not may_lack and (actual != expected or type(actual) is not type(expected)):
            problems.add(name, expected, actual, reason)


def _check_status(
    problems: FieldProblems, spec: Specification, result: Mapping[str, Any], seen: Observed
) -> None:
    status, dry = result.get("status"), spec.backend is Backend.DRY_RUN
    failed = status == "failed"
    allowed = ("dry_run", "failed") if dry else ("completed", "failed")
    if status not in allowed:
        problems.add("status", "/".join(allowed), status, f"not of the backend {spec.backend}")
    # Both must agree: an exit code alone tells no reason, and a status alone is only a claim.
    if seen.exit_code is not None and failed == (seen.exit_code == 0):
        expected = f"what exit code {seen.exit_code} says"
        problems.add("status", expected, status, "they disagree")
    failure = result.get("failure")
    if failed != (isinstance(failure, str) and bool(failure.strip())):
        expected = "a sentence when it failed, else null"
        problems.add("failure", expected, failure, f"the status is {status}")
    if (dry or failed) and result.get("artifact") is not None:
        problems.add("artifact", "null", result.get("artifact"), "there can be no artifact")


def _check_rows(problems: FieldProblems, spec: Specification, result: Mapping[str, Any]) -> None:
    used, refused = result.get("rows_used"), result.get("rows_refused")
    rows = spec.dataset["rows"]
    if result.get("dataset_rows") != rows:
        problems.add("dataset_rows", rows, result.get("dataset_rows"), "it read other rows")
    good = (
        _is_count(used)
        and isinstance(refused, dict)
        and all(_is_count(count) for count in refused.values())
    )
    if not good or int(used or 0) + sum((refused or {}).values()) != rows:
        expected = f"{rows} less those refused"
        problems.add("rows_used", expected, used, f"refused: {refused!r}")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _check_metrics(
    problems: FieldProblems, spec: Specification, result: Mapping[str, Any], seen: Observed
) -> None:
    metrics = result.get("metrics")
    if not isinstance(metrics, dict) or set(metrics) != set(_METRICS):
        problems.add("metrics", ", ".join(_METRICS), metrics, "missing or unknown")
        return
    dry = spec.backend is Backend.DRY_RUN
    for name, value in metrics.items():
        if dry and name == "final_loss" and value is None:
            continue
        if not is_finite(value):
            problems.add(f"metrics.{name}", "a finite number", value, "not a finite number")
        elif name != "final_loss" and value < 0:
            problems.add(f"metrics.{name}", "0 or more", value, "negative")
        elif not dry and name in _TRAINED and value == 0:
            problems.add(f"metrics.{name}", "1 or more", value, "nothing was trained")
    minutes, tokens = metrics["wall_clock_minutes"], metrics["tokens_seen"]
    # The harness's own clock counts, too: a trainer cannot have trained longer than it ran.
    longest = min(float(spec.budget["minutes"]), seen.minutes) + _SLACK_MINUTES
    if is_finite(minutes) and minutes > longest:
        expected = f"at most {longest:.4g}"
        problems.add("metrics.wall_clock_minutes", expected, minutes, "beyond budget or clock")
    most = spec.budget["tokens"]
    if is_finite(tokens) and tokens > most:
        problems.add("metrics.tokens_seen", f"at most {most}", tokens, "beyond the budget")
    if seen.spent > most:
        problems.add("tokens", f"at most {most}", seen.spent, "budget.tokens, all attempts")
    # Not equal: the last step may have been trained and not logged.
    if is_finite(tokens) and seen.tokens is not None and tokens < seen.tokens:
        expected = f"at least {seen.tokens:g}"
        problems.add("metrics.tokens_seen", expected, tokens, "less than it logged")
    loss = metrics["final_loss"]
    if seen.loss is not None and is_finite(loss) and not _same(loss, seen.loss):
        problems.add("metrics.final_loss", f"{seen.loss:.6g}", loss, "its last row says another")
    if not dry and seen.rows == 0:
        reason = "no detector and no budget saw the training"
        problems.add("metrics", "rows of the run logger", "none", reason)


def _same(loss: float, logged: float) -> bool:
    return abs(loss - logged) <= _SAME_LOSS * max(abs(loss), abs(logged), _SAME_LOSS)


def _check_extra(problems: FieldProblems, extra: Any) -> None:
    flat = isinstance(extra, dict) and all(
        is_finite(value) or isinstance(value, str) for value in extra.values()
    )
    if not flat:
        problems.add("extra", "a flat object of finite numbers and texts", extra, "it is not one")


def _check_artifact(
    problems: FieldProblems, spec: Specification, result: Mapping[str, Any], seen: Observed
) -> str | None:
    """The artifact's content hash; None without an artifact that can be read."""
    if spec.backend is Backend.DRY_RUN:
        return None
    reported = result.get("artifact")
    if reported != spec.artifact:
        reason = "not what the specification expects"
        problems.add("artifact", spec.artifact, reported, reason)
        return None
    # A link could lead to weights that this run did not make.
    path = seen.output / spec.artifact["path"]
    if path.is_symlink() or not path.resolve().is_relative_to(seen.output.resolve()):
        problems.add("artifact.path", "inside the output folder", path, "it leads out of it")
        return None
    if fault := adapter_fault(path, spec.model):
        problems.add("artifact", f"a {spec.artifact['format']} that loads", path, fault)
        return None
    try:
        digest = hash_path(path)
    except (HarnessError, OSError, ValueError) as error:  # ValueError: a name that is no text
        problems.add("artifact", "files that can be read", path, str(error))
        return None
    if digest == spec.model["sha256"]:
        reason = "the bytes of the base model"
        problems.add("artifact", "weights that were trained", digest[:12], reason)
    return digest
