"""The schema of plan.md, version 1. A key enters it when something reads it."""

import difflib
import re
import shlex
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from harness.detectors.kinds import KINDS, STOP_ON
from harness.detectors.watch_settings import WatchSettings, known_thresholds
from harness.domain.metric_words import understood
from harness.domain.metrics import METRICS
from harness.domain.plain_text import plain
from harness.domain.records import CLASSICAL, Objective
from harness.domain.statuses import Direction, GateMode, Tier

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.!+_]+\Z")
_SPLITS = ("val", "valid", "validation", "eval", "dev", "test")
_TABLES = (".npz", ".csv", ".jsonl", ".parquet")
HIDDEN = "hidden"
"""As data.validation: the validation table lies in the vault, like held-out."""


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("text that is not empty")
    return value.strip()


def _name(value: str) -> str:
    if not _NAME.match(value):
        raise ValueError("1 to 63 of a-z, 0-9, '.', '_', '-', starting with a letter or digit")
    return value


def inside_project(value: str) -> str:
    path = PurePosixPath(_text(value))
    odd = "\\" in value or plain(value) != value or "\t" in value or "\n" in value
    ours = path.parts[:1] in ((".harness",), (".git",))
    if odd or ours or path.is_absolute() or ".." in path.parts:
        raise ValueError(
            "a path inside the project, relative to its root and outside .harness and .git"
        )
    return path.as_posix()


def _table(value: str) -> str:
    path = inside_project(value)
    if PurePosixPath(path).suffix not in _TABLES:
        raise ValueError(f"a table: one of {', '.join(_TABLES)}")
    return path


def _validation(value: str) -> str:
    try:
        return value if value == HIDDEN else _table(value)
    except ValueError as error:
        raise ValueError(f"{error}; or the word {HIDDEN}") from error


def _command(value: str) -> str:
    try:
        words = shlex.split(_text(value))
    except ValueError:
        words = []
    if not words:
        raise ValueError("a command, its quotes closed")
    return value.strip()


def _package(value: str) -> str:
    if not _PACKAGE.match(value):
        raise ValueError("a package with its version, e.g. scikit-learn==1.7.2")
    return value


def _alarm(value: str) -> str:
    if value not in KINDS:
        close = difflib.get_close_matches(value, list(KINDS), n=1)
        raise ValueError(
            f"the code of an alarm, {f'perhaps {close[0]}' if close else ', '.join(KINDS)}"
        )
    return value


def _codes(value: Any) -> Any:
    """`none` is an empty list."""
    return () if value == "none" else value


def _threshold(value: str) -> str:
    if value not in known_thresholds():
        close = difflib.get_close_matches(value, list(known_thresholds()), n=1)
        example = close[0] if close else "divergence.above_start"
        raise ValueError(
            f"the name of a threshold as docs/detectors.md lists them, e.g. {example}"
        )
    return value


Text = Annotated[str, AfterValidator(_text)]
Command = Annotated[str, AfterValidator(_command)]
Name = Annotated[str, AfterValidator(_name)]
ProjectPath = Annotated[str, AfterValidator(inside_project)]
TablePath = Annotated[str, AfterValidator(_table)]
Validation = Annotated[str, AfterValidator(_validation)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Package = Annotated[str, AfterValidator(_package)]
AlarmCode = Annotated[str, AfterValidator(_alarm)]
AlarmCodes = Annotated[tuple[AlarmCode, ...], BeforeValidator(_codes), Field(strict=False)]
ThresholdName = Annotated[str, AfterValidator(_threshold)]


class PlanPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class HeldOut(PlanPart):
    path: TablePath
    inputs: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    label: Text
    id: Text


class Data(PlanPart):
    train: TablePath
    validation: Validation | None = None
    """A table, `hidden`, or None: the harness splits train."""
    held_out: HeldOut
    group: Text | None = None
    """The column of what rows have in common: rows of one group are split, resampled and compared
    together."""

    def part(self, name: str) -> str:
        """Where the harness writes a part of the train table: `<stem of train>.<name><suffix>`."""
        train = PurePosixPath(self.train)
        return train.with_name(f"{train.stem}.{name}{train.suffix}").as_posix()


class Tiers(PlanPart):
    must: Finite
    should: Finite | None = None
    could: Finite | None = None

    def given(self) -> dict[Tier, float]:
        return {tier: value for tier in Tier if (value := getattr(self, tier.value)) is not None}


class Oracle(PlanPart):
    metric: Name
    direction: Annotated[Direction, Field(strict=False)]
    scorer: Text
    packages: Annotated[tuple[Package, ...], Field(strict=False)] = ()
    """What a script that scores imports beside the standard library, each with its version."""
    positive: str | int | float | bool | None = None
    """Of two classes the one that is looked for; by default the greater label."""
    predict: Command
    predict_minutes: Positive | None = None
    """How long one call of predict may take; by default about as long as the run trained."""
    tiers: Tiers
    seeds: Count
    queries: Count
    bits: Positive = 20
    """What all answers about held-out and a hidden validation may tell of their labels together."""
    step: Positive | None = None
    """The grid of what is told of them, in the metric's unit; by default about a standard error."""

    @model_validator(mode="before")
    @classmethod
    def _names_of_the_table(cls, given: Any) -> Any:
        """`AUROC` and `val/acc` are roc_auc and accuracy. A script's metric keeps its own name."""
        if not isinstance(given, dict):
            return given
        scorer, metric = understood(given.get("scorer")), understood(given.get("metric"))
        if scorer is None:
            return given
        return {**given, "scorer": scorer} | ({"metric": metric} if metric else {})


class Training(PlanPart):
    entry: Command
    checkpoint_every: Count = 10
    deterministic: bool = False
    """It draws nothing at random: seeds may give the same weights, and count as one then."""


class Budget(PlanPart):
    experiments: Count
    run_minutes: Positive
    total_minutes: Positive
    usd: Positive | None = None
    tokens: Count | None = None
    """Of models, read and written, from the cache or not."""


class Loop(PlanPart):
    stop_tier: Annotated[Tier, Field(strict=False)] = Tier.MUST
    patience: Count = 3
    service_hours: Positive = 6.0
    """How long a loop waits for a model service that does not answer, before it ends."""
    search: Literal["line", "tree"] = "line"
    """What the next experiment builds on: the last kept one, or the branch with the best bound."""


class Gates(PlanPart):
    mode: Annotated[GateMode, Field(strict=False)] = GateMode.AUTO
    phases: bool = False
    """Whether each phase of the workflow is a gate; else `harness phase` only shows them."""


class Alarms(PlanPart):
    stop_on: AlarmCodes = STOP_ON
    """Codes whose fatal alarm ends a run; `none`: no alarm does."""
    off: AlarmCodes = ()
    thresholds: dict[ThresholdName, Finite] = {}


class Agents(PlanPart):
    profile: Literal["default", "low-token"] = "default"


class Plan(PlanPart):
    schema_version: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    workflow: Literal["classical-ml", "deep-learning", "post-training", "research"]
    objective_text: Annotated[Text, Field(alias="objective")]
    data: Data
    oracle: Oracle
    training: Training
    budget: Budget
    loop: Loop = Loop()
    gates: Gates = Gates()
    agents: Agents = Agents()
    alarms: Alarms = Alarms()
    references: Annotated[tuple[ProjectPath, ...], Field(strict=False)] = ()
    """Papers and baselines, files or folders, that a research-scout reads."""
    sandbox: Literal["required", "preferred"] = "preferred"

    def objective(self) -> Objective:
        """What scores are judged by."""
        oracle = self.oracle
        return Objective(
            metric=oracle.metric,
            direction=oracle.direction,
            tiers=oracle.tiers.given(),
            seeds=oracle.seeds,
            queries=oracle.queries,
        )

    def watch_settings(self) -> WatchSettings:
        """With the metric's direction under all names that training code may give it."""
        name, direction = self.oracle.metric, self.oracle.direction
        spellings = (name, *(f"{split}{mark}{name}" for split in _SPLITS for mark in "_/"))
        return WatchSettings(
            directions=dict.fromkeys(spellings, direction),
            checkpoint_every=self.checkpoint_cadence,
            off=frozenset(self.alarms.off),
            stop_on=frozenset(self.alarms.stop_on),
            thresholds=dict(self.alarms.thresholds),
        )

    @property
    def checkpoint_cadence(self) -> int | None:
        """training.checkpoint_every; None for classical-ml."""
        return None if self.workflow == CLASSICAL else self.training.checkpoint_every

    def plain(self) -> dict[str, Any]:
        """The front matter as JSON values, defaults filled in; the inverse of `plan_from`."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def hidden_validation(self) -> bool:
        """Whether nobody but the harness reads the validation rows once the plan is approved."""
        return self.data.validation == HIDDEN

    @property
    def scorer_script(self) -> str | None:
        """The scorer's path relative to the project, or None for a built-in one."""
        return None if self.oracle.scorer in METRICS else self.oracle.scorer
