"""What a sentence claims: each number with the metric, experiment and split that it is tied to."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.forecasts import is_forecast
from harness.claims.passages import Sentence
from harness.claims.references import Reference, reference_of
from harness.claims.scores import belongs, is_score, is_setting
from harness.claims.shares import shares
from harness.claims.ties import (
    Read,
    adjacent_metric,
    experiment_of,
    metric_of,
    read_sentence,
    split_of,
)


class Sort(StrEnum):
    VALUE = "value"
    DIFFERENCE = "difference"
    SPREAD = "spread"
    INTERVAL = "interval"
    SEEDS = "seeds"
    ROWS = "rows"
    RUNS = "runs"
    SAVING = "saving"
    MEASUREMENT = "measurement"


_NEAR = 160
"""Characters around a number that say what it is; farther ones cost time and say little."""
COUNTS = {"seeds": Sort.SEEDS, "rows": Sort.ROWS, "runs": Sort.RUNS}


@dataclass(frozen=True, kw_only=True)
class Statement:
    sort: Sort
    figure: Figure
    sentence: Sentence
    metric: str | None = None
    """As it is written, lower case; None for the plan's own."""
    experiment: str | None = None
    other: str | None = None
    """The second experiment of a difference."""
    split: str | None = None
    reference: Reference | None = None
    """Of a value: whose it is said to be beside the experiment's own."""
    before: str = ""
    """The sentence up to the number, masked."""
    worse: bool = False
    """Of a difference: it is said to be a loss."""

    @property
    def line(self) -> int:
        return self.sentence.line_of(self.figure.start)

    @property
    def after(self) -> str:
        return self.sentence.text[self.figure.end :][:_NEAR]

    @property
    def text(self) -> str:
        return self.sentence.text[self.figure.start : self.figure.end].strip()


def statements(sentence: Sentence, metrics: frozenset[str]) -> list[Statement]:
    """The claims of a sentence; `metrics` are names that the project knows beside the usual
    ones."""
    read = read_sentence(sentence, metrics)
    told = list(shares(read)) if sentence.report else []
    found = [
        _make(read, figure, Sort.VALUE, metric=name)
        for figure, name in told
        if not is_forecast(read, figure)
    ]
    for figure in read.figures:
        apart = all(figure.end <= share.start or share.end <= figure.start for share, _ in told)
        if (
            apart
            and figure.start >= sentence.first
            and (made := _statement(read, figure)) is not None
        ):
            found.append(made)
    return sorted(found, key=lambda item: item.figure.start)


def _statement(read: Read, figure: Figure) -> Statement | None:
    before, after = read.before(figure)[-_NEAR:], read.after(figure)[:_NEAR]
    if is_forecast(read, figure):
        return None
    for sort in (_count, _saving, _spread, _interval, _difference, _value, _measurement):
        if (made := sort(read, figure, before, after)) is not None:
            return made
    return None


def _make(read: Read, figure: Figure, sort: Sort, **more: object) -> Statement:
    mine = experiment_of(read, figure)
    given = {
        "experiment": mine,
        "metric": metric_of(read, figure),
        "split": split_of(read, figure),
        **more,
    }
    given["reference"] = reference_of(read, figure) if sort is Sort.VALUE else None
    return Statement(
        sort=sort,
        figure=figure,
        sentence=read.sentence,
        before=read.before(figure)[-_NEAR:],
        **given,  # type: ignore[arg-type]
    )


def _count(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    if figure.unit or figure.fraction or not figure.claim.text.isdigit():
        return None
    match = words.COUNTED.match(after) or words.COUNT_BEFORE.search(before)
    if match is None or experiment_of(read, figure) is None:
        return None
    sort = COUNTS[match.lastgroup or "rows"]
    if sort is Sort.ROWS and split_of(read, figure) not in ("validation", "held_out"):
        return None
    return _make(read, figure, sort)


def _saving(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    near = read.text[max(0, figure.start - 70) : figure.end + 50]
    speaks = words.SAVING.search(near) and words.SAVES.search(near)
    quantity = figure.unit in ("x", "%") or figure.fraction
    if not (quantity and speaks) or (
        figure.unit == "%" and adjacent_metric(read, figure) is not None
    ):
        return None
    if re.match(
        r"\s*-?(?:as (?:many|often)|a (?:day|turn|session|run)|in a|before|later)\b", after
    ):
        return None
    others = [name for name, _, _ in read.experiments if name != experiment_of(read, figure)]
    return _make(read, figure, Sort.SAVING, other=others[0] if others else None)


def _spread(read: Read, figure: Figure, before: str, _after: str) -> Statement | None:
    tied = read.metrics or read.experiments or read.sentence.report
    of_inputs = re.search(
        r"\b(?:normali[sz]|standardi[sz]|scaled|pixels?|inputs?|features?)", before, re.I
    )
    context = read.text[: read.sentence.first]
    said = words.SPREAD.search(before) or re.search(
        r"\b(?:spread|std|sd|standard deviation)\b", context, re.I
    )
    return _make(read, figure, Sort.SPREAD) if said and tied and not of_inputs else None


def _interval(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    tied = read.metrics or experiment_of(read, figure) is not None
    pair = re.search(r"[\[(]\s*$", before) and re.match(
        r"\s*(?:,|to|-|–|\.\.)\s*[\d.]+\s?%?\s*[\])]", after
    )
    second = re.search(r"[\[(]\s*[\d.]+\s?%?\s*(?:,|to|-|–|\.\.)\s*$", before) and re.match(
        r"\s*[\])]", after
    )
    speaks = read.metrics or re.search(r"\b(?:interval|CI)\b", read.text)
    of_gain = not read.metrics and re.search(r"\b(?:improvement|gain|difference)\b", before, re.I)
    if not speaks or of_gain:
        return None
    said = words.INTERVAL.search(before) and not figure.whole and figure.unit != "points"
    return _make(read, figure, Sort.INTERVAL) if tied and (pair or second or said) else None


def _difference(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    if not (read.metrics or read.experiments or read.sentence.report) or words.NOUN_AFTER.match(
        after
    ):
        return None
    later, earlier = words.BETTER_AFTER.match(after), words.BY.search(before[-60:])
    signed = bool(figure.sign) and not re.search(r"[=:(\[]\s*$", before) and not figure.whole
    compared = re.match(
        r"\s?%?\s*(?:to|vs\.?|versus|against)\s+[\d.]", after
    )  # a score and the other's
    compared = compared or re.search(r"['’]s\s+$", before)
    if re.search(r"\b(?:floor|threshold|noise)(?: of)?\s*$", before, re.I):
        return None
    of_rows = figure.whole and re.search(r"\brows\b", before)
    column = bool(read.sentence.first) and words.GAIN_COLUMN.search(
        read.text[: read.sentence.first]
    )
    plain = later or (earlier and not figure.whole and not compared)
    if of_rows or not (plain or figure.unit == "points" or signed or (column and not figure.whole)):
        return None
    said = (later or earlier) if (later or earlier) else None
    worse = figure.sign == "-" or bool(said and said.groupdict().get("down"))
    experiment = experiment_of(read, figure)
    following = [
        name for name, start, _ in read.experiments if start > figure.end and name != experiment
    ]
    others = following or [name for name, _, _ in read.experiments if name != experiment]
    return _make(read, figure, Sort.DIFFERENCE, other=others[0] if others else None, worse=worse)


def _value(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    if figure.unit in ("x", "points") or figure.fraction or is_setting(read, figure):
        return None
    if (adjacent := adjacent_metric(read, figure)) is not None:
        return _make(read, figure, Sort.VALUE, metric=adjacent)
    if figure.whole:
        return None
    if metric_of(read, figure) is not None and (not read.sentence.report or belongs(read, figure)):
        return _make(read, figure, Sort.VALUE)
    if experiment_of(read, figure) is not None and is_score(read, figure):
        return _make(read, figure, Sort.VALUE, metric=None)
    return None


def _measurement(read: Read, figure: Figure, before: str, after: str) -> Statement | None:
    """A duration, a size or an outcome of tests that a text outside an experiment states as
    measured."""
    if (
        read.sentence.report
        or read.sentence.experiment
        or read.experiments
        or words.LIMIT.search(before)
    ):
        return None
    amount = words.AMOUNT_AFTER.match(after) or re.match(
        r"\s+to\s+[\d.]+(?:\s(?:minutes|seconds|hours|GB|MB|ms)| on | \()", after
    )
    timed = (
        amount
        and words.RUNS_FOR.search(before)
        and words.DURATION_VERB.search(before + figure.claim.text)
    )
    counted = figure.whole and words.OUTCOME_AFTER.match(after)
    share = figure.unit == "%" and words.OF_CASES.match(after)
    return _make(read, figure, Sort.MEASUREMENT) if timed or counted or share else None


def experiments_named(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Every experiment that the sentences name or are about."""
    for sentence in sentences:
        yield from words.EXPERIMENT.findall(sentence.text)
        if sentence.experiment is not None:
            yield sentence.experiment
