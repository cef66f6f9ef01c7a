"""Problems of a specification or a result: each is a field with expected, actual, reason."""

from collections.abc import Sequence
from dataclasses import (
    asdict,
    dataclass,
)
from typing import Any

from harness.domain.words import some
from harness.errors import UsageError

_LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class FieldProblem:
    field: str
    expected: str
    actual: str
    reason: str

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.field}: expected {self.expected}, found {self.actual}: {self.reason}"


def field_problem(field: str, expected: Any, actual: Any, reason: str) -> FieldProblem:
    """Values that are not text are shown as Python shows them; long ones are cut."""
    return FieldProblem(
        field=_shown(field), expected=_shown(expected), actual=_shown(actual), reason=_text(reason)
    )


class FieldProblems(list[FieldProblem]):
    """All problems found so far."""

    def add(self, field: str, expected: Any, actual: Any, reason: str) -> None:
        self.append(field_problem(field, expected, actual, reason))


class SpecificationError(UsageError):
    """A specification with problems; `problems` holds them all."""

    code = "specification_invalid"

    def __init__(
        self,
        problems: Sequence[FieldProblem],
        what: str = "specification",
        hint: str = "Correct all of them.",
    ) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(map(str, self.problems)).rstrip(".")
        super().__init__(
            f"The {what} has {some(len(self.problems), 'problem')}: {listed}.",
            hint=hint,
        )


def _shown(value: Any) -> str:
    return _text(value if isinstance(value, str) else repr(value))[:_LONGEST]


def _text(value: str) -> str:
    # The name of a file or a tensor may contain a lone surrogate, which UTF-8 cannot encode.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
