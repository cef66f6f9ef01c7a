"""The role of a number in its sentence: forecast, other experiment, setting, score or share."""

import re
from collections.abc import Iterator
from enum import StrEnum

from harness.artifacts.experiment_files import Claim
from harness.claims import vocabulary as words
from harness.claims.figures import NUMBER_WORDS, Figure
from harness.claims.parsed_sentence import ParsedSentence, adjacent_metric

_NEAR = 160
# A clause border: punctuation before a space, so that the point in 0.93 is none.
_CUT = re.compile(r"[;:,.]\s+|\s(?:and|but|so|because|since|while|yet|though|then)\s", re.I)
ASSERTS = re.compile(
    r"\b(?:is|was|are|were|has|had|came|ends?|ended|gave|gives|got|gets|stands|hits?|reach\w*"
    r"|achiev\w*|scor\w+)\b",
    re.I,
)
_FORECAST = re.compile(
    r"\b(?:would|might|may|(?:we|i|and) (?:expect|hope)|expect(?:ing|s|ed)|hop(?:e (?:to|for)|ing)"
    r"|suppose|hypothes\w+|next:)(?!\w)",
    re.I,
)
_SETS_OUT = re.compile(
    r"\b(?:if|whether|try|guess\w*|plan(?:ned|s)? to|e\.g\.|for example|such as)(?!\w)", re.I
)
_WORDS_BETWEEN = 4
"""Most words between `if` or `try` and its number: `if validation accuracy reaches 0.65`."""


def is_forecast(parsed: ParsedSentence, figure: Figure) -> bool:
    """Whether the text expects or tries the number, and did not observe it."""
    # In a report a forecast word covers only its own clause, and `if` or `try` only the words right
    # after it: otherwise one ordinary word would hide every number behind it. In other texts such a
    # word covers the rest of the sentence.
    before = parsed.before(figure)[parsed.sentence.first :][-_NEAR:]
    if not parsed.sentence.report:
        return words.CONJECTURE.search(before) is not None
    if not (_FORECAST.search(before) or _SETS_OUT.search(before)):
        return False
    clause = _clause(before, {name for name, _, _ in parsed.metrics})
    if _FORECAST.search(clause):
        return True
    return any(
        len(clause[match.end() :].split()) <= _WORDS_BETWEEN
        for match in _SETS_OUT.finditer(clause)
    )


def _clause(before: str, metrics: set[str]) -> str:
    """The text before the number, from the last clause border that precedes a statement."""
    stated = [match.start() for match in ASSERTS.finditer(before)]
    last = max([*stated, *(before.lower().rfind(name) for name in metrics)], default=-1)
    ends = [match.end() for match in _CUT.finditer(before) if match.end() <= last]
    return before[ends[-1] :] if ends else before


class Reference(StrEnum):
    PARENT = "parent"
    """The text says it is the parent's."""
    COMPARED = "compared"
    """After `from`, `than`, `against`: the experiment's, its parent's, or a named experiment's."""


_FILLERS = (
    r"the|its|an?|experiment|run|model|network|had|has|is|was|got|gets|reached|reaches|scored"
    r"|scores?|at|of|validation|held-out|on|recomputed|mean|only|about|ends?|ended|stands|with"
)
_COMPARES = r"than|over|against|to|with|beats?|beat|from|versus|vs\.?"
_EARLIER = r"baseline|reference|previous\w*|before|earlier|parent|instead of|had been"
# The second number of `0.65 vs 0.60` is the other's; that of `from 0.60 to 0.65` is the result.
_PAIR = re.compile(r"(?P<from>\bfrom\s+)?[\d.]+\s?%?\s*(?:to|vs\.?|versus|against)\s*\Z", re.I)
# `0.60 for the parent`, `0.60 (parent`; not `0.65, parent had 0.60`, where `rest` has a number.
_AFTER = re.compile(
    r"\s*[,(]?\s*(?:(?:for|of|in|by|is|was) )?(?:(?:the|its|our) )?parent\b(?P<rest>.{0,20})",
    re.I | re.S,
)
_OTHER_AFTER = re.compile(
    r"\s*[,(]?\s*(?:(?:before|earlier|previously)(?=\s*(?:[,.;)]|\Z))"
    r"|(?:for|of|in) the (?:baseline|reference)\b)",
    re.I,
)


def reference_of(parsed: ParsedSentence, figure: Figure) -> Reference | None:
    """The other experiment that the number belongs to; None for the experiment itself."""
    context, before = parsed.text[: parsed.sentence.first], parsed.before(figure)[-160:]
    if context:
        return _of_cell(context)
    behind = _AFTER.match(parsed.after(figure))
    if behind and not re.match(
        r"(?:['’]s)?\s*(?:had|at|was|is|has|of|with)?\s*[:=(]?\s*[\d.]", behind["rest"]
    ):
        return Reference.PARENT
    fillers = "|".join([_FILLERS, *(re.escape(name) for name, _, _ in parsed.metrics)])
    tail = rf"(?:\s*['’]s)?(?: (?:{fillers}))*\s*[(:=,]?\s*\Z"
    of_parent = re.search(
        rf"(?P<than>\b(?:{_COMPARES}) )?(?:(?:the|its|our) )?\bparent(?P<own>['’]s)?{tail}",
        before,
        re.I,
    )
    if of_parent:
        return (
            Reference.PARENT if of_parent["own"] or not of_parent["than"] else Reference.COMPARED
        )
    compared = re.search(rf"\b(?:{_COMPARES}|{_EARLIER}){tail}", before, re.I)
    pair = _PAIR.search(before)
    if _OTHER_AFTER.match(parsed.after(figure)) or (pair and not pair["from"]):
        return Reference.COMPARED
    toward = pair or re.search(r"\b(?:to|with)\s+(?:an? )?(?:\w+ of )?\Z", before, re.I)
    return Reference.COMPARED if compared and not toward else None


def _of_cell(context: str) -> Reference | None:
    """The heads of a row and a column say what the cell belongs to."""
    if re.search(r"\b(?:ours|this|candidate)\b", context, re.I):
        return None
    if re.search(r"\bparent\b", context, re.I):
        return Reference.PARENT
    return (
        Reference.COMPARED
        if re.search(r"\b(?:baseline|reference|previous|before)\b", context, re.I)
        else None
    )


_NEAR = 160
# `accuracy is 0.60, later 0.65`: all that may stand between two numbers of one metric.
_CONTINUES = re.compile(
    r"(?:[\s,;:()/–→>-]|\b(?:and|or|but|is|was|now|then|to|from|it|this|we|ours|later|finally"
    r"|even|only|about|at|reach\w*|on|in|for|of|the|by|validation|val|held[- ]out|test|train\w*"
    r"|over|above|vs|mean|again|rose|rises|climb\w*|still)\b)*\Z",
    re.I,
)
_APART = re.compile(r"[,;]|\b(?:with|without|while|and|but|change|at)\b", re.I)
_SPLIT_BEHIND = re.compile(r"\s*(?:on|in) (?:the )?(?:validation|val|held[- ]out|test)\b", re.I)
_SPLIT_IN_BRACKETS = re.compile(
    r"\s*\((?:on )?(?:the )?(?:validation|val|held[- ]out|test)\b", re.I
)
_NAMED = re.compile(r"exp-\d{4,}\s*[(:=,]?\s*$")
_SPLIT_SAYS = re.compile(r"\b(?:validation|val|held[- ]out|test)(?: set| split)?\s*[:=]\s*$", re.I)


def is_setting(parsed: ParsedSentence, figure: Figure) -> bool:
    """A learning rate, a number of layers, a name=number of no metric, a share of something."""
    # `further` holds the earlier numbers of a list, `lr 0.1, 0.01`: the last one may be a score
    # after all, `lr 0.1, 0.93 accuracy`.
    before, after = parsed.before(figure)[-_NEAR:], parsed.after(figure)[:_NEAR]
    setting = words.HYPER.search(before)
    if (
        setting
        and not _aside(parsed, figure)
        and not (setting["further"] and _said_to_be_a_score(parsed, figure))
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
    context = parsed.text[: parsed.sentence.first]
    if words.SETTING_WORD.search(re.sub(r"\bseeds?\b", "", context)) and not parsed.metrics:
        return True
    raw = parsed.sentence.text[max(0, figure.start - _NEAR) : figure.start].replace("`", " ")
    return bool(re.search(r"[\w/.-]+\s*=\s*$", raw)) and adjacent_metric(parsed, figure) is None


def belongs(parsed: ParsedSentence, figure: Figure) -> bool:
    """Whether the number belongs to the sentence's metric and no other number took it."""
    before = parsed.before(figure)
    earlier = [end for _, _, end in parsed.metrics if end <= figure.start]
    if _is_quantity(before, earlier[-1] if earlier else 0):
        return False
    if not earlier:
        start = min(start for _, start, _ in parsed.metrics if start >= figure.end)
        return (
            not _APART.search(parsed.text[figure.end : start])
            or reference_of(parsed, figure) is not None
        )
    others = [
        number
        for number in parsed.figures
        if earlier[-1] <= number.start < figure.start and not number.whole
    ]
    taken = [number for number in others if not is_setting(parsed, number)]
    goes_on = not taken or _CONTINUES.match(before[taken[-1].end :]) is not None
    return goes_on or reference_of(parsed, figure) is not None or is_score(parsed, figure)


def is_score(parsed: ParsedSentence, figure: Figure) -> bool:
    """Whether the text calls a number without a metric the score of an experiment."""
    before = parsed.before(figure)[-_NEAR:]
    if _is_quantity(before, 0) or re.match(r"\s+of\b", parsed.after(figure)):
        return False
    if _NAMED.search(
        parsed.sentence.text[max(0, figure.start - _NEAR) : figure.start]
    ) or _SPLIT_SAYS.search(before):
        return True
    if parsed.sentence.first and (
        parsed.splits or re.search(r"\b(?:scores?|result)\b", before, re.I)
    ):
        return True
    if _SPLIT_IN_BRACKETS.match(parsed.after(figure)):
        return True
    if words.GOAL.search(before) and words.MET.search(parsed.after(figure)):
        return True
    if words.SCORE.search(before) or words.ACHIEVES.search(before):
        return True
    settings = not parsed.metrics and any(
        _is_of_a_setting(parsed, number)
        for number in parsed.figures
        if number.start < figure.start
    )
    if settings:
        return False
    if words.OF_A_NETWORK.search(before):
        return True
    if not parsed.sentence.report:
        return words.BEING.search(before) is not None
    compared = reference_of(parsed, figure) is not None and (
        parsed.experiments or words.COMPARABLE.search(before)
    )
    being = words.BEING.search(before) is not None and (parsed.splits or parsed.experiments)
    return bool(compared or being)


def _is_of_a_setting(parsed: ParsedSentence, figure: Figure) -> bool:
    return words.HYPER.search(parsed.before(figure)[-_NEAR:]) is not None


def _is_quantity(before: str, metric_end: int) -> bool:
    """Whether another quantity is named between the metric and the number."""
    return words.QUANTITY.search(before[metric_end:]) is not None


def _aside(parsed: ParsedSentence, figure: Figure) -> bool:
    """`accuracy after 30 epochs is`: the setting only says when the metric was read."""
    before = parsed.before(figure)
    aside = words.ASIDE.search(before)
    if aside is None:
        return False
    earlier = [end for _, _, end in parsed.metrics if end <= aside.start()]
    return bool(earlier) and not re.search(r"[,;.\d]", before[earlier[-1] : aside.start()])


def _said_to_be_a_score(parsed: ParsedSentence, figure: Figure) -> bool:
    after = parsed.after(figure)
    later = any(
        start == figure.end + len(after) - len(after.lstrip()) for _, start, _ in parsed.metrics
    )
    return later or _SPLIT_BEHIND.match(after) is not None


_WORDS = {**NUMBER_WORDS, "hundred": 100}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_COUNT = rf"\d{{1,3}}(?:,\d{{3}})+|\d+|(?:{_WORD})(?:[- ](?:{_WORD}))?"
_ROWS = (
    r"(?:rows|row|examples?|samples?|images?|predictions?|answers?|questions?|problems?|cases"
    r"|inputs?|items|sentences)"
)
# `97/100`, `388 of 400 rows`, `nine out of ten`; not a date, a path, or a part of `3/4.5`.
_RATIO = re.compile(
    rf"(?<![\w.,/-])(?P<part>{_COUNT})(?: {_ROWS})?\s*"
    r"(?:/|\b(?:out of|of|in)\b)\s*(?:(?:the|all|our|every|each|a) )?"
    rf"(?P<whole>{_COUNT})(?![\w/%-]|[.,]\d)",
    re.I,
)
_FEW_PARTS = 10
"""`three of five rows` is a fraction: it says no more digits than that."""
_RIGHT = r"(?:right|correct|correctly|solves?|solved|accurate)"
_WRONG = r"(?:wrong|wrongly|incorrect|incorrectly|misclassified|mistaken)"
_WRONG_VERB = r"(?:misclassif(?:y|ies|ied)|fails on|failed on|errs on|mistakes|is wrong about)"
_FEW = (
    r"(?:\s+(?:on|in|for|about|at|only|just|all|but|nearly|almost|over|more than|at least"
    r"|no less than|the)){0,3}\s*\Z"
)
_BEHIND = (
    r"[\s-]*(?:of (?:the |all |our |its )*)?(?:(?:validation|val|held-out|test|\d[\d,]*) )*"
    rf"(?:{_ROWS} )?(?:(?:is|are|was|were|come out|came out|got) )?"
    r"(?:(?:classified|predicted|labelled|answered|solved) )?"
)
_OF_ROWS = re.compile(rf"\s+of\b[^.;]{{0,30}}\b{_ROWS}\b", re.I)


def shares(parsed: ParsedSentence) -> Iterator[tuple[Figure, str]]:
    """Shares of right or wrong rows, and ratios beside a metric, each with its metric.

    E.g. `97/100`, `388 of 400 rows are right`, `wrong on 3 % of the rows`: accuracy or error rate.
    """
    percents = (
        number
        for number in parsed.figures
        if number.unit == "%" and number.start >= parsed.sentence.first
    )
    for figure in [*_ratios(parsed.text), *percents]:
        before, after = parsed.before(figure)[-80:], parsed.after(figure)[:80]
        ratio = not figure.unit
        beside = adjacent_metric(parsed, figure) if ratio else None
        outcome = (
            _of_outcome(before, after)
            if ratio or _OF_ROWS.match(after) or after.startswith("-accurate")
            else None
        )
        if (name := beside or outcome) is not None:
            yield figure, name


def _of_outcome(before: str, after: str) -> str | None:
    for names, metric in ((_RIGHT, "accuracy"), (rf"(?:{_WRONG}|{_WRONG_VERB})", "error rate")):
        said = rf"(?:{names}|scores?|scored)" if metric == "accuracy" else names
        if re.search(rf"\b{said}{_FEW}", before, re.I) or re.match(
            rf"{_BEHIND}{names}\b", after, re.I
        ):
            return metric
    return None


def _ratios(text: str) -> Iterator[Figure]:
    for match in _RATIO.finditer(text):
        part, whole = _count(match["part"]), _count(match["whole"])
        if 0 <= part <= whole and whole > 1:
            digits = _digits(part, whole)
            yield Figure(
                claim=Claim(float(digits), digits),
                unit="",
                sign="",
                start=match.start(),
                end=match.end(),
                fraction=whole <= _FEW_PARTS,
            )


def _count(written: str) -> int:
    if written[0].isalpha():
        return sum(_WORDS[word] for word in re.split(r"[- ]", written.lower()))
    return int(written.replace(",", ""))


def _digits(part: int, whole: int) -> str:
    """The share with the decimals that the number of rows supports, e.g. two for 244/400."""
    places = max(1, len(str(whole)) - 1)
    while part and places < 6 and part / whole < 10 ** (1 - places):
        places += 1
    return f"{part / whole:.{places}f}"
