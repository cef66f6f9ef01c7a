"""Running the frozen scorer in a process of its own: `-I -S`, no agent code.

Its files are laid out in a fresh folder, each verified by hash first.
"""

import contextlib
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import process
from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.metrics import METRICS, IntervalMethod
from harness.domain.sandbox import Confinement, Sandbox
from harness.evaluation import problems, scorer_program
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import METRIC, Columns
from harness.files import canonical_json, make_folder, sha256_bytes
from harness.ledger.facts.plan import ApprovedPlan
from harness.plans.labels import ClassLabel
from harness.plans.scorer_packages import ScorerEnvironment, python_of, standing

PROGRAM = Path(scorer_program.__file__)
_METRICS = PROGRAM.with_name("metrics")
SCRIPT_RESAMPLES = 200
"""Of a script's score, for its interval: each costs one call."""
_READ = 64_000


@dataclass(frozen=True, kw_only=True)
class FrozenScorer:
    """What the approved plan froze: a built-in name, or a script with its import closure."""

    name: str
    entry: str | None = None
    """The script, relative; None for a built-in."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Relative path -> SHA-256; the blobs lie in the vault's objects under their hash."""
    environment: ScorerEnvironment | None = None
    """As it is now, of a script with packages."""
    approved_environment: str | None = None
    """Its SHA-256 as it was approved; None without packages."""
    positive: ClassLabel | None = None
    """The plan's `oracle.positive`; without it the greater of two classes is the positive one."""

    def hash(self) -> str:
        """Of everything that decides the score."""
        parts: dict[str, Any] = {"name": self.name, "entry": self.entry, "files": dict(self.files)}
        program = PROGRAM.read_bytes()
        if self.entry is None and self.name in METRICS:
            program += _metric_file(self.name).read_bytes()
            options = METRICS[self.name].options
            parts |= {"options": dict(options), "positive": self.positive}
        if self.approved_environment is not None:
            parts["environment"] = self.approved_environment
        return sha256_bytes(canonical_json(parts | {"program": sha256_bytes(program)}))


def scorer_of(approved: ApprovedPlan, scorers: Path | None = None) -> FrozenScorer:
    """`scorers`: where environments of scorers lie, to score with it."""
    frozen = approved.scorer
    packages = frozen.get("environment")
    return FrozenScorer(
        name=frozen["name"],
        entry=frozen["entry"],
        files=frozen["files"],
        environment=standing(scorers / packages["folder"]) if scorers and packages else None,
        approved_environment=packages["sha256"] if packages else None,
        positive=approved.content["oracle"].get("positive"),
    )


@dataclass(frozen=True, kw_only=True)
class ScoreJob:
    labels: list[Any]
    ids: list[str]
    predictions: Columns
    baseline: Columns | None
    seed: int
    groups: NDArray[np.int64] | None = None
    """Each row's group: a script's resamples are of whole groups."""
    positive: str | None = None
    """The positive one of two classes, for a metric that has one."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    value: float
    baseline: float | None
    rows: list[float] | None
    """Contributions whose mean is the value; None where the metric has none."""
    resampled: list[float] | None
    """A script's scores of resamples; None for built-ins and when they took too long."""


def score(
    scorer: FrozenScorer,
    job: ScoreJob,
    *,
    objects: Path,
    work: Path,
    seconds: float,
    sandbox: Sandbox | None = None,
) -> Scored:
    """`sandbox`: of a scorer with packages, which are strangers' code. Raises Unscorable:
    scorer_changed, scorer_failed, score_not_finite."""
    make_folder(work)
    with tempfile.TemporaryDirectory(
        dir=work, prefix="score-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name).resolve()
        lay_out(scorer, objects, folder)
        call = partial(_call, scorer, job, folder, seconds=seconds, sandbox=sandbox)
        plain = call(resamples=0)
        resampled = None
        if _is_resampled(scorer):
            # A second call: when its resamples take too long, the score stands without an interval.
            with contextlib.suppress(Unscorable):
                again = call(resamples=SCRIPT_RESAMPLES)
                resampled = again["resampled"]
    value = _number(plain["value"])
    if not math.isfinite(value):
        raise Unscorable(problems.score_not_finite(value))
    baseline = None if plain["baseline"] is None else _number(plain["baseline"])
    return Scored(
        value=value,
        baseline=baseline if baseline is not None and math.isfinite(baseline) else None,
        rows=None if plain["rows"] is None else [_number(row) for row in plain["rows"]],
        resampled=_finite(resampled),
    )


def lay_out(scorer: FrozenScorer, objects: Path, folder: Path) -> None:
    """The scorer program in `folder`, a script's files below `folder/frozen`; all read-only."""
    _write(folder / PROGRAM.name, PROGRAM.read_bytes())
    if scorer.entry is None:
        _write(folder / METRIC.name, _metric_file(scorer.name).read_bytes())
        return
    found = scorer.environment and scorer.environment.sha256
    if found != scorer.approved_environment:
        why = "It is not there." if found is None else "Its files are others."
        raise Unscorable(problems.scorer_changed("environment of packages", why))
    if scorer.entry not in scorer.files:
        raise Unscorable(
            problems.scorer_failed(f"{scorer.name} has no frozen file {scorer.entry}")
        )
    for relative, expected in sorted(scorer.files.items()):
        path = PurePosixPath(relative)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            why = f"{scorer.name} has a frozen file outside its folder: {relative}"
            raise Unscorable(problems.scorer_failed(why))
        try:
            _write(folder / "frozen" / path, load_object(objects, expected))
        except ObjectDamagedError as error:
            raise Unscorable(problems.scorer_changed(relative, error.message)) from error


def _is_resampled(scorer: FrozenScorer) -> bool:
    return scorer.entry is not None or METRICS[scorer.name].interval is IntervalMethod.RESAMPLED


def _metric_file(name: str) -> Path:
    return _METRICS / f"{METRICS[name].module}.py"


def _call(
    scorer: FrozenScorer,
    job: ScoreJob,
    folder: Path,
    *,
    resamples: int,
    seconds: float,
    sandbox: Sandbox | None,
) -> dict[str, Any]:
    task = {
        "scorer": scorer.name,
        "script": scorer.entry,
        "labels": job.labels,
        "ids": job.ids,
        "predictions": job.predictions,
        "baseline": job.baseline,
        "resamples": resamples,
        "seed": job.seed,
        "groups": None if job.groups is None else job.groups.tolist(),
        "options": {} if scorer.entry else METRICS[scorer.name].options_with(job.positive),
    }
    output = folder / f"output-{resamples}"
    output.mkdir()
    job_path, result_path = folder / f"job-{resamples}.json", output / "result.json"
    job_path.write_text(json.dumps(task, allow_nan=False), encoding="utf-8")
    words = [str(folder / PROGRAM.name), str(job_path), str(result_path)]
    if scorer.environment is None:
        exit_code, stderr = _run(words, folder, seconds)
    elif sandbox is None:
        raise Unscorable(problems.scorer_failed(f"{scorer.name} has packages and no sandbox"))
    else:
        done = sandbox.run(
            [*with_packages(scorer.environment), *words],
            confinement=Confinement(
                writable=(output,), read_only=(folder, scorer.environment.folder)
            ),
            cwd=output,
            environment={"LC_ALL": "C.UTF-8", "TMPDIR": str(output)},
            timeout_s=seconds,
        )
        exit_code, stderr = done.exit_code, done.stderr
    if exit_code is None:
        raise Unscorable(
            problems.scorer_failed(
                f"{scorer.name} was ended at its limit of {seconds:g} s", stderr
            )
        )
    if exit_code != 0:
        raise Unscorable(
            problems.scorer_failed(f"{scorer.name} ended with exit code {exit_code}", stderr)
        )
    try:
        return dict(json.loads(result_path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise Unscorable(
            problems.scorer_failed(f"{scorer.name} left no result ({error})", stderr)
        ) from error


def with_packages(environment: ScorerEnvironment) -> list[str]:
    """The Python that imports them, and writes no byte code beside them."""
    return [str(python_of(environment.folder)), "-I", "-B"]


def _run(arguments: list[str], folder: Path, seconds: float) -> tuple[int | None, bytes]:
    """(exit code, or None at the limit; the end of stderr)."""
    # To a file: a process that the scorer left behind could hold a pipe open.
    log = folder / "stderr.log"
    with log.open("wb") as stderr:
        finished = process.run(
            [sys.executable, "-I", "-S", *arguments],
            cwd=folder,
            environment={"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TMPDIR": str(folder)},
            seconds=seconds,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _READ))
        return None if finished.timed_out else finished.code, stream.read(_READ)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o444)


def _number(value: Any) -> float:
    return float(value)  # also of the texts "NaN" and "Infinity"


def _finite(values: list[Any] | None) -> list[float] | None:
    numbers = [_number(value) for value in values or []]
    return numbers if numbers and all(math.isfinite(number) for number in numbers) else None
