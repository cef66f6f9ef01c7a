"""Asking a teacher: one protocol for all, answers that were given before, a limit in dollars."""

from collections.abc import Callable, Mapping
from dataclasses import (
    asdict,
    dataclass,
    field,
)
from pathlib import Path
from typing import Any, Protocol

from harness.domain.prices import Price
from harness.errors import UsageError
from harness.files import canonical_json, sha256_bytes
from harness.teachers.lines import append_line, object_of
from harness.traces.file_lines import file_lines

_OVERHEAD = 64
"""Tokens of a request beside its text: the roles and the template."""


@dataclass(frozen=True, kw_only=True)
class Question:
    text: str
    longest: int
    """Tokens of an answer."""

    @property
    def sha256(self) -> str:
        return sha256_bytes(canonical_json([self.text, self.longest]))


@dataclass(frozen=True, kw_only=True)
class Answer:
    text: str
    cut: bool
    """Whether it reached `longest`."""
    input_tokens: int | None
    output_tokens: int | None
    seconds: float


def always(_lost: int) -> bool:
    """Of a teacher that is not paid for."""
    return True


class Teacher(Protocol):
    """A model that answers. `lost` counts requests that may have cost something and gave nothing:
    each is taken to have cost what it could."""

    model: str
    lost: int

    def answer(self, question: Question, may_try: Callable[[int], bool] = always) -> Answer | None:
        """`may_try` is asked before each try, with how many of this question's were lost; None
        where it says no. Raises RunError when there is no answer."""
        ...

    def close(self) -> None: ...


@dataclass(kw_only=True)
class Spent:
    """What the questions of one command took."""

    asked: int = 0
    recorded: int = 0
    """Answered from the file."""
    lost: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    usd: float = 0.0


class AnswerFile:
    """Answers that were given, one a line: a cache, and what a replay answers from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """Lines that are no answer; the last one may be torn."""
        self._answers: dict[tuple[str, str], Answer] = {}
        for line in file_lines(path) if path.exists() else ():
            self._take(line)

    def _take(self, line: bytes) -> None:
        row = object_of(line)
        try:
            answer = Answer(**row["answer"])
            self._answers[str(row["model"]), str(row["question"])] = answer
        except (KeyError, TypeError):
            self.damaged += bool(line.strip())

    @property
    def models(self) -> list[str]:
        return sorted({model for model, _ in self._answers})

    def find(self, model: str, question: Question) -> Answer | None:
        return self._answers.get((model, question.sha256))

    def keep(self, model: str, question: Question, answer: Answer) -> None:
        """On the disk before it is used: it was paid for."""
        row = {"model": model, "question": question.sha256, "answer": asdict(answer)}
        append_line(self.path, canonical_json(row))
        self._answers[model, question.sha256] = answer


@dataclass(kw_only=True)
class Asking:
    """Questions to one teacher, within a limit."""

    teacher: Teacher
    answers: AnswerFile
    price: Price | None
    limit: float | None
    """Dollars; None where nothing is paid for."""
    spent: Spent = field(default_factory=Spent)
    stopped: str = ""

    def __post_init__(self) -> None:
        if self.price is not None and self.limit is None:
            raise UsageError(
                f"Answers of {self.teacher.model} cost money, and no limit is given.",
                hint="Give --spend-limit in US dollars.",
                code="spend_limit_missing",
            )

    def answer(self, question: Question) -> Answer | None:
        """None where the next try could pass the limit: it is not made."""
        found = self.answers.find(self.teacher.model, question)
        if found is not None:
            self.spent.recorded += 1
            return found
        worst = self._worst(question)
        before, spent = self.teacher.lost, self.spent.usd

        def may_try(lost: int) -> bool:
            return self.limit is None or spent + (lost + 1) * worst <= self.limit

        try:
            answer = self.teacher.answer(question, may_try) if may_try(0) else None
        finally:
            lost = self.teacher.lost - before
            self.spent.lost += lost
            self.spent.usd += lost * worst
        if answer is None:
            self.stopped = "the spend limit"
            return None
        self.answers.keep(self.teacher.model, question, answer)
        self._add(answer, worst)
        return answer

    def _worst(self, question: Question) -> float:
        """A token is a byte at least."""
        if self.price is None:
            return 0.0
        most = len(question.text.encode()) + _OVERHEAD
        return self.price.worst_case(most, question.longest)

    def _add(self, answer: Answer, worst: float) -> None:
        spent = self.spent
        spent.asked += 1
        spent.seconds += answer.seconds
        spent.input_tokens += answer.input_tokens or 0
        spent.output_tokens += answer.output_tokens or 0
        if self.price is None:
            return
        counted = answer.input_tokens is not None and answer.output_tokens is not None
        usage = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
        spent.usd += self.price.cost(usage) if counted else worst

    def told(self, pairs: int) -> Mapping[str, Any]:
        """For the manifest: what it took, and that a pair."""
        spent = self.spent
        each = max(1, pairs)
        return {
            "model": self.teacher.model,
            "priced": self.price is not None,
            **asdict(spent),
            "usd_a_pair": spent.usd / each,
            "seconds_a_pair": spent.seconds / each,
            "stopped_by": self.stopped or None,
        }
