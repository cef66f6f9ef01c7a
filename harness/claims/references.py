"""Where a number stands for what an experiment is compared with: its parent, a baseline, what was
before."""

import re
from enum import StrEnum

from harness.claims.figures import Figure
from harness.claims.ties import Read


class Reference(StrEnum):
    PARENT = "parent"
    """Said of the parent: it must be the parent's."""
    COMPARED = "compared"
    """Behind `from`, `than`, `against`: the experiment's own, its parent's, or that of one that is
    named."""


_FILLERS = (
    r"the|its|an?|experiment|run|model|network|had|has|is|was|got|gets|reached|reaches|scored|scores?|at|of|validation"
    r"|held-out|on|recomputed|mean|only|about|ends?|ended|stands|with"
)
_COMPARES = r"than|over|against|to|with|beats?|beat|from|versus|vs\.?"
_EARLIER = r"baseline|reference|previous\w*|before|earlier|parent|instead of|had been"
_PAIR = re.compile(r"(?P<from>\bfrom\s+)?[\d.]+\s?%?\s*(?:to|vs\.?|versus|against)\s*\Z", re.I)
_AFTER = re.compile(
    r"\s*[,(]?\s*(?:(?:for|of|in|by|is|was) )?(?:(?:the|its|our) )?parent\b(?P<rest>.{0,20})",
    re.I | re.S,
)
_OTHER_AFTER = re.compile(
    r"\s*[,(]?\s*(?:(?:before|earlier|previously)(?=\s*(?:[,.;)]|\Z))|(?:for|of|in) the"
    r" (?:baseline|reference)\b)",
    re.I,
)


def reference_of(read: Read, figure: Figure) -> Reference | None:
    """None where the number is the experiment's own."""
    context, before = read.text[: read.sentence.first], read.before(figure)[-160:]
    if context:
        return _of_cell(context)
    behind = _AFTER.match(read.after(figure))
    if behind and not re.match(
        r"(?:['’]s)?\s*(?:had|at|was|is|has|of|with)?\s*[:=(]?\s*[\d.]", behind["rest"]
    ):
        return Reference.PARENT
    fillers = "|".join([_FILLERS, *(re.escape(name) for name, _, _ in read.metrics)])
    tail = rf"(?:\s*['’]s)?(?: (?:{fillers}))*\s*[(:=,]?\s*\Z"
    said = re.search(
        rf"(?P<than>\b(?:{_COMPARES}) )?(?:(?:the|its|our) )?\bparent(?P<own>['’]s)?{tail}",
        before,
        re.I,
    )
    if said:
        return Reference.PARENT if said["own"] or not said["than"] else Reference.COMPARED
    compared = re.search(rf"\b(?:{_COMPARES}|{_EARLIER}){tail}", before, re.I)
    pair = _PAIR.search(before)
    if _OTHER_AFTER.match(read.after(figure)) or (pair and not pair["from"]):
        return Reference.COMPARED
    toward = pair or re.search(r"\b(?:to|with)\s+(?:an? )?(?:\w+ of )?\Z", before, re.I)
    return Reference.COMPARED if compared and not toward else None


def _of_cell(context: str) -> Reference | None:
    """A row or a column is called after what it is of."""
    if re.search(r"\b(?:ours|this|candidate)\b", context, re.I):
        return None
    if re.search(r"\bparent\b", context, re.I):
        return Reference.PARENT
    return (
        Reference.COMPARED
        if re.search(r"\b(?:baseline|reference|previous|before)\b", context, re.I)
        else None
    )
