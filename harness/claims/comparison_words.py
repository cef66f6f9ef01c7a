"""What a result says in words of itself beside another score: better than the parent, twice its
accuracy, half its error, a tier of the plan by its name. Held against the recomputed scores.

`Not better` is no claim: within the noise it is the honest word for a higher mean.
"""

import re
from collections.abc import Iterator, Mapping

from harness.claims.checks import of_plan
from harness.claims.figures import masked
from harness.claims.known_facts import ClaimKind, KnownExperiment, KnownFacts
from harness.claims.run_counts import CountedClaim, is_said_of_it, overlap
from harness.claims.sentences import Sentence
from harness.claims.vocabulary import EXPERIMENT, SPLITS

_CHANCE = (
    r"(?:trivial (?:predictor|baseline)|majority class(?: predictor)?|chance"
    r"|random (?:guess\w*|predictor))"
)
_REFERENCE = (
    rf"(?:the |its |our |that of (?:the "
    rf"|its )?)*(?P<reference>parent|exp-\d{{4,}}|{_CHANCE})"
    r"(?:['’]s)?"
)
_FIRST = _REFERENCE.replace("(?P<reference>", "(?P<first>")
_OURS = (
    r"(?:it|this(?: one| run| experiment| model"
    r"| network)?|ours|we|exp-(?P<own>\d{4,})"
    r"|(?:the|our) (?:model|network|candidate"
    r"|experiment|result|ensemble|classifier)"
    r"|(?:validation |held-out )?(?:accuracy|score))"
)
_ON = r"(?: on (?:the )?(?:validation|held[- ]out|test)(?: (?:set|split|data|rows))?)?"
_DOES = (
    r"(?:is|was|are|did|does|do|scores?|scored"
    r"|performs?|performed|ends? up|ended up|comes? out"
    r"|came out)(?: (?:now|also|much|far|clearly"
    r"|slightly|even|still|a (?:bit|little)|well)){0,2}"
)
_NO_OTHER = (
    r"(?! (?:in|at|for) (?!validation|held|the|all"
    r"|every|each))(?! on (?:speed|memory|time))"
)
_BETTER = (
    rf"\b{_OURS}{_ON} {_DOES} (?P<word>better"
    rf"|worse|more accurate|less accurate) than"
    rf" {_REFERENCE}{_NO_OTHER}",
    rf"\b{_OURS}{_ON} (?:clearly |also |still "
    rf"|now )?(?P<word>beats?|beat|outperform(?:s|ed)?"
    rf"|surpass(?:es|ed)?|overtakes?|loses? to"
    rf"|lost to|trails?|falls? behind) {_REFERENCE}"
    rf"{_NO_OTHER}",
    rf"\b{_REFERENCE}{_ON} {_DOES} (?P<turned>better"
    rf"|worse|more accurate|less accurate) than"
    r" (?:it\b|this\b|ours|us\b|(?:the|our) (?:model|network|candidate))",
)
_WORSE = re.compile(r"worse|less|lose|lost|trail|fall", re.I)
_QUANTITY = (
    r"(?P<quantity>(?:validation |held-out |balanced )*"
    r"(?:accuracy|acc|score|errors?(?: rate)?|mistakes))(?! bars?)"
)
_NEARLY = (
    r"(?:(?P<nearly>nearly|almost|about|roughly"
    r"|around)|(?P<more>more than|over|at least)|only"
    r"|also|even|just|now|then)"
)
_VERB = r"(?P<factor>doubl(?:es|ed|ing)|tripl(?:es|ed|ing)|halv(?:es|ed|ing))"
_TIMES = r"(?P<factor>twice|double|triple|half|a third|(?:two|three|four|five|ten|\d+) times)"
_RATIOS = (
    rf"\b(?:{_NEARLY} )?{_VERB} (?:(?:the|our) )?(?:{_FIRST} )?{_QUANTITY}"
    rf"(?: of {_REFERENCE})?",
    rf"\b{_QUANTITY}{_ON} (?:is|was|has|had|were)(?: been)?(?: {_NEARLY})*"
    rf" (?P<factor>halved|doubled|tripled|cut in half)\b"
    rf"(?:[^.;,]{{0,30}}? (?:than|against|over"
    rf"|compared (?:to|with)|to|beside) {_REFERENCE})?",
    rf"\b{_QUANTITY}{_ON} (?:is|was|has|had)(?: {_NEARLY})* {_TIMES}"
    r"(?: (?:that|those|the one|as (?:high|large"
    r"|low|much|many)))?(?: (?:of|as|than))?"
    rf" {_REFERENCE}",
    rf"\b(?:{_NEARLY} )?{_TIMES} (?:the )?{_QUANTITY} (?:of"
    rf"|as|than) {_REFERENCE}",
)
_FACTORS = {
    "twice": 2.0,
    "double": 2.0,
    "doubl": 2.0,
    "two times": 2.0,
    "triple": 3.0,
    "tripl": 3.0,
    "half": 0.5,
    "halv": 0.5,
    "cut in half": 0.5,
    "a third": 1 / 3,
    "three times": 3.0,
    "four times": 4.0,
    "five times": 5.0,
    "ten times": 10.0,
}
_NAMED = r"(?P<mark>[`'\"“*]*)(?P<tier>must|should|could)\b[`'\"”*]*"
_MET = (
    r"(?:reach(?:es|ed)?|meets?|met|pass(?:es"
    r"|ed)?|clear(?:s|ed)?|attain(?:s|ed)?"
    r"|achiev(?:es|ed)|exceed(?:s|ed)?|hits?|satisf(?:ies|ied))"
)
_TIERS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b{_MET} (?:(?:the|its|our|even|also|target"
        rf"|goal|highest) )*(?P<before>tier )?{_NAMED}"
        r"(?P<after> tier)?",
        rf"(?:\b(?P<before>tier) {_NAMED}|{_NAMED}(?P<after> tier))".replace(
            "(?P<mark>", "(?:", 1
        ).replace("(?P<tier>", "(?P<named>", 1)
        + rf" (?:is|was|has been)(?: (?:also|even|thus|now))* {_MET}\b",
    )
)
_NOT = re.compile(
    r"\b(?:not|never|no|neither|nor|hardly|without|fails?|failed|short|far|than)\b|n['’]t\b", re.I
)
_SLACK, _NEARLY_SLACK = 0.1, 0.2


def compared_claims(sentence: Sentence, known: KnownFacts) -> list[CountedClaim]:
    """The comparisons and tiers in a sentence of a report about one experiment."""
    own = known.experiments.get(sentence.experiment or "")
    if not sentence.report or own is None:
        return []
    found = [
        *_tiers(sentence, own),
        *_orders(sentence, own, known),
        *_ratios(sentence, own, known),
    ]
    claims: list[CountedClaim] = []
    for claim in found:
        if not any(overlap(claim.span, other.span) for other in claims):
            claims.append(claim)
    return claims


def _matches(
    patterns: tuple[re.Pattern[str], ...], sentence: Sentence, own: KnownExperiment
) -> Iterator[tuple[re.Match[str], str]]:
    """Each stated match, and the reference that it names."""
    text = masked(sentence.text, code=True)
    for name in EXPERIMENT.finditer(sentence.text):
        text = text[: name.start()] + name[0] + text[name.end() :]
    for pattern in patterns:
        for match in pattern.finditer(text, sentence.first):
            named = match.groupdict()
            reference = (named.get("reference") or named.get("first") or "").lower()
            stated = is_said_of_it(sentence.text, match, own.id, but=reference)
            if stated and not _NOT.search(re.sub(r"\bthan\b", "", _near(match))):
                yield match, reference


def _near(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 25) : match.start()].rpartition(",")[2] + match[0]


def _orders(sentence: Sentence, own: KnownExperiment, known: KnownFacts) -> Iterator[CountedClaim]:
    for match, reference in _matches(_ORDER_PATTERNS, sentence, own):
        word = match.groupdict().get("word") or match["turned"]
        if match.groupdict().get("own") and f"exp-{match['own']}" != own.id:
            continue
        better = not _WORSE.search(word)
        better = better if match.groupdict().get("word") else not better
        sign = 1 if own.maximize else -1
        pairs = _pairs(sentence, own, reference, known)
        if pairs:
            holds = any((sign * (ours - theirs) > 0) == better for ours, theirs in pairs.values())
            yield _claim(match, holds, _shown(own, pairs, reference))


def _ratios(sentence: Sentence, own: KnownExperiment, known: KnownFacts) -> Iterator[CountedClaim]:
    for match, reference in _matches(_RATIO_PATTERNS, sentence, own):
        written = match["factor"].lower()
        stem = re.sub(r"(?<=doubl|tripl)(?:es|ed|ing)$|(?<=halv)(?:es|ed|ing)$", "", written)
        digits = re.match(r"\d+", stem)
        factor = float(digits[0]) if digits else _FACTORS[stem]
        error = re.match(r"(?:validation |held-out )*(?:error|mistake)", match["quantity"], re.I)
        change = of_plan("error rate" if error else match["quantity"].split()[-1], own)
        if error and change is None and not own.maximize:
            change = of_plan(own.metric, own)
        pairs = _pairs(sentence, own, reference, known)
        if change is None or not pairs:
            continue
        holds = any(
            _is_times(change(ours) / change(theirs), factor, match)
            for ours, theirs in pairs.values()
            if change(theirs)
        )
        yield _claim(match, holds, _shown(own, pairs, reference))


def _is_times(ratio: float, factor: float, match: re.Match[str]) -> bool:
    if match["more"]:
        return ratio >= factor if factor > 1 else ratio <= factor
    return abs(ratio / factor - 1) <= (_NEARLY_SLACK if match["nearly"] else _SLACK)


def _pairs(
    sentence: Sentence, own: KnownExperiment, reference: str, known: KnownFacts
) -> dict[str, tuple[float, float]]:
    """By split: the experiment's score, and the one that it is compared with."""
    chance = re.fullmatch(_CHANCE, reference, re.I)
    named = reference if reference.startswith("exp-") else own.parent or ""
    other = known.experiments.get(named)
    wanted = _splits(sentence)
    pairs = {}
    for split, score in own.scores.items():
        theirs = other.scores.get(split) if other is not None and not chance else None
        mean = theirs.mean if theirs is not None else None
        if chance or (not reference and other is None):
            mean = score.baseline
        if mean is not None and (not wanted or split in wanted):
            pairs[split] = (score.mean, mean)
    return pairs


def _splits(sentence: Sentence) -> set[str]:
    return {
        one.lastgroup
        for one in SPLITS.finditer(re.sub(r"[_/]", " ", sentence.text))
        if one.lastgroup
    }


def _shown(own: KnownExperiment, pairs: Mapping[str, tuple[float, float]], reference: str) -> str:
    parts = [f"{split} {ours:.6g} and {theirs:.6g}" for split, (ours, theirs) in pairs.items()]
    return f"{own.id} and {reference or 'what it is compared with'} have {', '.join(parts)}"


def _tiers(sentence: Sentence, own: KnownExperiment) -> Iterator[CountedClaim]:
    wanted = _splits(sentence)
    for pattern in _TIERS:
        for match in pattern.finditer(sentence.text, sentence.first):
            said = match.groupdict()
            name = (said["tier"] or said.get("named") or "").lower()
            plainly = said["before"] or said["after"] or said["mark"]
            if name not in own.named_tiers or not plainly or _NOT.search(_near(match)):
                continue
            if not is_said_of_it(sentence.text, match, own.id):
                continue
            reached = {
                split: names
                for split, names in own.tiers_reached.items()
                if not wanted or split in wanted
            }
            shown = "; ".join(
                f"{split} {', '.join(sorted(names)) or 'none'}" for split, names in reached.items()
            )
            if not reached:
                why = f"{own.id} has no recomputed score"
                yield _claim(match, None, why)
            else:
                holds = any(name in names for names in reached.values())
                yield _claim(match, holds, f"{own.id} reaches the tiers {shown}")


def _claim(match: re.Match[str], holds: bool | None, evidence: str) -> CountedClaim:
    kinds = {True: ClaimKind.RECOMPUTED, False: ClaimKind.CONTRADICTED}
    return CountedClaim(
        span=match.span(),
        about="comparisons",
        kind=ClaimKind.UNSUPPORTED if holds is None else kinds[holds],
        evidence=evidence,
        counts=False,
    )


_ORDER_PATTERNS = tuple(re.compile(pattern, re.I) for pattern in _BETTER)
_RATIO_PATTERNS = tuple(re.compile(pattern, re.I) for pattern in _RATIOS)
