"""Numbers in a sentence, as numerals and as words.

Dates, versions, ids, code and quotations are masked first: their digits claim nothing.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from harness.artifacts.experiment_files import Claim, agrees, precise_enough

# In this order: addresses and quotations first, since they hold what later patterns match.
_MASKED = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"https?://\S+|www\.\S+", 0),
        (r"\"[^\"\n]{0,300}\"|“[^”]{0,300}”|«[^»]{0,300}»", 0),
        (r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?", 0),
        (r"\b\d{1,2}:\d{2}(?::\d{2})?\b", 0),
        (
            r"\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
            r"(?: \d{4})?\b",
            re.I,
        ),
        (
            r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}(?:, \d{4})?\b",
            re.I,
        ),
        (r"(?<![\d.,])(?:19|20)\d\d(?![\d.%])(?!\s?(?:%|rows|examples|samples))", 0),
        (r"\bv?\d+(?:\.\d+){2,}\b|\bv\d+(?:\.\d+)*\b", 0),
        (
            r"\b(?:python|torch|pytorch|numpy|linux|kernel|version|release|ubuntu|cuda|cli|schema"
            r"|sqlite)\s*(?:>=|<=|==)?\s*\d+(?:\.\d+)*\b",
            re.I,
        ),
        (
            r"(?:#|§|\b(?:issue|section|sec\.|step|figure|table|page|p\.|line|port|exit(?: code)?"
            r"|code|chapter|adr|rule|pr|phase|part|version|eq\.|equation|signal|errno"
            r"|item)\s?#?)\s?\d+(?:\.\d+)*\b",
            re.I,
        ),
        (r"\b(?:ln|log\d*|sqrt|exp)\s?\(?\d+(?:\.\d+)?", 0),
        (r"\b\d+(?:\.\d+)? ?%(?= (?:confidence|bootstrap|credible|interval|ci\b))", re.I),
        (r"(?<![\w.])(?=[\da-f]*[a-f])(?=[\da-f]*\d)[\da-f]{7,64}\b", 0),
        (r"\b(?!(?:f1|r2|top-?1)\b)[A-Za-z_][\w-]*\d[\w-]*(?:\.\w+)*", re.I),
        (
            r"(?<![\w.])(?!(?:(?:val|valid|validation|dev|eval|test|train|training)/[a-z_]+"
            r"|\d[\d,]*/\d[\d,]*)(?![\w/-]|\.\w))[\w.-]*/[\w./-]+",
            re.I,
        ),
    )
)
# `1,234.5`, `0,93 %` (a decimal comma needs the percent sign), `.5`, `1e-3`; not the `2.1` of
# `1.2.1`, nor digits within a word.
_NUMERAL = re.compile(
    r"(?<![\w.,])(?P<sign>[-+−]?)(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    r"|\d{1,2},\d{1,2}(?=\s?%)|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<exponent>e[-+]?\d{1,3})?(?=\b|\D|$)(?!\.\d)(?P<unit>\s?(?:%|percent\b|per cent\b|pp\b"
    r"|(?:percentage )?points?\b|[x×](?!\w)|times\b|-?fold\b))?",
    re.I,
)
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: number for number, word in enumerate(_ONES.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_WORDS = re.compile(
    rf"\b(?P<words>(?:{_WORD})(?:[- ](?:{_WORD}))?)"
    rf"(?P<point> point(?P<digits>(?: (?:{_WORD}))+))?"
    r"(?:(?P<unit>\s?-?(?:%|percent\b|per cent\b|(?:percentage )?points?\b|times\b|fold\b))"
    r"|(?=[ -](?:random |different )?(?:seeds?|runs|launches|tries|rows|examples|samples)\b))",
    re.I,
)
_FRACTIONS = {
    "twice": 2.0,
    "double": 2.0,
    "doubles": 2.0,
    "doubled": 2.0,
    "triple": 3.0,
    "half": 0.5,
    "halves": 0.5,
    "halved": 0.5,
    "a third": 1 / 3,
    "a quarter": 0.25,
    "two thirds": 2 / 3,
}
_FRACTION = re.compile(
    r"\b(?:" + "|".join(sorted(_FRACTIONS, key=len, reverse=True)) + r")\b", re.I
)
_UNITS = {
    "%": "%",
    "percent": "%",
    "per cent": "%",
    "pp": "points",
    "point": "points",
    "points": "points",
    "percentage point": "points",
    "percentage points": "points",
    "x": "x",
    "×": "x",
    "times": "x",
    "fold": "x",
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number as written."""

    claim: Claim
    """Value and digits; for a fraction in words only the value counts."""
    unit: str
    """"", "%", "points" or "x"."""
    sign: str
    start: int
    end: int
    """Place in the sentence, with the unit."""
    fraction: bool = False
    """Written as `half`, `twice`."""

    @property
    def whole(self) -> bool:
        return not self.unit and self.claim.text.isdigit()

    def agrees(self, value: float) -> bool:
        """Whether a metric's `value` rounds to this number, and the number has enough digits.

        A number with a percent sign, or above 1, may be a percentage of a value between 0 and 1.
        """
        # 0.94 % is not 0.94: with a percent sign a value up to 1 is compared as a percentage only.
        plain = self.unit != "%" or abs(value) > 1
        percent = abs(value) <= 1 and (self.unit == "%" or self.claim.value > 1)
        return (plain and self.near(value)) or (percent and self.near(100 * value))

    def agrees_points(self, value: float) -> bool:
        """As `agrees`, for a difference: points and percent are hundredths."""
        hundredths = self.unit in ("points", "%") or self.claim.value >= 1
        return self.near(100 * value) if hundredths and abs(value) <= 1 else self.near(value)

    def near(self, value: float) -> bool:
        if self.fraction:
            return abs(value - self.claim.value) <= 0.1 * self.claim.value
        rounded = round(value, 9)
        return agrees(self.claim, rounded) and (
            precise_enough(self.claim, rounded) or self.claim.value == 0
        )


def normalise(text: str) -> str:
    """Plain digits, spaces and no emphasis, on the same lines; `text` is plain."""
    folded = "".join(map(_folded, text))
    return re.sub(r"\*|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", " ", folded)


def _folded(sign: str) -> str:
    if unicodedata.category(sign) == "Nd":
        return str(unicodedata.decimal(sign))
    # U+066B is the Arabic decimal separator. A sign that folds to several would shift the rest.
    folded = unicodedata.normalize("NFKC", sign)
    return "." if sign == "\u066b" else folded if len(folded) == 1 else sign


def masked(sentence: str, *, code: bool) -> str:
    """`sentence` with all that claims nothing blanked; same length, so that positions stay.

    With `code`, a code span stays if it is only a number, a name or `name=number`.
    """

    def blank(match: re.Match[str]) -> str:
        return " " * len(match.group())

    def span(match: re.Match[str]) -> str:
        inner = match.group(1)
        kept = code and re.fullmatch(
            r"\s*(?:(?:[A-Za-z][\w/ ]*[=:]\s*)?[-+]?[\d.,]+\s?%?|[A-Za-z][A-Za-z_/ -]*)\s*", inner
        )
        return f" {inner} " if kept else blank(match)

    sentence = re.sub(r"`([^`\n]*)`", span, sentence)
    sentence = re.sub(r"(?<=\])\([^)\s]*\)", blank, sentence)
    for pattern in _MASKED:
        sentence = pattern.sub(blank, sentence)
    return sentence


def figures(text: str) -> list[Figure]:
    """The finite numbers of a masked sentence, in order."""
    numbers = [*_numerals(text), *_in_words(text), *_fractions(text)]
    return sorted(
        (figure for figure in numbers if math.isfinite(figure.claim.value)),
        key=lambda figure: figure.start,
    )


def _numerals(text: str) -> Iterator[Figure]:
    for match in _NUMERAL.finditer(text):
        number = match["number"]
        decimal_comma = re.fullmatch(r"\d{1,2},\d{1,2}", number)
        digits = (number.replace(",", ".") if decimal_comma else number.replace(",", "")) + (
            match["exponent"] or ""
        )
        yield _figure(
            digits,
            match["unit"],
            match["sign"].replace("−", "-"),
            match.start("number"),
            match.end(),
        )


def _in_words(text: str) -> Iterator[Figure]:
    for match in _WORDS.finditer(text):
        parts = re.split(r"[- ]", match["words"].lower())
        digits = str(sum(NUMBER_WORDS[part] for part in parts))
        if match["point"]:
            digits += "." + "".join(
                str(NUMBER_WORDS[part]) for part in match["digits"].lower().split()
            )
        yield _figure(digits, match["unit"], "", match.start(), match.end())


def _fractions(text: str) -> Iterator[Figure]:
    for match in _FRACTION.finditer(text):
        value = _FRACTIONS[match.group().lower()]
        claim = Claim(value, repr(value))
        unit = "x" if value >= 1 else ""
        yield Figure(
            claim=claim, unit=unit, sign="", start=match.start(), end=match.end(), fraction=True
        )


def _figure(digits: str, unit: str | None, sign: str, start: int, end: int) -> Figure:
    named = _UNITS.get((unit or "").strip(" -").lower(), "")
    return Figure(
        claim=Claim(float(digits), digits),
        unit=named,
        sign=sign,
        start=start,
        end=end,
    )
