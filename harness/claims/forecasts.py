"""Whether a number is what somebody expects, tries or asks rather than what was found."""

import re

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.ties import Read

_NEAR = 160
_CUT = re.compile(r"[;:,.]\s+|\s(?:and|but|so|because|since|while|yet|though|then)\s", re.I)
_ASSERTS = re.compile(
    r"\b(?:is|was|are|were|has|had|came|ends?|ended|gave|gives|got|gets|stands|hits?|reach\w*|achiev\w*|scor\w+)\b",
    re.I,
)
_FORECAST = re.compile(
    r"\b(?:would|might|may|(?:we|i|and) (?:expect|hope)|expect(?:ing|s|ed)|hop(?:e"
    r" (?:to|for)|ing)|suppose"
    r"|hypothes\w+|next:)(?!\w)",
    re.I,
)
_SETS_OUT = re.compile(
    r"\b(?:if|whether|try|guess\w*|plan(?:ned|s)? to|e\.g\.|for example|such as)(?!\w)", re.I
)
_WORDS_BETWEEN = 4
"""Between `if` or `try` and the number of which it makes a case: `if validation accuracy reaches
0.65`."""


def is_forecast(read: Read, figure: Figure) -> bool:
    """In a report a word makes a forecast of its own clause alone, and `if` or `try` of what
    follows it directly: else one ordinary word would hide all numbers behind it. In other texts, of
    all that follows in its sentence."""
    before = read.before(figure)[read.sentence.first :][-_NEAR:]
    if not read.sentence.report:
        return words.CONJECTURE.search(before) is not None
    if not (_FORECAST.search(before) or _SETS_OUT.search(before)):
        return False
    clause = _clause(before, {name for name, _, _ in read.metrics})
    if _FORECAST.search(clause):
        return True
    return any(
        len(clause[match.end() :].split()) <= _WORDS_BETWEEN for match in _SETS_OUT.finditer(clause)
    )


def _clause(before: str, metrics: set[str]) -> str:
    """What stands before the number since the last cut behind which something is stated."""
    stated = [match.start() for match in _ASSERTS.finditer(before)]
    last = max([*stated, *(before.lower().rfind(name) for name in metrics)], default=-1)
    ends = [match.end() for match in _CUT.finditer(before) if match.end() <= last]
    return before[ends[-1] :] if ends else before
