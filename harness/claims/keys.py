"""Which figure of a file of evidence a number in a sentence is: by the words of its key, never by
its value.

A number agrees with some figure by chance sooner than one thinks. So the words around it choose the
key, and only that key's value supports it. A sentence names a key that has a word in the number's
own clause, more than its unit, and at least half of its words in the sentence; of several it is the
one whose words the clause has most fully (in a table the cell, then what stands left and above). An
outcome behind the number (`97 were caught`) is part of the key. The key itself beside the number is
the plainest way to name one.
"""

import re
from collections.abc import Iterable, Mapping

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.passages import Sentence, without_pointers

_SAME = {
    "min": "minute",
    "mins": "minute",
    "sec": "second",
    "secs": "second",
    "s": "second",
    "h": "hour",
    "gb": "gigabyte",
    "gib": "gigabyte",
    "mb": "megabyte",
    "mib": "megabyte",
    "times": "ratio",
    "x": "ratio",
    "percent": "share",
    "percentage": "share",
}
_UNITS = {"x": "ratio", "%": "share"}
_UNIT_WORDS = frozenset({*_SAME.values(), "ms", "us", "kb", "byte"})
_SMALL = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "per",
        "to",
        "and",
        "by",
        "for",
        "is",
        "was",
        "were",
        "are",
        "on",
    ]
)
_CLAUSE = re.compile(r"[;,.]\s")


def named_keys(sentence: Sentence, figure: Figure, figures: Mapping[str, float]) -> list[str]:
    """The keys of `figures` that the number may be; empty when the sentence names none."""
    text = without_pointers(sentence.text)
    context = _words(text[: sentence.first])
    clause = _clause(text, figure, sentence.first)
    around = _words(text[: figure.start]) | _words(text[figure.end :]) | clause
    ranked = []
    for key in _with_outcome(text, figure, figures):
        parts = _words(key)
        own, near, far = (len(parts & said) for said in (clause, clause | context, around))
        own_words = parts - _UNIT_WORDS or parts
        if own_words & (clause | context) and 2 * far >= len(parts):
            ranked.append(((own / len(parts), near / len(parts), near), key))
    best = max((rank for rank, _ in ranked), default=None)
    return [key for rank, key in ranked if rank == best]


def _clause(text: str, figure: Figure, first: int) -> frozenset[str]:
    """The words of the part between separators that the number stands in, and its unit as a
    word."""
    cuts = [match.end() for match in _CLAUSE.finditer(text)]
    begin = max((cut for cut in cuts if cut <= figure.start), default=0)
    end = min((cut for cut in cuts if cut >= figure.end), default=len(text))
    unit = {_UNITS[figure.unit]} if figure.unit in _UNITS else set()
    return _words(text[max(begin, first) : figure.start]) | _words(text[figure.end : end]) | unit


def _with_outcome(text: str, figure: Figure, keys: Iterable[str]) -> list[str]:
    """Of `keys` those with the outcome that the number is said to be of, where any has it; else
    all."""
    outcome = words.OUTCOME_AFTER.match(text[figure.end :])
    wanted = _words(outcome.group().split()[-1]) if outcome else frozenset()
    kept = [key for key in keys if wanted & _words(key)]
    return kept or list(keys)


def _words(text: str) -> frozenset[str]:
    return frozenset(
        _plain(word) for word in re.findall(r"[a-z]+|\d+", text.lower()) if word not in _SMALL
    )


def _plain(word: str) -> str:
    known = _SAME.get(word, word)
    return (
        known[:-1] if len(known) > 3 and known.endswith("s") and not known.endswith("ss") else known
    )
