"""Which rows of a benchmark the training rows tell: by the whole prompt, by long runs of words, by
the answer alone, by a prompt in other words.

- "prompt": the same prompt, whatever its case, white space and invisible characters.
- "13-gram": 13 words in a row of a prompt or an answer stand in one training row, as GPT-3's check
  (Brown et al. 2020, appendix C); of a prompt of 8 to 12 words nearly all its runs of 8.
- "answer": an answer of 8 words or more is an answer of a training row. Shorter ones recur by
  themselves, so they count only where far more of them recur than two measures explain: how often
  training answers recur among each other, and how many distinct ones could meet those of the
  benchmark by luck.
- "reworded": a training row with the same numbers and nearly the same rare words; fewer words are
  enough where the answer is the same, and most training rows with that answer ask the same.

What two rows of the benchmark share, a template or a usual answer, tells nothing of one of them.
"""

import math
import re
import unicodedata
from collections import (
    Counter,
    defaultdict,
)
from collections.abc import (
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import (
    Any,
    TypeVar,
)

from harness.plans.contamination import expected_share

RUN = 13
SHORT_RUN = 8
NEARLY_ALL = 0.8
"""Of a short prompt's runs, and of a prompt's rare words."""
MOST = 0.6
"""Of a prompt's rare words, where the answer is the same."""
LONG_ANSWER = 8
"""Words from which on an answer does not recur by itself."""
MOST_SHARED = 0.05
"""Share of the benchmark from which on it says nothing; fewer rows are left out of the score."""
_COMMON = 0.2
"""A word in a larger share of the benchmark's prompts is its template."""
_OWN_WORDS = 5
"""Rare words that a run of 13, or a prompt in other words, must have."""
_WORDS = re.compile(r"\w+|[^\w\s]")
_ANSWERS = ("answer", "completion", "chosen")
_RESPONSES = (*_ANSWERS, "rejected")
KINDS = ("prompt", "13-gram", "reworded", "answer")
_Run = tuple[str, ...]
_Key = TypeVar("_Key")
_MOSTLY = 0.5
"""Of the training rows with an answer: so many ask the same when it is the answer to that alone."""
_CHANCE = 0.001
_SHOWN = 20
"""Rows that are named where the others say nothing any more."""


@dataclass(frozen=True, kw_only=True)
class Contamination:
    rows: int
    """Of the benchmark."""
    found: Mapping[str, str]
    """Id of a row -> how the training rows tell it: the first kind that was found."""

    @property
    def blocks(self) -> bool:
        """Whether so many rows are told that the others are no benchmark any more."""
        return len(self.found) > MOST_SHARED * self.rows

    def plain(self) -> dict[str, Any]:
        kinds = dict(sorted(Counter(self.found.values()).items()))
        shown = list(self.found.items())[: _SHOWN if self.blocks else None]
        return {
            "rows": self.rows,
            "count": len(self.found),
            "kinds": kinds,
            "found": dict(shown),
            "blocks": self.blocks,
        }


def said(plain: Mapping[str, Any]) -> str:
    """In words: how many, how, which."""
    kinds = ", ".join(f"{count} by {kind}" for kind, count in plain["kinds"].items())
    names = ", ".join(list(plain["found"])[:5])
    more = ", ..." if plain["count"] > 5 else ""
    return (
        f"{plain['count']} of {plain['rows']} benchmark rows stand in the training rows ({kinds}):"
        f" {names}{more}"
    )


def contamination(
    training: Sequence[Mapping[str, Any]], benchmark: Sequence[Mapping[str, Any]]
) -> Contamination:
    """Look for each row of the benchmark in the training rows."""
    search = _Search(benchmark)
    for row in training:
        search.take(row)
    return Contamination(rows=len(benchmark), found=search.found())


def words(text: str) -> list[str]:
    """Words, numbers and signs, in one form whatever the case, the script's forms and what is not
    seen."""
    if text.isascii():
        return _WORDS.findall(text.lower())
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _WORDS.findall("".join(one for one in plain if unicodedata.category(one) != "Cf"))


@dataclass(frozen=True, kw_only=True)
class _Row:
    prompt: tuple[str, ...]
    answer: str
    rare: frozenset[str]
    """Words of the prompt, numbers not among them, that are no template."""
    numbers: frozenset[str]


class _Search:
    """The benchmark's rows, found by what is theirs alone."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        often = Counter(word for row in rows for word in set(_words_of(row, "prompt")))
        limit = max(2.0, _COMMON * len(rows))
        self._template = frozenset(word for word, count in often.items() if count > limit)
        self._rows = {str(row.get("id")): self._read(row) for row in rows}
        self._prompts = {row.prompt: name for name, row in self._rows.items()}
        self._answers = _owned((row.answer, name) for name, row in self._rows.items())
        self._long = _owned(
            (text, str(row.get("id")))
            for row in rows
            for text in _texts(row, _RESPONSES)
            if len(text.split()) >= LONG_ANSWER
        )
        runs = (
            (run, str(row.get("id")))
            for row in rows
            for text in _texts(row, ("prompt", *_RESPONSES))
            for run in _runs(text.split(), RUN)
            if len(set(run) - self._template) >= _OWN_WORDS
        )
        self._runs = _owned(runs)
        self._short: dict[_Run, list[str]] = defaultdict(list)
        self._by_word: dict[str, list[str]] = defaultdict(list)
        for name, row in self._rows.items():
            if SHORT_RUN <= len(row.prompt) < RUN:
                for run in set(_runs(row.prompt, SHORT_RUN)):
                    self._short[run].append(name)
            # Who has 80% of the words has one of the rarest 20% and one more.
            rarest = sorted(row.rare, key=lambda word: (often[word], word))
            for word in rarest[: math.floor((1 - NEARLY_ALL) * len(rarest)) + 1]:
                self._by_word[word].append(name)
        self._short_runs = Counter(name for names in self._short.values() for name in names)
        self._kinds: dict[str, set[str]] = defaultdict(set)
        self._same, self._asked = Counter[str](), Counter[str]()
        self._known: set[tuple[tuple[str, ...], str]] = set()

    def _read(self, row: Mapping[str, Any]) -> _Row:
        prompt = tuple(_words_of(row, "prompt"))
        own = {word for word in prompt if word not in self._template and word.isalnum()}
        return _Row(
            prompt=prompt,
            answer=_answer_of(row),
            rare=frozenset(word for word in own if not word.isdigit()),
            numbers=frozenset(word for word in prompt if word.isdigit()),
        )

    def take(self, row: Mapping[str, Any]) -> None:
        """One training row."""
        read = self._read(row)
        self._known.add((read.prompt, read.answer))
        self._note(self._prompts.get(read.prompt), "prompt")
        for text in dict.fromkeys(_texts(row, row)):
            parts = text.split()
            for run in _runs(parts, RUN):
                self._note(self._runs.get(run), "13-gram")
            self._take_short_runs(parts)
            self._note(self._long.get(text), "answer")
        self._take_other_words(read)

    def found(self) -> dict[str, str]:
        """Id -> first kind, in the benchmark's order."""
        for name, count in self._asked.items():
            if count >= _MOSTLY * self._same[name]:
                self._note(name, "reworded")
        for name in self._short_answers():
            self._note(name, "answer")
        return {
            name: next(kind for kind in KINDS if kind in self._kinds[name])
            for name in self._rows
            if name in self._kinds
        }

    def _note(self, name: str | None, kind: str) -> None:
        if name is not None:
            self._kinds[name].add(kind)

    def _take_short_runs(self, parts: Sequence[str]) -> None:
        runs = set(_runs(parts, SHORT_RUN))
        hits = Counter(name for run in runs for name in self._short.get(run, ()))
        for name, count in hits.items():
            same = self._rows[name].numbers <= set(parts)
            if same and count >= NEARLY_ALL * self._short_runs[name]:
                self._note(name, "13-gram")

    def _take_other_words(self, read: _Row) -> None:
        there = set(read.prompt)
        if (name := self._answers.get(read.answer)) is not None and read.answer:
            row = self._rows[name]
            enough = len(row.rare & there) >= MOST * len(row.rare)
            self._same[name] += 1
            self._asked[name] += bool(enough and row.numbers <= there and row.rare | row.numbers)
        for name in {name for word in read.rare for name in self._by_word.get(word, ())}:
            row = self._rows[name]
            shared = len(row.rare & read.rare) >= max(_OWN_WORDS, NEARLY_ALL * len(row.rare))
            # A long text holds any words: what is a rewording has about as many as the row.
            if shared and len(read.rare) <= 2 * len(row.rare) and row.numbers <= there:
                self._note(name, "reworded")

    def _short_answers(self) -> list[str]:
        """Rows whose short answers recur, where more recur than both measures explain."""
        short = {
            name: row.answer
            for name, row in self._rows.items()
            if row.answer and len(row.answer.split()) < LONG_ANSWER
        }
        answers = Counter(answer for _, answer in self._known if answer)
        told = [name for name, answer in short.items() if answer in answers]
        if len(told) <= MOST_SHARED * len(self._rows):
            return []
        total = sum(answers.values())
        twins = (sum(count for count in answers.values() if count > 1) + 1) / (total + 1)
        share = len(told) / len(short)
        pairs = sum(math.comb(count, 2) for count in Counter(short.values()).values())
        by_luck = expected_share(pairs, len(short), len(answers))
        beyond = share > max(twins, by_luck) + MOST_SHARED
        return told if beyond and _tail(len(told), len(short), twins) < _CHANCE else []


def _tail(least: int, n: int, p: float) -> float:
    """The chance of `least` or more of `n`, each with the chance p in (0, 1]."""
    if p >= 1:
        return 1.0
    odds = math.log(p) - math.log1p(-p)
    every = math.lgamma(n + 1) + n * math.log1p(-p)
    return sum(
        math.exp(every + k * odds - math.lgamma(k + 1) - math.lgamma(n - k + 1))
        for k in range(least, n + 1)
    )


def _owned(pairs: Iterable[tuple[_Key, str]]) -> dict[_Key, str]:
    """What one row alone has -> its id."""
    owners: dict[_Key, set[str]] = defaultdict(set)
    for key, name in pairs:
        owners[key].add(name)
    return {key: next(iter(names)) for key, names in owners.items() if len(names) == 1}


def _runs(parts: Sequence[str], length: int) -> Iterator[_Run]:
    return (tuple(parts[place : place + length]) for place in range(len(parts) - length + 1))


def _words_of(row: Mapping[str, Any], name: str) -> list[str]:
    return words(row[name]) if isinstance(row.get(name), str) else []


def _texts(row: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """The texts under `names`, also those inside lists and objects, in one form."""
    waiting = [row[name] for name in names if name in row]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield " ".join(words(value))
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _answer_of(row: Mapping[str, Any]) -> str:
    """The right answer in one form; "" where there is none."""
    name = next((name for name in _ANSWERS if isinstance(row.get(name), str)), "")
    return " ".join(_words_of(row, name))
