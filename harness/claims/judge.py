"""Judge the claims of a text: recomputed, logged, contradicted or unsupported, with evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.artifacts.experiment_files import Claim
from harness.claims import vocabulary as words
from harness.claims.checks import CHECKS, Answer, check_value, missing, of_plan
from harness.claims.comparison_words import compared_claims
from harness.claims.known_facts import HOLDS, ClaimKind, KnownExperiment, KnownFacts, named_keys
from harness.claims.number_roles import ASSERTS, Reference
from harness.claims.parsed_sentence import parse_sentence
from harness.claims.row_words import row_claims
from harness.claims.run_counts import CountedClaim, count_claims, read_here
from harness.claims.sentences import Sentence
from harness.claims.statements import Quantity, Statement, statements


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    file: str
    line: int
    text: str
    """The sentence."""
    metric: str
    value: str
    """The number as written."""
    kind: ClaimKind
    evidence: str
    """What supports or contradicts it, or what is missing."""
    experiment: str | None = None
    split: str | None = None
    decides: bool = False
    """Whether it is about the plan's metric or another experiment: a gate fails if it is wrong."""


def judge_statement(statement: Statement, known: KnownFacts, *, file: str) -> JudgedClaim:
    kind, evidence = _answer(statement, known)
    decides = _decides(statement, known)
    if decides and kind not in HOLDS and words.CITED.search(statement.sentence.text):
        evidence += "; if it is of others, the sentence must say whose it is (`reported by ...`)"
    name = statement.metric or (
        statement.quantity.value if statement.quantity is not Quantity.VALUE else "score"
    )
    return JudgedClaim(
        file=file,
        line=statement.line,
        text=" ".join(statement.sentence.text.split())[:300],
        metric=(
            name
            if statement.quantity in (Quantity.VALUE, Quantity.SAVING, Quantity.MEASUREMENT)
            else f"{statement.quantity} of {name}"
        ),
        value=statement.figure.sign + statement.text,
        kind=kind,
        evidence=evidence,
        experiment=statement.experiment,
        split=statement.split,
        decides=decides,
    )


def _decides(statement: Statement, known: KnownFacts) -> bool:
    # Other numbers in a report are notes: a gate must not fail for the loss of one epoch.
    if statement.quantity in (Quantity.SAVING, Quantity.MEASUREMENT) or statement.split == "train":
        return False
    if _of_others(statement):
        return False
    own = known.experiments.get(statement.sentence.experiment or "")
    another = (
        statement.experiment is not None and statement.experiment != statement.sentence.experiment
    )
    return (
        another
        or statement.metric is None
        or (own is not None and of_plan(statement.metric, own) is not None)
    )


def _of_others(statement: Statement) -> bool:
    """Whether it is somebody else's number, with its source: no score of this project. The
    sentence says whose it is, for a source alone says only where it stands."""
    sentence, figure = statement.sentence, statement.figure
    text = sentence.text
    # Blanks in the place of sources: what is said reads on, and places stay.
    said = words.SOURCE_BESIDE.sub(lambda source: " " * len(source[0]), text)
    clause = _clause(said, figure.start)
    if not words.CITED.search(text) or words.OWN.search(words.CITED.sub("", clause)):
        return False
    if words.PUBLISHED.search(text[: sentence.first]):
        return True  # of a table: its row or column is that source's
    return bool(words.CITED_BEHIND.match(text, figure.end) or words.ATTRIBUTES.search(clause))


def _clause(text: str, at: int) -> str:
    """The part of a sentence around `at`; all of it where the part only goes on with a list."""
    borders = [match.span() for match in words.CONTRASTS.finditer(text)]
    begin = max((end for _, end in borders if end <= at), default=0)
    if not ASSERTS.search(text[begin:at]):
        return text
    return text[begin : min((start for start, _ in borders if start >= at), default=len(text))]


def _answer(statement: Statement, known: KnownFacts) -> Answer:
    if statement.quantity is Quantity.SAVING:
        return _saving(statement, known)
    if statement.quantity is Quantity.MEASUREMENT:
        return _from_evidence(statement, known) or missing(
            "a measurement needs a file in docs/evidence, named here"
        )
    if statement.experiment is None:
        return _from_evidence(statement, known) or _anybody(statement, known)
    experiment = known.experiments.get(statement.experiment)
    if experiment is None:
        return _from_evidence(statement, known) or missing(
            f"{statement.experiment} is not in the ledger"
        )
    answer = _compared(statement, experiment, known)
    if answer[0] is ClaimKind.UNSUPPORTED:
        return _from_evidence(statement, known) or answer
    return answer


def _compared(statement: Statement, experiment: KnownExperiment, known: KnownFacts) -> Answer:
    """Compare a value with the experiment, or with its parent where the sentence says so."""
    own = CHECKS[statement.quantity](statement, experiment, known)
    if statement.reference is None or experiment.id != statement.sentence.experiment:
        return own
    parent = known.experiments.get(experiment.parent or "")
    if statement.reference is Reference.PARENT:
        return (
            check_value(statement, parent, known)
            if parent
            else missing(f"{experiment.id} has no parent")
        )
    if own[0] in HOLDS:
        return own
    named = [
        known.experiments.get(name) for name in words.EXPERIMENT.findall(statement.sentence.text)
    ]
    # Without the words before it, `than 0.60` cannot be read as a bound of the other's score.
    bare = replace(statement, before="")
    answers = [check_value(bare, item, known) for item in (parent, *named) if item is not None]
    return next((item for item in answers if item[0] in HOLDS), own)


def _anybody(statement: Statement, known: KnownFacts) -> Answer:
    """No experiment is named: the claim may be about any."""
    if not known.experiments:
        return missing("the text names no experiment and no evidence file")
    if statement.quantity in (
        Quantity.DIFFERENCE,
        Quantity.SPREAD,
        Quantity.INTERVAL,
        Quantity.RUNS,
    ):
        pairs = (
            CHECKS[statement.quantity](statement, one, known) for one in known.experiments.values()
        )
    else:
        pairs = (check_value(statement, one, known) for one in known.experiments.values())
    answers = list(pairs)
    for kind in (ClaimKind.RECOMPUTED, ClaimKind.LOGGED, ClaimKind.CONTRADICTED):
        if (answer := next((one for one in answers if one[0] is kind), None)) is not None:
            return (
                answer
                if kind is not ClaimKind.CONTRADICTED
                else (kind, f"no experiment has it, e.g. {answer[1]}")
            )
    return missing("no experiment has a recomputed or logged value of it")


def _saving(statement: Statement, known: KnownFacts) -> Answer:
    """A speed or saving claim must say `measured` or `projected`, and name its evidence."""
    mine, other = (
        known.experiments.get(name or "") for name in (statement.experiment, statement.other)
    )
    timed = mine is not None and other is not None and mine.seconds and other.seconds
    if timed and mine and other and mine.seconds and other.seconds:
        ratio = other.seconds / mine.seconds
        # `2 times as fast`, `half the time`, `50 % less time`, `100 % faster`.
        ways = (ratio, 1 / ratio, 100 * abs(1 - 1 / ratio), 100 * abs(1 - ratio))
        if not any(statement.figure.near(way) for way in ways):
            return (
                ClaimKind.CONTRADICTED,
                f"runs of {mine.id} took {mine.seconds:.6g} s, of {other.id} {other.seconds:.6g} s",
            )
    if not words.SAID_HOW.search(statement.sentence.around):
        return missing("a saving or speed figure says `measured` or `projected`")
    if timed:
        return ClaimKind.LOGGED, "seconds of the runs, in the ledger"
    if answer := _from_evidence(statement, known):
        return answer
    programs = sorted(statement.sentence.pointers & known.programs)
    if programs and words.PROJECTED.search(statement.sentence.around):
        return ClaimKind.LOGGED, f"projected, by {programs[0]}"
    return missing(
        "a measured figure names the file in docs/evidence that has it, a projected one its program"
        " in bench/"
    )


def _from_evidence(statement: Statement, known: KnownFacts) -> Answer | None:
    """Compare with the evidence files that the section names; None if it names none that exists."""
    files = sorted(statement.sentence.pointers & set(known.evidence))
    others, elsewhere = [], []
    for file in files:
        figures = known.evidence[file]
        meant = named_keys(statement.sentence, statement.figure, figures)
        for key, value in figures.items():
            # A figure's number is read without its sign.
            size = -value if statement.figure.sign == "-" else value
            agrees = statement.figure.agrees(size) or statement.figure.near(size)
            if agrees and key in meant:
                return ClaimKind.LOGGED, f"{file}: {key} is {value:.6g}"
            if agrees:
                elsewhere.append(f"{file} has it as {key}")
        others += [f"{file}: {key} is {figures[key]:.6g}" for key in meant]
    if others:
        return ClaimKind.CONTRADICTED, "; ".join(others[:3])
    if elsewhere:
        return missing(f"{elsewhere[0]}, which the sentence does not name")
    return (ClaimKind.CONTRADICTED, f"no figure of {', '.join(files)} is it") if files else None


def judged(text: list[Sentence], known: KnownFacts, *, file: str) -> list[JudgedClaim]:
    """The claims of a text's sentences, in their order."""
    claims: list[JudgedClaim] = []
    for sentence in text:
        counted = _counted(sentence, known)
        claims += [_judged_count(one, sentence, file) for one in counted]
        claims += [
            judge_statement(statement, known, file=file)
            for statement in statements(sentence, known.metrics)
            if not read_here(counted, statement.figure.start)
        ]
    return claims


def _counted(sentence: Sentence, known: KnownFacts) -> list[CountedClaim]:
    return [
        *count_claims(sentence, known),
        *row_claims(sentence, known),
        *compared_claims(sentence, known),
    ]


def unread(text: list[Sentence], known: KnownFacts) -> Iterator[tuple[Sentence, str]]:
    """(sentence, number as written) of each that `judged` ties to nothing: nobody checks it."""
    for sentence in text:
        counted = _counted(sentence, known)
        read = {one.figure.start for one in statements(sentence, known.metrics)}
        for figure in parse_sentence(sentence, known.metrics).figures:
            row = figure.start < sentence.first
            if not row and figure.start not in read and not read_here(counted, figure.start):
                yield sentence, figure.sign + sentence.text[figure.start : figure.end].strip()


def _judged_count(counted: CountedClaim, sentence: Sentence, file: str) -> JudgedClaim:
    begin, end = counted.span
    return JudgedClaim(
        file=file,
        line=sentence.line_of(begin),
        text=" ".join(sentence.text.split())[:300],
        metric=f"the count of {counted.about}",
        value=f'"{" ".join(sentence.text[begin:end].split())}"',
        kind=counted.kind,
        evidence=counted.evidence,
        experiment=sentence.experiment,
        decides=counted.decides,
    )


def front_matter_claims(
    text: str, claims: Mapping[str, Claim], known: KnownFacts, *, experiment: str, file: str
) -> list[JudgedClaim]:
    """The claims in the front matter of a result, read as `metric: number` on validation."""
    lines = text.split("\n")
    claimed = []
    for name, claim in claims.items():
        line = next(
            (number for number, row in enumerate(lines, 1) if name in row and claim.text in row),
            1,
        )
        sentence = Sentence(
            line=line,
            text=f"{name}: {claim.text} on validation",
            experiment=experiment,
            report=True,
            around=name,
        )
        metrics = known.metrics | {name}
        claimed += [
            judge_statement(statement, known, file=file)
            for statement in statements(sentence, metrics)[:1]
        ]
    return claimed
