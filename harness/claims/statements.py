"""The claims of a sentence: each number with its metric, experiment and split."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.number_roles import (
    Reference,
    belongs,
    is_forecast,
    is_score,
    is_setting,
    reference_of,
    shares,
)
from harness.claims.parsed_sentence import (
    ParsedSentence,
    adjacent_metric,
    experiment_of,
    metric_of,
    parse_sentence,
    split_of,
)
from harness.claims.sentences import Sentence


class Quantity(StrEnum):
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
"""Characters around a number that are searched for its meaning; more only costs time."""
COUNTS = {"seeds": Quantity.SEEDS, "rows": Quantity.ROWS, "runs": Quantity.RUNS}


@dataclass(frozen=True, kw_only=True)
class Statement:
    quantity: Quantity
    figure: Figure
    sentence: Sentence
    metric: str | None = None
    """As written, lower case; None for the plan's metric."""
    experiment: str | None = None
    other: str | None = None
    """The second experiment of a difference."""
    split: str | None = None
    reference: Reference | None = None
    """Of a value: the other experiment's."""
    before: str = ""
    """The sentence up to the number, masked."""
    worse: bool = False
    """Of a difference: the text calls it a loss."""

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
    """The claims of a sentence; `metrics`: the project's metric names beside the usual ones."""
    parsed = parse_sentence(sentence, metrics)
    row_shares = list(shares(parsed)) if sentence.report else []
    claims = [
        _make(parsed, figure, Quantity.VALUE, metric=name)
        for figure, name in row_shares
        if not is_forecast(parsed, figure)
    ]
    for figure in parsed.figures:
        apart = all(
            figure.end <= share.start or share.end <= figure.start for share, _ in row_shares
        )
        if (
            apart
            and figure.start >= sentence.first
            and (made := _statement(parsed, figure)) is not None
        ):
            claims.append(made)
    return sorted(claims, key=lambda claim: claim.figure.start)


def _statement(parsed: ParsedSentence, figure: Figure) -> Statement | None:
    before, after = parsed.before(figure)[-_NEAR:], parsed.after(figure)[:_NEAR]
    if is_forecast(parsed, figure):
        return None
    # The order decides: a count or a saving is never read as a plain value, and `0.02 better` is a
    # difference before it could be a score. What no reader takes claims nothing.
    for reader in (_count, _saving, _spread, _interval, _difference, _value, _measurement):
        if (made := reader(parsed, figure, before, after)) is not None:
            return made
    return None


def _make(parsed: ParsedSentence, figure: Figure, quantity: Quantity, **more: object) -> Statement:
    mine = experiment_of(parsed, figure)
    fields = {
        "experiment": mine,
        "metric": metric_of(parsed, figure),
        "split": split_of(parsed, figure),
        **more,
    }
    fields["reference"] = reference_of(parsed, figure) if quantity is Quantity.VALUE else None
    return Statement(
        quantity=quantity,
        figure=figure,
        sentence=parsed.sentence,
        before=parsed.before(figure)[-_NEAR:],
        **fields,  # type: ignore[arg-type]
    )


def _count(parsed: ParsedSentence, figure: Figure, before: str, after: str) -> Statement | None:
    if figure.unit or figure.fraction or not figure.claim.text.isdigit():
        return None
    match = words.COUNTED.match(after) or words.COUNT_BEFORE.search(before)
    none = re.search(r"\bnot\s+$", before, re.I)  # `not one seed` is no count
    if match is None or none or experiment_of(parsed, figure) is None:
        return None
    quantity = COUNTS[match.lastgroup or "rows"]
    if quantity is Quantity.ROWS and split_of(parsed, figure) not in ("validation", "held_out"):
        return None
    return _make(parsed, figure, quantity)


def _saving(parsed: ParsedSentence, figure: Figure, before: str, after: str) -> Statement | None:
    near = parsed.text[max(0, figure.start - 70) : figure.end + 50]
    speaks = words.SAVING.search(near) and words.SAVES.search(near)
    quantity = figure.unit in ("x", "%") or figure.fraction
    if not (quantity and speaks) or (
        figure.unit == "%" and adjacent_metric(parsed, figure) is not None
    ):
        return None
    if re.match(
        r"\s*-?(?:as (?:many|often)|a (?:day|turn|session|run)|in a|before|later)\b", after
    ):
        return None
    others = [name for name, _, _ in parsed.experiments if name != experiment_of(parsed, figure)]
    return _make(parsed, figure, Quantity.SAVING, other=others[0] if others else None)


def _spread(parsed: ParsedSentence, figure: Figure, before: str, _after: str) -> Statement | None:
    # `pixels have mean 0.13 and std 0.31` is about inputs, not about seeds.
    tied = parsed.metrics or parsed.experiments or parsed.sentence.report
    of_inputs = re.search(
        r"\b(?:normali[sz]|standardi[sz]|scaled|pixels?|inputs?|features?)", before, re.I
    )
    context = parsed.text[: parsed.sentence.first]
    called = words.SPREAD.search(before) or re.search(
        r"\b(?:spread|std|sd|standard deviation)\b", context, re.I
    )
    return _make(parsed, figure, Quantity.SPREAD) if called and tied and not of_inputs else None


def _interval(parsed: ParsedSentence, figure: Figure, before: str, after: str) -> Statement | None:
    # `[0.88, 0.93]`: `pair` is its first number, `second` its second one.
    tied = parsed.metrics or experiment_of(parsed, figure) is not None
    pair = re.search(r"[\[(]\s*$", before) and re.match(
        r"\s*(?:,|to|-|–|\.\.)\s*[\d.]+\s?%?\s*[\])]", after
    )
    second = re.search(r"[\[(]\s*[\d.]+\s?%?\s*(?:,|to|-|–|\.\.)\s*$", before) and re.match(
        r"\s*[\])]", after
    )
    speaks = parsed.metrics or re.search(r"\b(?:interval|CI)\b", parsed.text)
    of_gain = not parsed.metrics and re.search(
        r"\b(?:improvement|gain|difference)\b", before, re.I
    )
    if not speaks or of_gain:
        return None
    called = words.INTERVAL.search(before) and not figure.whole and figure.unit != "points"
    return (
        _make(parsed, figure, Quantity.INTERVAL) if tied and (pair or second or called) else None
    )


def _difference(
    parsed: ParsedSentence, figure: Figure, before: str, after: str
) -> Statement | None:
    if not (
        parsed.metrics or parsed.experiments or parsed.sentence.report
    ) or words.NOUN_AFTER.match(after):
        return None
    later, earlier = words.BETTER_AFTER.match(after), words.BY.search(before[-60:])
    signed = bool(figure.sign) and not re.search(r"[=:(\[]\s*$", before) and not figure.whole
    compared = re.match(
        r"\s?%?\s*(?:to|vs\.?|versus|against)\s+[\d.]", after
    )  # a score and the other's
    compared = compared or re.search(r"['’]s\s+$", before)
    if re.search(r"\b(?:floor|threshold|noise)(?: of)?\s*$", before, re.I):
        return None
    # `rose above 0.6` names where it is, not by how much it rose.
    if words.CROSSES.search(before) and figure.unit != "points":
        return None
    of_rows = figure.whole and re.search(r"\brows\b", before)
    column = bool(parsed.sentence.first) and words.GAIN_COLUMN.search(
        parsed.text[: parsed.sentence.first]
    )
    plain = later or (earlier and not figure.whole and not compared)
    if of_rows or not (
        plain or figure.unit == "points" or signed or (column and not figure.whole)
    ):
        return None
    word = later or earlier
    worse = figure.sign == "-" or bool(word and word.groupdict().get("down"))
    experiment = experiment_of(parsed, figure)
    following = [
        name for name, start, _ in parsed.experiments if start > figure.end and name != experiment
    ]
    others = following or [name for name, _, _ in parsed.experiments if name != experiment]
    return _make(
        parsed, figure, Quantity.DIFFERENCE, other=others[0] if others else None, worse=worse
    )


def _value(parsed: ParsedSentence, figure: Figure, before: str, after: str) -> Statement | None:
    if figure.unit in ("x", "points") or figure.fraction or is_setting(parsed, figure):
        return None
    if (adjacent := adjacent_metric(parsed, figure)) is not None:
        return _make(parsed, figure, Quantity.VALUE, metric=adjacent)
    if figure.whole:
        return None
    if metric_of(parsed, figure) is not None and (
        not parsed.sentence.report or belongs(parsed, figure)
    ):
        return _make(parsed, figure, Quantity.VALUE)
    reached = parsed.sentence.report and words.REACHED.search(parsed.text) is not None
    of_ours = reached or experiment_of(parsed, figure) is not None
    if of_ours and is_score(parsed, figure):
        return _make(parsed, figure, Quantity.VALUE, metric=None)
    return None


def _measurement(
    parsed: ParsedSentence, figure: Figure, before: str, after: str
) -> Statement | None:
    """A measured duration, size or test outcome in a text that is about no experiment."""
    if (
        parsed.sentence.report
        or parsed.sentence.experiment
        or parsed.experiments
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
    return _make(parsed, figure, Quantity.MEASUREMENT) if timed or counted or share else None


def experiments_named(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Every experiment that the sentences name or are about."""
    for sentence in sentences:
        yield from words.EXPERIMENT.findall(sentence.text)
        if sentence.experiment is not None:
            yield sentence.experiment
