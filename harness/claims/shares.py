"""Scores that are told as a share of rows: `97/100`, `388 of 400 rows are right`, `wrong on 3 % of
the rows`."""

import re
from collections.abc import Iterator

from harness.artifacts.experiment_files import Claim
from harness.claims.figures import NUMBER_WORDS, Figure
from harness.claims.ties import Read, adjacent_metric

_WORDS = {**NUMBER_WORDS, "hundred": 100}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_COUNT = rf"\d{{1,3}}(?:,\d{{3}})+|\d+|(?:{_WORD})(?:[- ](?:{_WORD}))?"
_ROWS = r"(?:rows|row|examples?|samples?|images?|predictions?|answers?|questions?|problems?|cases|inputs?|items|sentences)"
_RATIO = re.compile(
    rf"(?<![\w.,/-])(?P<part>{_COUNT})(?: {_ROWS})?\s*(?:/|\b(?:out"
    r" of|of|in)\b)\s*(?:(?:the|all|our|every|each|a) )?"
    rf"(?P<whole>{_COUNT})(?![\w/%-]|[.,]\d)",
    re.I,
)
_RIGHT = r"(?:right|correct|correctly|solves?|solved|accurate)"
_WRONG = r"(?:wrong|wrongly|incorrect|incorrectly|misclassified|mistaken)"
_WRONG_VERB = r"(?:misclassif(?:y|ies|ied)|fails on|failed on|errs on|mistakes|is wrong about)"
_FEW = (
    r"(?:\s+(?:on|in|for|about|at|only|just|all|but|nearly|almost|over|more than|at least|no less"
    r" than|the)){0,3}\s*\Z"
)
_BEHIND = (
    r"[\s-]*(?:of (?:the |all |our |its )*)?(?:(?:validation|val|held-out|test|\d[\d,]*)"
    rf" )*(?:{_ROWS} )?"
    r"(?:(?:is|are|was|were|come out|came out|got)"
    r" )?(?:(?:classified|predicted|labelled|answered|solved) )?"
)
_OF_ROWS = re.compile(rf"\s+of\b[^.;]{{0,30}}\b{_ROWS}\b", re.I)


def shares(read: Read) -> Iterator[tuple[Figure, str]]:
    """Of a report: each share of rows that are said to be right or wrong, and each ratio beside a
    metric, with the metric that it is: accuracy or the error rate."""
    percents = (
        item for item in read.figures if item.unit == "%" and item.start >= read.sentence.first
    )
    for figure in [*_ratios(read.text), *percents]:
        before, after = read.before(figure)[-80:], read.after(figure)[:80]
        ratio = not figure.unit
        beside = adjacent_metric(read, figure) if ratio else None
        outcome = (
            _of_outcome(before, after)
            if ratio or _OF_ROWS.match(after) or after.startswith("-accurate")
            else None
        )
        if (name := beside or outcome) is not None:
            yield figure, name


def _of_outcome(before: str, after: str) -> str | None:
    for names, metric in ((_RIGHT, "accuracy"), (rf"(?:{_WRONG}|{_WRONG_VERB})", "error rate")):
        if re.search(rf"\b{names}{_FEW}", before, re.I) or re.match(
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
            )


def _count(said: str) -> int:
    if said[0].isalpha():
        return sum(_WORDS[word] for word in re.split(r"[- ]", said.lower()))
    return int(said.replace(",", ""))


def _digits(part: int, whole: int) -> str:
    """As many decimals as the count of rows can tell, e.g. two of 244/400, and as a small share
    needs."""
    places = max(1, len(str(whole)) - 1)
    while part and places < 6 and part / whole < 10 ** (1 - places):
        places += 1
    return f"{part / whole:.{places}f}"
