"""Whether a number that stands beside no metric is a score all the same, or a setting or another
quantity."""

import re

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.references import reference_of
from harness.claims.ties import Read, adjacent_metric

_NEAR = 160
_CONTINUES = re.compile(
    r"(?:[\s,;:()/–→>-]|\b(?:and|or|but|is|was|now|then|to|from|it|this|we|ours|later|finally|even|only|about|at|reach\w*"
    r"|on|in|for|of|the|by|validation|val|held[-"
    r" ]out|test|train\w*|over|above|vs|mean|again|rose|rises|climb\w*"
    r"|still)\b)*\Z",
    re.I,
)
_APART = re.compile(r"[,;]|\b(?:with|without|while|and|but|change|at)\b", re.I)
_SPLIT_BEHIND = re.compile(r"\s*(?:on|in) (?:the )?(?:validation|val|held[- ]out|test)\b", re.I)
_SPLIT_IN_BRACKETS = re.compile(
    r"\s*\((?:on )?(?:the )?(?:validation|val|held[- ]out|test)\b", re.I
)
_NAMED = re.compile(r"exp-\d{4,}\s*[(:=,]?\s*$")
_SPLIT_SAYS = re.compile(r"\b(?:validation|val|held[- ]out|test)(?: set| split)?\s*[:=]\s*$", re.I)


def is_setting(read: Read, figure: Figure) -> bool:
    """A learning rate, a count of layers, a name=number of something that is no metric, a part of
    something."""
    before, after = read.before(figure)[-_NEAR:], read.after(figure)[:_NEAR]
    setting = words.HYPER.search(before)
    if (
        setting
        and not _aside(read, figure)
        and not (setting["further"] and _said_to_be_a_score(read, figure))
    ):
        return True
    if words.NOUN_AFTER.match(after) or words.SETTING_AFTER.match(after):
        return True
    if (
        figure.unit == "%"
        and re.match(r"\s+of\b", after)
        and not re.search(r"\b(?:right|correct\w*)\b", after)
    ):
        return True
    context = read.text[: read.sentence.first]
    if words.SETTING_WORD.search(re.sub(r"\bseeds?\b", "", context)) and not read.metrics:
        return True
    raw = read.sentence.text[max(0, figure.start - _NEAR) : figure.start].replace("`", " ")
    return bool(re.search(r"[\w/.-]+\s*=\s*$", raw)) and adjacent_metric(read, figure) is None


def belongs(read: Read, figure: Figure) -> bool:
    """Whether the number is of the sentence's metric: no other number has it, or this one goes on
    from that."""
    before = read.before(figure)
    earlier = [end for _, _, end in read.metrics if end <= figure.start]
    if _is_quantity(before, earlier[-1] if earlier else 0):
        return False
    if not earlier:
        start = min(start for _, start, _ in read.metrics if start >= figure.end)
        return (
            not _APART.search(read.text[figure.end : start])
            or reference_of(read, figure) is not None
        )
    others = [
        item for item in read.figures if earlier[-1] <= item.start < figure.start and not item.whole
    ]
    taken = [item for item in others if not is_setting(read, item)]
    goes_on = not taken or _CONTINUES.match(before[taken[-1].end :]) is not None
    return goes_on or reference_of(read, figure) is not None or is_score(read, figure)


def is_score(read: Read, figure: Figure) -> bool:
    """Whether a number without a metric is said to be the score of an experiment."""
    before = read.before(figure)[-_NEAR:]
    if _is_quantity(before, 0) or re.match(r"\s+of\b", read.after(figure)):
        return False
    if _NAMED.search(
        read.sentence.text[max(0, figure.start - _NEAR) : figure.start]
    ) or _SPLIT_SAYS.search(before):
        return True
    if read.sentence.first and (read.splits or re.search(r"\b(?:scores?|result)\b", before, re.I)):
        return True
    if _SPLIT_IN_BRACKETS.match(read.after(figure)):
        return True
    if words.GOAL.search(before) and words.MET.search(read.after(figure)):
        return True
    if words.SCORE.search(before) or words.ACHIEVES.search(before):
        return True
    settings = not read.metrics and any(
        _is_of_a_setting(read, item) for item in read.figures if item.start < figure.start
    )
    if settings:
        return False
    if words.OF_A_NETWORK.search(before):
        return True
    if not read.sentence.report:
        return words.BEING.search(before) is not None
    compared = reference_of(read, figure) is not None and (
        read.experiments or words.COMPARABLE.search(before)
    )
    being = words.BEING.search(before) is not None and (read.splits or read.experiments)
    return bool(compared or being)


def _is_of_a_setting(read: Read, figure: Figure) -> bool:
    return words.HYPER.search(read.before(figure)[-_NEAR:]) is not None


def _is_quantity(before: str, metric_end: int) -> bool:
    """Whether another quantity stands before the number, behind the metric."""
    return words.QUANTITY.search(before[metric_end:]) is not None


def _aside(read: Read, figure: Figure) -> bool:
    """`accuracy after 30 epochs is`: the setting only says when."""
    before = read.before(figure)
    aside = words.ASIDE.search(before)
    if aside is None:
        return False
    earlier = [end for _, _, end in read.metrics if end <= aside.start()]
    return bool(earlier) and not re.search(r"[,;.\d]", before[earlier[-1] : aside.start()])


def _said_to_be_a_score(read: Read, figure: Figure) -> bool:
    after = read.after(figure)
    later = any(
        start == figure.end + len(after) - len(after.lstrip()) for _, start, _ in read.metrics
    )
    return later or _SPLIT_BEHIND.match(after) is not None
