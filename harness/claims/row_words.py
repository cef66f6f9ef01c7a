"""What a result says in words of right and wrong rows: `no mistake`, `all rows are right`, `nine
tenths`, `perfect`, `misclassifies 12 rows`. Each implies a share of right rows, which is compared
with the recomputed accuracy.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.claims.checks import of_plan
from harness.claims.figures import NUMBER_WORDS, masked
from harness.claims.known_facts import ClaimKind, KnownExperiment, KnownFacts, KnownScore
from harness.claims.run_counts import CountedClaim, is_said_of_it, overlap
from harness.claims.sentences import Sentence
from harness.claims.vocabulary import SPLITS

_ROWS = (
    r"(?:rows?|examples?|samples?|images?|predictions?"
    r"|answers?|questions?|problems?|cases?"
    r"|inputs?|items?|sentences?)"
)
_SPLIT = r"(?:validation|val|held[- ]out|test|evaluation)"
_OF = (
    rf"(?: (?:of|in|on|from|for) (?:the |our |its )?{_SPLIT}"
    r"(?: (?:set|split|data|table|rows))?)?"
)
_THE_ROWS = (
    r"(?:of )?(?:the |its |our |these |all )*(?:\d[\d,]* )?"
    rf"(?:{_SPLIT} )?{_ROWS}{_OF}"
)
_BE = r"(?:is|are|was|were|(?:has|have) been|com(?:es?|ing) out|came out|gets?|got)"
_DONE = r"(?:answered|classified|predicted|labell?ed|solved|all|also|indeed|now|still)"
# `correctly formatted` is no right answer.
_RIGHT = (
    r"(?:right|correct|accurate|solved|true|(?:right|correct|accurate)ly"
    r"(?! (?!classif|predict|label|answer|solv)[a-z]+ed\b))"
)
_WRONG = r"(?:wrong(?:ly)?|incorrect(?:ly)?|mis(?:classified|labell?ed|predicted|taken)|false)"
_HEDGE = (
    r"(?P<hedge>\b(?:nearly|almost|practically"
    r"|virtually|about|around|roughly|some|hardly"
    r"|close to|not|only|just|than|over|under|least|most|up to)\s+)?"
)
_GETS = (
    r"(?:gets?|got|answer(?:s|ed)?|classif(?:y"
    r"|ies|ied)|predict(?:s|ed)?|solve[sd]?"
    r"|label(?:s|led|ed)?)"
)
_MISTAKE = (
    rf"(?:mistakes?|misclassifications?"
    rf"|mispredictions?|errors?|{_WRONG} {_ROWS}"
    r"|(?:classification|prediction) errors?)"
)
_NOT_ONE = r"(?:no|zero|0|not (?:one|an?|any)(?: single)?|never an?)(?: single)?"
_MODEL = (
    r"(?:models?|networks?|nets?|classifiers?|it|we"
    r"|predictions?|answers?|ensembles?|candidates?"
    r"|experiments?|exp-\d+)"
)
_MISSES = r"(?:misclassif(?:y|ies|ied)|mislabel\w*|mispredict\w*|errs on|erred on|misses|missed)"
_SCORE = (
    r"(?:(?:balanced )?accurac(?:y|ies)|scores?|acc"
    r"|f1|auc|auroc|precision|recall|top-1|hit rate"
    r"|performance)"
)
_FLAWLESS = r"(?:perfect|flawless|faultless|impeccable|error[- ]free|infallible|unerring)"
_STILL = (
    rf"(?: (?:on|in|over) (?:the |our "
    rf"|all )?(?:{_SPLIT})?\s?(?:set|split|data|{_ROWS})?"
    r"| (?:now|almost|nearly|simply|practically"
    r"|virtually|really|quite|absolutely|indeed|always"
    r"|also|truly|completely|entirely)){0,3}"
)
_FRACTION = (
    r"(?P<over>(?:more than|over|above|at least|no less than|beyond) )?"
    r"(?P<under>(?:less than|fewer than|under|below|at most|no more than) )?"
    r"(?:(?:about|around|roughly|nearly|almost"
    r"|some|only|just|exactly|the|its|a full) )*"
    r"(?:(?P<half>half|halves)|(?P<top>an?|one|two"
    r"|three|four|five|six|seven|eight|nine|\d{1,3})"
    r"[- ](?P<part>thirds?|quarters?|fourths?|fifths?"
    r"|sixths?|sevenths?|eighths?|ninths?|tenths?"
    r"|twentieths?|hundredths?))"
)
_PARTS = {
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "twentieth": 20,
    "hundredth": 100,
}
_N = r"(?P<n>\d[\d,]*|" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + r")"
_NO_PLACE = rf"(?! (?:in|while|during|when|of) (?!(?:the |any |our )*(?:{_SPLIT}|{_ROWS})))"
_NO_WHOLE = r"(?! ?(?:of|out of|in) (?:the |all |every |each |an? )?(?:\d|hundred))(?! of \d)"
_NEGATED = re.compile(
    r"(?:\b(?:not|never|far from|less than|no|nothing"
    r"|anything but|nowhere near|short of|hardly"
    r"|neither|nor|from being|if|without|isn|wasn)\b|n['’]t\b)[^.;,]{0,40}$",
    re.I,
)
_OUT_OF_REACH = re.compile(
    r"[^.;,]{0,30}\b(?:out of reach|impossible|unlikely|not|never|cannot|would|needs?|far)\b", re.I
)
_OF_SOMETHING_ELSE = re.compile(
    r"\b(?:(?:labels?|columns?|ids?|values?|names?"
    r"|formats?|shapes?|fields?|files?|hash(?:es)?)"
    r" (?:of|in|for) (?:nearly |almost )?|(?:an?|any"
    r"|no|which|some) [\w-]+ (?:that|which|to) )$",
    re.I,
)
Bounds = tuple[float, float]
_ALL: Bounds = (1.0, 1.0)
_NEARLY = 0.05
_FRACTION_SLACK = 0.03


@dataclass(frozen=True)
class _Reader:
    pattern: re.Pattern[str]
    implied: Callable[[re.Match[str], KnownScore], Bounds | None]
    """The least and the most share of right rows; None where it says nothing."""
    negatable: bool = False
    """Whether a `not` in front takes it back."""


def _every(match: re.Match[str], _score: KnownScore) -> Bounds | None:
    hedge = (match["hedge"] or "").strip().lower() if "hedge" in match.groupdict() else ""
    if hedge in ("nearly", "almost", "practically", "virtually", "about", "around", "close to"):
        return (1 - _NEARLY, 1.0)
    return None if hedge else _ALL


def _perfect(match: re.Match[str], _score: KnownScore) -> Bounds:
    nearly = re.search(r"\b(?:almost|nearly|practically|virtually|near)\b", match[0], re.I)
    return (1 - _NEARLY, 1.0) if nearly else _ALL


def _share(match: re.Match[str], _score: KnownScore) -> Bounds | None:
    value = 0.5 if match["half"] else _count(match["top"]) / _PARTS[match["part"].rstrip("s")]
    if not 0 < value < 1:
        return None
    low, high = value - _FRACTION_SLACK, value + _FRACTION_SLACK
    low, high = (value if match["over"] else low), (value if match["under"] else high)
    low, high = (0.0 if match["under"] else low), (1.0 if match["over"] else high)
    wrong = re.search(rf"\b{_WRONG}\b|\berror|mistake", match[0], re.I)
    return (1 - high, 1 - low) if wrong else (low, high)


def _nines(match: re.Match[str], _score: KnownScore) -> Bounds:
    return (1 - 10.0 ** -_count(match["n"]), 1.0)


def _rows(match: re.Match[str], score: KnownScore) -> Bounds | None:
    count = _count(match["n"])
    if not score.rows or count > score.rows:
        return None
    share = count / score.rows
    if re.search(rf"\b(?:{_WRONG}|{_MISSES}|mistakes?|errors?)\b", match[0], re.I):
        share = 1 - share
    slack = max(0.5, 0.1 * count if match["hedge"] else 0) / score.rows + 1e-9
    return (share - slack, share + slack)


def _count(written: str) -> int:
    if written.lower() in ("a", "an"):
        return 1
    return NUMBER_WORDS[written.lower()] if written[0].isalpha() else int(written.replace(",", ""))


def _compiled(*patterns: str) -> Iterator[re.Pattern[str]]:
    return (re.compile(pattern, re.I) for pattern in patterns)


_READERS: tuple[_Reader, ...] = (
    *(
        _Reader(pattern, _every)
        for pattern in _compiled(
            rf"{_HEDGE}\b(?:all|every|each|100 ?%)(?: (?:single"
            rf"|one|and every))* {_THE_ROWS},?"
            rf" (?:{_BE} )?(?:{_DONE} )*{_RIGHT}\b",
            rf"\b{_GETS} {_HEDGE}(?:all|every"
            rf"|each)(?: single)? (?:{_THE_ROWS}|of them)"
            rf" {_RIGHT}\b",
            rf"\b{_GETS} {_HEDGE}(?:everything"
            rf"|them all|all of it) {_RIGHT}\b",
            rf"\bsolves? {_HEDGE}(?:all|every"
            rf"|each)(?: single)? {_THE_ROWS}\b",
            rf"\b{_NOT_ONE} {_THE_ROWS} (?:{_BE} )?(?:{_DONE} )*{_WRONG}\b",
            rf"\bnone (?:{_THE_ROWS}"
            rf"|of them) (?:{_BE} )?(?:{_DONE} )*{_WRONG}\b",
            rf"\b(?:{_MISSES}|mistakes) (?:{_NOT_ONE}"
            rf"|none|nothing)\b(?: {_THE_ROWS})?",
            rf"\b(?:gets?|got) (?:{_NOT_ONE}"
            rf"|none)(?: {_THE_ROWS})? {_WRONG}\b",
            rf"\b(?:mak(?:es?|ing)|made|commit(?:s"
            rf"|ted)?) {_NOT_ONE} {_MISTAKE}\b{_NO_PLACE}",
            rf"(?:\b(?:do|does|did|has|have) not"
            rf"|n['’]t) (?:ma[kd]e|commit\w*)"
            rf" (?:an?|one|any)(?: single)? {_MISTAKE}\b{_NO_PLACE}",
            rf"\b(?:{_NOT_ONE}|without (?:an?|any"
            rf"|one)(?: single)?) {_MISTAKE} (?:on|in|over"
            rf"|across|for|among) (?:the |any |all )*(?:{_SPLIT}|{_ROWS})\b",
            rf"\b{_MODEL}{_OF} (?:is|are|was"
            rf"|were) (?:free (?:of|from) {_MISTAKE}"
            r"|without (?:an? |any )?(?:single )?(?:mistakes?|errors?))",
            rf"\b{_MODEL}{_OF} (?:never|at no time) (?:errs?"
            rf"|erred|fails?|{_MISSES})\b",
            rf"\b{_MODEL}{_OF} (?:is|are|was"
            rf"|were) (?:never {_WRONG}|always {_RIGHT})\b",
        )
    ),
    *(
        _Reader(pattern, _perfect, negatable=True)
        for pattern in _compiled(
            rf"\b(?:{_SCORE}|{_MODEL}|results?"
            rf"|classification){_STILL} (?:is|are|was|were|becomes?"
            rf"|remains?|comes out|came out){_STILL} {_FLAWLESS}\b"
            r"(?! (?!on\b|in\b|and\b|over\b|for\b)[a-z])",
            rf"(?:\b(?:nearly|almost|near"
            rf"|practically)[- ])?\b{_FLAWLESS},? (?:{_SPLIT} )?"
            rf"(?:{_SCORE}|classifiers?|classification"
            rf"|predictions?|answers|results?)\b",
            rf"\b{_GETS}(?: [\w-]+){{0,3}} (?:perfect"
            rf"|flawless|faultless)ly\b",
            rf"\b(?:perfect|flawless|faultless)ly {_GETS}\b",
        )
    ),
    *(
        _Reader(pattern, _share)
        for pattern in _compiled(
            rf"\b{_FRACTION} {_THE_ROWS} (?:{_BE} )?(?:{_DONE} )*(?:{_RIGHT}|{_WRONG})\b",
            rf"\b{_FRACTION} (?:{_BE} )?(?:{_DONE} )*(?:{_RIGHT}|{_WRONG})\b",
            rf"\b(?:{_RIGHT}|{_WRONG}|mistakes?) (?:on"
            rf"|in|for|about) {_FRACTION} {_THE_ROWS}",
            rf"\b{_SCORE}{_OF}(?: (?:is|was|of|at|reach\w*"
            rf"|came out at|comes to|now|rose to|:|="
            rf"))*[:=]? {_FRACTION}(?! (?:of|the|an?|that|as)\b)",
            rf"\berror(?: rate)?{_OF}(?: (?:is|was|of|at"
            rf"|now))+ {_FRACTION}(?! (?:of|the|that)\b)",
        )
    ),
    *(
        _Reader(pattern, _nines)
        for pattern in _compiled(
            rf"\b{_N} nines\b(?=[^.;]*\baccura)", rf"\baccura\w+[^.;]{{0,30}}\b{_N} nines\b"
        )
    ),
    *(
        _Reader(pattern, _rows)
        for pattern in _compiled(
            rf"\b(?:{_MISSES}|fails on"
            rf"|failed on) {_HEDGE}{_N} (?:{_SPLIT} )?{_ROWS}{_NO_WHOLE}",
            rf"\b(?:gets?|got) {_HEDGE}{_N} (?:{_SPLIT} )?{_ROWS}{_NO_WHOLE} (?:right|wrong)\b",
            rf"\b(?:right|correct|wrong) (?:on|for"
            rf"|about) {_HEDGE}{_N} (?:{_SPLIT} )?{_ROWS}"
            rf"{_NO_WHOLE}",
            rf"\b(?:makes|made) {_HEDGE}{_N} (?:mistakes?"
            rf"|errors?)\b{_NO_WHOLE}",
            rf"{_HEDGE}(?<![\d.,/])(?<!of )(?<!of the )(?<!of all )\b{_N} (?:{_SPLIT} )?{_ROWS}"
            rf" (?:{_BE} )(?:{_DONE} )*(?:{_RIGHT}|{_WRONG})\b",
        )
    ),
)
_UNREADABLE = re.compile(
    r"\b(?=[IVXLCDM]*[XLC])[IVXLCDM]{2,}\s?(?:%"
    r"|per ?cent\b)|百分之[〇零一二三四五六七八九十百点]+"
    r"|[一二三四五六七八九][成割][一二三四五六七八九]?"
)


def row_claims(sentence: Sentence, known: KnownFacts) -> list[CountedClaim]:
    """What a sentence of a report about one experiment says of its right and wrong rows."""
    own = known.experiments.get(sentence.experiment or "")
    if not sentence.report or own is None:
        return []
    text = masked(sentence.text, code=True)
    claims = [_unreadable(match) for match in _UNREADABLE.finditer(text, sentence.first)]
    for reader in _READERS:
        for match in reader.pattern.finditer(text, sentence.first):
            if any(overlap(match.span(), claim.span) for claim in claims):
                continue
            if _OF_SOMETHING_ELSE.search(text[: match.start()]) or (
                reader.negatable and _is_taken_back(text, match)
            ):
                continue
            if not is_said_of_it(sentence.text, match, own.id):
                continue
            if (claim := _judged(reader, match, own)) is not None:
                claims.append(claim)
    return claims


def _is_taken_back(text: str, match: re.Match[str]) -> bool:
    """`far from perfect`, `a perfect score is out of reach`."""
    said = text[: match.end() - 4]
    return bool(_NEGATED.search(said) or _OUT_OF_REACH.match(text, match.end()))


def _unreadable(match: re.Match[str]) -> CountedClaim:
    return CountedClaim(
        span=match.span(),
        about="a share",
        kind=ClaimKind.UNSUPPORTED,
        evidence="not readable as a number: write digits",
        counts=False,
    )


def _judged(reader: _Reader, match: re.Match[str], own: KnownExperiment) -> CountedClaim | None:
    named = {one.lastgroup for one in SPLITS.finditer(re.sub(r"[_/]", " ", match.string))}
    if "train" in named:
        return None
    right = of_plan("accuracy", own)
    scores = {split: score for split, score in own.scores.items() if not named or split in named}
    if right is None or not scores:
        why = f"{own.id} has no recomputed share of right rows" + (
            f" on {' or '.join(sorted(filter(None, named)))}" if named else ""
        )
        return _claim(match, ClaimKind.UNSUPPORTED, why, decides=right is not None)
    implied = [(score, reader.implied(match, score)) for score in scores.values()]
    if all(bounds is None for _, bounds in implied):
        return None
    holds = any(
        bounds is not None
        and any(
            bounds[0] - 1e-9 <= right(value) <= bounds[1] + 1e-9
            for value in (score.mean, *(score.values if "n" in match.groupdict() else ()))
        )
        for score, bounds in implied
    )
    shown = ", ".join(f"{split} {right(score.mean):.6g}" for split, score in scores.items())
    return _claim(
        match,
        ClaimKind.RECOMPUTED if holds else ClaimKind.CONTRADICTED,
        f"{own.id} has accuracy {shown} recomputed",
        decides=True,
    )


def _claim(match: re.Match[str], kind: ClaimKind, evidence: str, *, decides: bool) -> CountedClaim:
    return CountedClaim(
        span=match.span(),
        about="right rows",
        kind=kind,
        evidence=evidence,
        counts="n" in match.groupdict(),
        decides=decides,
    )
