"""Counts and universals in a result, held against the ledger: how many runs completed or failed,
that all did or none, alarms, and what every seed reached.

What the ledger does not know is no claim here, and neither is a forecast, a quotation or what is
said of another experiment.
"""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass

from harness.claims.figures import NUMBER_WORDS, masked
from harness.claims.known_facts import ClaimKind, KnownExperiment, KnownFacts, RunTally
from harness.claims.sentences import Sentence
from harness.claims.vocabulary import SPLITS

Span = tuple[int, int]

_NUMBER = r"(?:\d{1,4}|" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + r")"
_UNITS = r"(?:runs?|seeds?|launch(?:es)?|trainings?|attempts?)"
# What may stand between `every run` and its verb: `every run that we started has completed`.
_BETWEEN = (
    r"(?:,? (?:of (?:it|this experiment|the experiment"
    r"|exp-\d+)|have|has|had|were|was|are|is|did"
    r"|also|then|that|which|we|started|launched"
    r"|registered|successfully|normally|cleanly|been"
    r"|actually|eventually|even|ever)){0,5} "
)
_DONE = (
    r"(?:complet(?:ed|e|es)|finish(?:ed|es)?"
    r"|succeed(?:ed|s)?|successful(?:ly)?|went through"
    r"|(?:ran|run) (?:through|to (?:the |their )?(?:end|completion))"
    r"|ended (?:normally|cleanly|well"
    r"|without an? (?:error|failure)|without errors))\b"
)
_FAILED = r"(?:fail(?:ed|s)?|crash(?:ed|es)?|died|killed|lost|aborted|broke(?: off)?)\b"
_ALL = (
    r"(?P<all>(?:not |nearly |almost )?\b(?:all|every|each|both))(?: of)?"
    r"(?: (?:the|its|our|these))?"
    rf"(?: (?:one|single|last))?(?: {_NUMBER})?(?: of (?:the"
    rf"|its|our)(?: {_NUMBER})?)?"
    rf"(?: (?:random|different|registered"
    rf"|launched|started))? (?P<unit>{_UNITS})"
)
_NONE = (
    rf"\b(?:no|none of (?:the|its|our"
    rf"|these)(?: {_NUMBER})?|zero|0|not (?:one|a single)"
    rf"(?: of (?:the|its|our))?)(?: (?:single|one"
    rf"|registered|launched|started))? (?P<unit>{_UNITS})"
)
_SOME = (
    rf"(?<![\w.])(?P<n>{_NUMBER})"
    rf"(?: (?:of|out of)(?: (?:the|its|our|these))?(?: (?P<m>{_NUMBER}))?)?"
    rf"(?: ?(?:registered|random))?\s?(?P<unit>{_UNITS})"
)
_NO = r"\b(?:no|zero|0|without (?:an?|any|one)|not (?:a single|one|any))"
_ALARM_MORE = (
    r"(?! (?:threshold|limit|setting|kind|code"
    r"|detector|settings|log|file)| (?:was|is|were|are)"
    r" (?:switched|turned|ignored|disabled|silenced"
    r"|left|missed|missing|open|unexplained|needed)"
    r"|[^.;,]{0,12} (?:remains?|stands?|without|stays?|left)\b)"
)
_ALL_DONE = re.compile(_ALL + _BETWEEN + rf"(?P<verb>{_DONE}|{_FAILED})", re.I)
_NONE_DONE = re.compile(_NONE + _BETWEEN + rf"(?P<verb>{_DONE}|{_FAILED})", re.I)
_COUNT_DONE = re.compile(_SOME + _BETWEEN + rf"(?P<verb>{_DONE}|{_FAILED})", re.I)
_COUNT_KIND = re.compile(
    rf"(?<![\w.])(?P<n>{_NUMBER})"
    r" (?P<verb>complet(?:ed|e)|finished|successful|failed|crashed|killed)"
    rf" (?P<unit>{_UNITS})",
    re.I,
)
_NO_FAILURE = re.compile(
    rf"{_NO} (?:failures?|crash(?:es)?|(?:failed"
    rf"|crashed|lost|aborted) {_UNITS})\b"
    r"(?! (?:mode|case|(?:is|was|are|were) (?:counted"
    r"|used|included|in)\b|counts|enters))"
    r"|\bnothing (?:failed|crashed)\b",
    re.I,
)
_COUNT_LISTED = re.compile(
    rf"\b(?P<unit>runs|seeds)\s*[:=]\s*(?P<n>{_NUMBER}) (?P<verb>completed"
    rf"|finished|failed)\b",
    re.I,
)
_COUNT_FAILURE = re.compile(
    rf"(?<![\w.])(?P<n>{_NUMBER}) (?:failures|crashes|failure|crash)\b", re.I
)
_NO_ALARM = re.compile(
    rf"(?:{_NO}(?: (?P<kind>[a-z]+(?:[_ ][a-z]+){{0,2}}))? alarms?\b{_ALARM_MORE}"
    r"|\b(?:never|not|n't) (?:rais\w+|trigger\w*"
    r"|set off|caused?)(?: an?| any| one)? alarms?\b"
    r"|\balarms?: (?:none|no|0)\b)",
    re.I,
)
_COUNT_ALARMS = re.compile(
    rf"(?<![\w.])(?P<n>{_NUMBER})(?: (?P<kind>[a-z]+(?:[_ ][a-z]+){{0,2}}))? alarms?\b"
    rf"{_ALARM_MORE}",
    re.I,
)
_NO_DIVERGENCE = re.compile(
    rf"(?:{_NONE}{_BETWEEN}diverged|{_NO} divergence"
    rf"|\bnothing diverged|\bnever diverged"
    r"|\b(?:did not|didn['’]t) diverge)\b(?! alarm)",
    re.I,
)
_NO_NAN = re.compile(rf"(?:{_NO} (?:NaNs?|non-finite (?:values?|loss(?:es)?|gradients?))\b)", re.I)
_REACHES = re.compile(
    rf"{_ALL}\b[^.;,]{{0,40}}?\b(?:(?P<than>above"
    rf"|over|at least|no less than|more than"
    r"|exceed(?:s|ed)?|better than|higher than|reach(?:es|ed)?)"
    r"|(?P<under>below|under|at most|less than|lower than|worse than))"
    r" (?P<x>\d*\.\d+|\d+(?:\.\d+)?(?=\s?%))(?P<percent>\s?%)?",
    re.I,
)
_BEATS = re.compile(
    rf"{_ALL}\b[^.;,]{{0,30}}?\b(?:beats?"
    rf"|better than|improve[sd]? (?:on|over|upon)"
    r"|above|outperform(?:s|ed)?"
    r"|higher than) (?:that of )?(?:the|its|our) parent\b",
    re.I,
)
_EXPERIMENTS = re.compile(
    rf"(?<![\w.])(?P<n>{_NUMBER}) experiments"
    r" (?:were|have been|had been|ran|in all|so far|opened)\b",
    re.I,
)
_BORDER = re.compile(r"[;:,.]\s|\s(?:but|while|whereas|although|though|and|so|because)\s", re.I)
_ELSEWHERE = re.compile(
    r"\b(?:parent|baseline|reference|previous|earlier"
    r"|paper|authors?|et al|literature|elsewhere"
    r"|before|other experiments?|last time|they|their"
    r"|run-\d+|counted|kept|remaining|seeds? \d+)\b",
    re.I,
)
_NO_END = re.compile(r" (?:its|their|epochs?\b|the (?:first|warm))", re.I)
_FORECAST = re.compile(
    r"\b(?:would|might|may|could|should|will|expect\w*"
    r"|hop(?:e|ing)|if|whether|unless|until|when"
    r"|once|plan(?:s|ned)? to|want\w*|needs?|must"
    r"|next|try|suppose|hypothes\w*|requires?|wait\w*"
    r"|at least|at most|up to|more than|fewer than"
    r"|first|last|second|third|such|further|per)\b",
    re.I,
)


@dataclass(frozen=True, kw_only=True)
class CountedClaim:
    """What a text says of the runs, and what the ledger says."""

    span: Span
    about: str
    kind: ClaimKind
    evidence: str
    counts: bool
    """Whether its number is read here: then it is no other count."""
    decides: bool = True
    """Whether a gate fails for it."""


def count_claims(sentence: Sentence, known: KnownFacts) -> list[CountedClaim]:
    """The counts and universals of a sentence of a report about one experiment."""
    own = known.experiments.get(sentence.experiment or "")
    if not sentence.report or own is None or own.tally is None:
        return []
    claims: list[CountedClaim] = []
    text = masked(sentence.text, code=True)
    for pattern, about, check in _CHECKS:
        for match in pattern.finditer(text, sentence.first):
            if any(overlap(match.span(), claim.span) for claim in claims):
                continue
            if not is_said_of_it(sentence.text, match, own.id):
                continue
            holds = check(match, own, own.tally, known)
            if holds is None:
                continue
            claims.append(
                CountedClaim(
                    span=match.span(),
                    about=about,
                    kind=ClaimKind.RECOMPUTED if holds else ClaimKind.CONTRADICTED,
                    evidence=_evidence(about, own, own.tally, known),
                    counts="n" in match.groupdict(),
                )
            )
    return claims


def read_here(claims: list[CountedClaim], place: int) -> bool:
    """Whether the number at `place` is read by one of the claims."""
    return any(one.counts and one.span[0] <= place < one.span[1] for one in claims)


def is_said_of_it(text: str, match: re.Match[str], experiment: str, *, but: str = "") -> bool:
    """Whether the match is stated, and of the experiment itself; `but` may be named beside it."""
    start = max((cut.end() for cut in _BORDER.finditer(text, 0, match.start())), default=0)
    after = _BORDER.search(text, match.end())
    clause = text[start : after.start() if after else len(text)]
    others = set(re.findall(r"\bexp-\d{4,}\b", clause)) - {experiment, but}
    before = text[start : match.start()]
    if others or _FORECAST.search(before) or re.search(r"\?\s*$", text):
        return False
    said = match.group()
    # `no run that completed raised ...` is about some runs; `finished its first epoch` is no end.
    if re.search(r"\b(?:that|which) (?!we\b|of\b)", said) or _NO_END.match(text, match.end()):
        return False
    # `beats the parent` is said of us; what else names the parent is said of it.
    return _ELSEWHERE.search(clause.replace(said, " ")) is None


def overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _evidence(about: str, own: KnownExperiment, tally: RunTally, known: KnownFacts) -> str:
    if about == "alarms":
        named = ", ".join(sorted(set(tally.alarms))) or "none"
        return f"{own.id} raised {len(tally.alarms)} alarms ({named}), {tally.open_alarms} open"
    if about == "experiments":
        return f"the ledger has {known.opened} experiments"
    if about == "seeds":
        values = [
            f"{split} {', '.join(f'{value:.6g}' for value in score.values)}"
            for split, score in own.scores.items()
            if score.values
        ]
        return f"{own.id} by seed: {'; '.join(values)}"
    return (
        f"{own.id} has {own.launches} registered runs, {tally.completed} completed,"
        f" {tally.failed} failed; {tally.seeds} of {tally.seeds_launched} seeds completed"
    )


_Check = Callable[[re.Match[str], KnownExperiment, RunTally, KnownFacts], bool | None]


def _done_of(match: re.Match[str], own: KnownExperiment, tally: RunTally) -> tuple[int, int, int]:
    """(completed, failed, all) of the unit that the match names."""
    if match["unit"].lower().startswith("seed"):
        return tally.seeds, tally.seeds_launched - tally.seeds, tally.seeds_launched
    return tally.completed, own.launches - tally.completed, own.launches


def _says_done(match: re.Match[str]) -> bool:
    return re.fullmatch(_DONE + "|finished|successful", match["verb"], re.I) is not None


def _all_done(
    match: re.Match[str], own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool | None:
    done, failed, total = _done_of(match, own, tally)
    reached = done if _says_done(match) else failed
    word = match["all"].lower().split()[0]
    if word in ("nearly", "almost"):
        return None if 2 * reached >= total else False
    return reached < total if word == "not" else reached == total


def _none_done(
    match: re.Match[str], own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    done, failed, _ = _done_of(match, own, tally)
    return (done if _says_done(match) else failed) == 0


def _count_done(
    match: re.Match[str], own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    done, failed, total = _done_of(match, own, tally)
    whole = match.groupdict().get("m")
    if whole is not None and _count(whole) not in {total, tally.seeds_launched, own.launches}:
        return False
    if _says_done(match):
        return _count(match["n"]) in {done, tally.seeds}
    return _count(match["n"]) in {failed, tally.failed, *tally.failed_by_kind}


def _no_failure(
    _match: re.Match[str], _own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    return tally.failed == 0


def _count_failure(
    match: re.Match[str], own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    truth = {own.launches - tally.completed, tally.failed, *tally.failed_by_kind}
    return _count(match["n"]) in truth


def _alarms_of(kind: str | None, tally: RunTally) -> Set[int] | None:
    """The counts that `kind` of alarm may mean; None when the ledger has no such kind."""
    name = re.sub(r"[ -]", "_", (kind or "").lower()).removeprefix("single_")
    if not name:
        return {len(tally.alarms), len(set(tally.alarms)), tally.open_alarms, tally.alarmed_runs}
    if name in ("open", "standing", "unexplained"):
        return {tally.open_alarms}
    if name == "fatal":
        return {tally.fatal_alarms}
    if name in tally.known_alarms:
        return {tally.alarms.count(name)}
    return None


def _no_alarm(
    match: re.Match[str], _own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool | None:
    counts = _alarms_of(match["kind"], tally)
    return None if counts is None else max(counts) == 0


def _count_alarms(
    match: re.Match[str], _own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool | None:
    counts = _alarms_of(match["kind"], tally)
    return None if counts is None else _count(match["n"]) in counts


def _no_divergence(
    _match: re.Match[str], _own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    return not {"divergence", "non_finite"} & set(tally.alarms)


def _no_nan(
    _match: re.Match[str], _own: KnownExperiment, tally: RunTally, _known: KnownFacts
) -> bool:
    return "non_finite" not in tally.alarms


def _split_of(match: re.Match[str]) -> str:
    named = SPLITS.finditer(re.sub(r"[_/]", " ", match.string))
    return "held_out" if "held_out" in {one.lastgroup for one in named} else "validation"


def _reaches(
    match: re.Match[str], own: KnownExperiment, _tally: RunTally, _known: KnownFacts
) -> bool | None:
    score = own.scores.get(_split_of(match))
    if (
        score is None
        or not score.values
        or match["all"].lower().split()[0] in ("not", "nearly", "almost")
    ):
        return None
    bound = float(match["x"]) / (100 if match["percent"] else 1)
    if not min(score.values) / 2 <= bound <= 2 * max(score.values):
        return None  # another quantity: an epoch, a learning rate
    return max(score.values) <= bound if match["under"] else min(score.values) >= bound - 5e-4


def _beats(
    match: re.Match[str], own: KnownExperiment, _tally: RunTally, known: KnownFacts
) -> bool | None:
    parent = known.experiments.get(own.parent or "")
    split = _split_of(match)
    ours, theirs = own.scores.get(split), parent.scores.get(split) if parent else None
    if (
        not ours
        or not theirs
        or not ours.values
        or match["all"].lower().split()[0] in ("not", "nearly", "almost")
    ):
        return None
    sign = 1 if own.maximize else -1
    pairs = zip(ours.values, theirs.values, strict=False)
    by_mean = all(sign * (value - theirs.mean) > 0 for value in ours.values)
    return by_mean or all(sign * (value - other) > 0 for value, other in pairs)


def _experiments(
    match: re.Match[str], _own: KnownExperiment, _tally: RunTally, known: KnownFacts
) -> bool | None:
    # Fewer may be a part of them; more were never opened.
    return None if known.opened is None else _count(match["n"]) <= known.opened


def _count(written: str) -> int:
    return NUMBER_WORDS.get(written.lower(), -1) if written[0].isalpha() else int(written)


_CHECKS: tuple[tuple[re.Pattern[str], str, _Check], ...] = (
    (_ALL_DONE, "runs", _all_done),
    (_NONE_DONE, "runs", _none_done),
    (_COUNT_DONE, "runs", _count_done),
    (_COUNT_KIND, "runs", _count_done),
    (_COUNT_LISTED, "runs", _count_done),
    (_NO_FAILURE, "runs", _no_failure),
    (_COUNT_FAILURE, "runs", _count_failure),
    (_NO_ALARM, "alarms", _no_alarm),
    (_COUNT_ALARMS, "alarms", _count_alarms),
    (_NO_DIVERGENCE, "alarms", _no_divergence),
    (_NO_NAN, "alarms", _no_nan),
    (_BEATS, "seeds", _beats),
    (_REACHES, "seeds", _reaches),
    (_EXPERIMENTS, "experiments", _experiments),
)
