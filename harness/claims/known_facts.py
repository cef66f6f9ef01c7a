"""The facts that claims are compared with: scores, logged metrics, and the measured figures of
docs/evidence/NAME.json with the sentences that name them."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.sentences import Sentence, without_pointers
from harness.errors import UsageError

FOLDER = "docs/evidence"
_HINT = "Run its program again with `--record`."


class ClaimKind(StrEnum):
    RECOMPUTED = "recomputed"
    """Agrees with what the harness computed from checkpoints or holds in its ledger."""
    LOGGED = "logged"
    """Agrees with run logger rows, or with an evidence file of a measuring program."""
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


HOLDS = frozenset({ClaimKind.RECOMPUTED, ClaimKind.LOGGED})


@dataclass(frozen=True, kw_only=True)
class KnownScore:
    """The score of an experiment on one split, in the metric's own unit."""

    mean: float
    spread: float | None
    """Sample standard deviation over seeds."""
    values: tuple[float, ...]
    """One per seed."""
    rows: int
    interval: tuple[float, float] | None
    baseline: float | None
    """The trivial predictor's score on the same rows."""


@dataclass(frozen=True, kw_only=True)
class RunTally:
    """How the runs of an experiment ended, and the alarms that they raised."""

    completed: int
    failed: int
    """Failed, killed or lost; a person's cancelling is none of these."""
    failed_by_kind: tuple[int, ...]
    """Of each status that occurred, how many."""
    seeds: int
    """With a completed run."""
    seeds_launched: int
    alarms: tuple[str, ...] = ()
    """The code of each that was raised, notes left out."""
    open_alarms: int = 0
    fatal_alarms: int = 0
    alarmed_runs: int = 0
    known_alarms: frozenset[str] = frozenset()
    """All codes that there are."""


@dataclass(frozen=True, kw_only=True)
class KnownExperiment:
    id: str
    parent: str | None
    metric: str
    maximize: bool
    tiers: tuple[float, ...]
    scores: Mapping[str, KnownScore]
    """By split: "validation", "held_out"."""
    launches: int
    """Number of registered runs, however they ended."""
    seconds: float | None = None
    """Mean wall time of the completed runs."""
    logged: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Metric as training logged it -> every value of every counted run."""
    tally: RunTally | None = None
    scored_seeds: Mapping[str, int] = field(default_factory=dict)
    """By split, also where labels are secret and one answer stands for all seeds."""
    answers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By split whose labels are secret: the numbers of the answer, e.g. of "not better than 0.85 in
    steps of 0.05"."""
    named_tiers: Mapping[str, float] = field(default_factory=dict)
    """The plan's tiers by name."""
    tiers_told: Mapping[str, str | None] = field(default_factory=dict)
    """By split whose labels are secret: the highest tier that was told."""

    @property
    def tiers_reached(self) -> dict[str, frozenset[str]]:
        """By split the names of the tiers that its score reaches."""
        sign = 1 if self.maximize else -1
        own = {split: score.mean for split, score in self.scores.items()}
        own |= {
            split: self.named_tiers[tier]
            for split, tier in self.tiers_told.items()
            if tier is not None and tier in self.named_tiers
        }
        return {
            split: frozenset(
                name for name, least in self.named_tiers.items() if sign * (mean - least) >= -1e-9
            )
            for split, mean in own.items()
        } | {split: frozenset() for split, tier in self.tiers_told.items() if tier is None}


@dataclass(frozen=True, kw_only=True)
class KnownFacts:
    experiments: Mapping[str, KnownExperiment] = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """File of evidence, e.g. "docs/evidence/bench.json" -> its figures."""
    programs: frozenset[str] = frozenset()
    """Programs that measure, e.g. "bench/status.py"."""
    opened: int | None = None
    """How many experiments the ledger has; None without a ledger."""

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the plans' metrics and of all logged metrics."""
        experiments = self.experiments.values()
        return frozenset(
            {one.metric for one in experiments}
            | {name for one in experiments for name in one.logged}
        )


def read_evidence_files(root: Path) -> dict[str, dict[str, float]]:
    """Path from `root` -> the numbers under `figures`; a text counts as its leading number.

    Raises UsageError for a file that is not an object with `name`, `command` and `figures`.
    """
    return {
        path.relative_to(root).as_posix(): _figures(path)
        for path in sorted((root / FOLDER).glob("*.json"))
    }


def _figures(path: Path) -> dict[str, float]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}.", hint=_HINT) from error
    missing = {"name", "command", "figures"} - set(document if isinstance(document, dict) else ())
    if missing or not isinstance(document["figures"], dict):
        raise UsageError(
            f"{path} lacks {', '.join(sorted(missing)) or 'a mapping under figures'}.", hint=_HINT
        )
    numbers = {key: _number(value) for key, value in document["figures"].items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(value: object) -> float | None:
    if isinstance(value, str):
        match = re.match(r"[-+]?\d+(?:\.\d+)?", value)
        return float(match.group()) if match else None
    usable = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )
    return float(value) if usable and isinstance(value, int | float) else None


def known_files(root: Path) -> KnownFacts:
    """The facts of a repository without a ledger: evidence files and programs in bench/."""
    programs = frozenset(path.relative_to(root).as_posix() for path in root.glob("bench/**/*.py"))
    return KnownFacts(evidence=read_evidence_files(root), programs=programs)


_SAME = {
    "min": "minute",
    "mins": "minute",
    "sec": "second",
    "secs": "second",
    "s": "second",
    "h": "hour",
    "gb": "gigabyte",
    "gib": "gigabyte",
    "mb": "megabyte",
    "mib": "megabyte",
    "times": "ratio",
    "x": "ratio",
    "percent": "share",
    "percentage": "share",
}
_UNITS = {"x": "ratio", "%": "share"}
_UNIT_WORDS = frozenset({*_SAME.values(), "ms", "us", "kb", "byte"})
_SMALL = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "per",
        "to",
        "and",
        "by",
        "for",
        "is",
        "was",
        "were",
        "are",
        "on",
    ]
)
_CLAUSE = re.compile(r"[;,.]\s")


def named_keys(sentence: Sentence, figure: Figure, figures: Mapping[str, float]) -> list[str]:
    """The keys of `figures` that the sentence names for this number; [] when it names none."""
    # The words choose the key, never the value: some figure agrees with a number by chance sooner
    # than one thinks. A key needs a word in the number's own clause (not only its unit) and half
    # of its words in the sentence; of several, the key that the clause names most fully wins. In a
    # table the clause is the cell, then the row and column heads.
    text = without_pointers(sentence.text)
    context = _words(text[: sentence.first])
    clause = _clause(text, figure, sentence.first)
    around = _words(text[: figure.start]) | _words(text[figure.end :]) | clause
    ranked = []
    for key in _with_outcome(text, figure, figures):
        parts = _words(key)
        own, near, far = (len(parts & place) for place in (clause, clause | context, around))
        own_words = parts - _UNIT_WORDS or parts
        if own_words & (clause | context) and 2 * far >= len(parts):
            ranked.append(((own / len(parts), near / len(parts), near), key))
    best = max((rank for rank, _ in ranked), default=None)
    return [key for rank, key in ranked if rank == best]


def _clause(text: str, figure: Figure, first: int) -> frozenset[str]:
    """The words of the clause around the number, and its unit as a word."""
    cuts = [match.end() for match in _CLAUSE.finditer(text)]
    begin = max((cut for cut in cuts if cut <= figure.start), default=0)
    end = min((cut for cut in cuts if cut >= figure.end), default=len(text))
    unit = {_UNITS[figure.unit]} if figure.unit in _UNITS else set()
    return _words(text[max(begin, first) : figure.start]) | _words(text[figure.end : end]) | unit


def _with_outcome(text: str, figure: Figure, keys: Iterable[str]) -> list[str]:
    """The keys with the outcome that follows the number (`97 were caught`), if any; else all."""
    outcome = words.OUTCOME_AFTER.match(text[figure.end :])
    wanted = _words(outcome.group().split()[-1]) if outcome else frozenset()
    kept = [key for key in keys if wanted & _words(key)]
    return kept or list(keys)


def _words(text: str) -> frozenset[str]:
    return frozenset(
        _plain(word) for word in re.findall(r"[a-z]+|\d+", text.lower()) if word not in _SMALL
    )


def _plain(word: str) -> str:
    known = _SAME.get(word, word)
    return (
        known[:-1]
        if len(known) > 3 and known.endswith("s") and not known.endswith("ss")
        else known
    )
