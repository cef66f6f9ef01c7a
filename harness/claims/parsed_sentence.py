"""A parsed sentence, and the metric, experiment and split of each of its numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.claims import vocabulary as words
from harness.claims.figures import Figure, figures, masked
from harness.claims.sentences import Sentence


@dataclass(frozen=True, kw_only=True)
class ParsedSentence:
    """A sentence with the positions of its metrics, experiments, splits and numbers."""

    sentence: Sentence
    text: str
    """Masked."""
    metrics: Sequence[tuple[str, int, int]]
    experiments: Sequence[tuple[str, int, int]]
    splits: Sequence[tuple[str, int, int]]
    figures: Sequence[Figure]

    def before(self, figure: Figure) -> str:
        return self.text[: figure.start - len(figure.sign)]

    def after(self, figure: Figure) -> str:
        return self.text[figure.end :]


def parse_sentence(sentence: Sentence, metrics: frozenset[str]) -> ParsedSentence:
    text = masked(sentence.text, code=sentence.report)
    named = _metric_pattern(metrics).finditer(text)
    spans = [(match["name"].lower(), match.start(), match.end()) for match in named]
    named_splits = words.SPLITS.finditer(re.sub(r"[_/]", " ", text))
    splits = [
        (match.lastgroup or "", match.start(), match.end())
        for match in named_splits
        if match.lastgroup
    ]
    experiments = [
        (match.group(), match.start(), match.end())
        for match in words.EXPERIMENT.finditer(sentence.text)
    ]
    return ParsedSentence(
        sentence=sentence,
        text=text,
        metrics=spans,
        experiments=experiments,
        splits=splits,
        figures=figures(text),
    )


def _metric_pattern(metrics: frozenset[str]) -> re.Pattern[str]:
    names = sorted({*words.METRICS, *(name.lower() for name in metrics)}, key=len, reverse=True)
    spelled = (
        r"[ _/-]".join(re.escape(part) for part in re.split(r"[ _/-]", name) if part)
        for name in names
    )
    prefix = r"(?:(?:val|valid|validation|dev|eval|test|train|training|best|final|mean)[_/])?"
    return re.compile(rf"(?<![\w-]){prefix}(?P<name>{'|'.join(spelled)})(?![\w])", re.I)


# All that may stand between a metric and its number, `accuracy on validation rose to about`: words
# that name no other quantity.
_CONNECTS = re.compile(
    r"(?:[\s:=(,~≈|→]|->|\b(?:is|was|are|of|at|to|an?|the|now|only|about|around|roughly|nearly"
    r"|almost|over|reach\w*|score\w*|mean|value|recomputed|measured|final|on|in|by|for|validation"
    r"|held[- ]out|test|train\w*|from|has|had|hits?|climb\w*|improved|increased|jumped|grew|went"
    r"|fell|dropped|rose|rises|stands|still|and|best|seed|set|split|data|above|below|exactly|came"
    r"|out|equals?|percent|model|rows)\b"
    r"|exp-\d+|%|>=|≥|>)*\Z"
)


# `0.93 validation accuracy`, `0.93 in mean accuracy`.
_BACKWARDS = re.compile(
    r"\s*(?:(?:in|of|mean|the|on|validation|val|held[- ]out|test|training|train|macro|balanced)\b"
    r"\s*)*\Z",
    re.I,
)


def adjacent_metric(parsed: ParsedSentence, figure: Figure) -> str | None:
    """The metric directly before or after the number."""
    for name, start, end in parsed.metrics:
        if start >= figure.end and _BACKWARDS.match(parsed.text[figure.end : start]):
            return name
        if end <= figure.start and _CONNECTS.match(
            parsed.text[end : figure.start - len(figure.sign)]
        ):
            following = [metric for metric in parsed.metrics if end <= metric[1] < figure.start]
            if not following:
                return name
    return None


def metric_of(parsed: ParsedSentence, figure: Figure) -> str | None:
    """The likely metric: the adjacent one, else the last before, else one within 40 characters."""
    if (adjacent := adjacent_metric(parsed, figure)) is not None:
        return adjacent
    earlier = [name for name, _, end in parsed.metrics if end <= figure.start]
    later = [name for name, start, _ in parsed.metrics if figure.end <= start <= figure.end + 40]
    return earlier[-1] if earlier else (later[0] if later else None)


def experiment_of(parsed: ParsedSentence, figure: Figure) -> str | None:
    # From the surest to the weakest: two lists in one order, `exp-0001: 0.93`, `exp-0001's score of
    # 0.93`, `0.93 for exp-0001`; then the last one named before, unless it is only compared with.
    named = parsed.experiments
    if not named:
        return parsed.sentence.experiment
    paired = [
        one for one in parsed.figures if one.start >= parsed.sentence.first and not one.whole
    ]
    if (
        figure in paired
        and len(paired) == len(named) > 1
        and named[-1][2] <= paired[0].start
        and _listed(parsed)
    ):
        return named[paired.index(figure)][0]
    directly = re.search(
        r"(exp-\d{4,})(?:'s)?\s*[(:=]\s*\Z",
        parsed.sentence.text[max(0, figure.start - 60) : figure.start],
    )
    if directly:
        return directly[1]
    if parsed.sentence.experiment and re.search(
        r"\bfrom\b.*\bto\s*\Z", parsed.before(figure)[-80:]
    ):
        return parsed.sentence.experiment
    owned = re.search(
        r"(exp-\d{4,})['’]s\s+(?:[\w-]+\s+){0,3}\Z", parsed.sentence.text[: figure.start][-60:]
    )
    if owned:
        return owned[1]
    following = re.match(
        r"\s*(?:for|of|in|by|with)\s+(exp-\d{4,})", parsed.sentence.text[figure.end :]
    )
    if following:
        return following[1]
    earlier = [one for one in named if one[2] <= figure.start]
    compared = earlier and re.search(
        r"\b(?:than|over|against|to|from|of)\s*\Z", parsed.text[: earlier[-1][1]]
    )
    if compared and len(earlier) == 1:
        return parsed.sentence.experiment or earlier[-1][0]
    if earlier:
        return earlier[-1][0] if not compared else earlier[-2][0]
    if parsed.sentence.experiment is not None and named[0][1] > figure.end:
        return parsed.sentence.experiment
    return named[0][0]


def _listed(parsed: ParsedSentence) -> bool:
    """Whether the experiments stand in one list: `exp-0001 and exp-0002 reach 0.81 and 0.94`."""
    gaps = [
        parsed.text[left[2] : right[1]]
        for left, right in zip(parsed.experiments, parsed.experiments[1:], strict=False)
    ]
    return all(re.fullmatch(r"[\s,]*(?:and)?\s*", gap) for gap in gaps)


def split_of(parsed: ParsedSentence, figure: Figure) -> str | None:
    directly = re.match(r"\s*(?:[\w²]+ )?(?:on|in|for)?\s*(?:the )?", parsed.text[figure.end :])
    place = figure.end + (directly.end() if directly else 0)
    for name, start, _ in parsed.splits:
        if figure.end <= start <= place:
            return name
    earlier = [name for name, _, end in parsed.splits if end <= figure.start]
    later = [name for name, start, _ in parsed.splits if start >= figure.end]
    return earlier[-1] if earlier else (later[0] if later else None)
