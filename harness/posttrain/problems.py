"""What is wrong with a specification or a result: all of it, each as field, expected, actual,
reason."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import UsageError

_LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Problem:
    field: str
    expected: str
    actual: str
    reason: str

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.field}: expected {self.expected}, found {self.actual}: {self.reason}"


def problem(field: str, expected: Any, actual: Any, reason: str) -> Problem:
    """With values that are not text as Python shows them, cut where they are long, and only text
    that UTF-8 holds."""
    return Problem(
        field=_shown(field), expected=_shown(expected), actual=_shown(actual), reason=_text(reason)
    )


def _shown(value: Any) -> str:
    return _text(value if isinstance(value, str) else repr(value))[:_LONGEST]


def _text(value: str) -> str:
    """A name of a file or a tensor may hold half a surrogate pair."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


class SpecificationError(UsageError):
    """A specification with problems; `problems` holds them all."""

    code = "specification_invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        told = "; ".join(str(item) for item in self.problems)
        super().__init__(
            f"The specification has {len(self.problems)} problems: {told}.",
            hint="Correct all of them.",
        )
