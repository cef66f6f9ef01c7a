"""Rules as data: what a prior enforces once it is active, in a small closed vocabulary.

| form | holds |
|---|---|
| deny command PATTERN | hooks deny a command whose words match; `*` stands for any text |
| deny path PATTERN | hooks deny to change what matches, or lies below; `*` is one component |
| config KEY below NUMBER | the gate fails a config.yaml whose KEY is not below NUMBER |
| config KEY above NUMBER | the same, above |
| file PATH | the gate fails an experiment without this file in its folder |
"""

import math
from enum import StrEnum

from harness.domain.late import Late, dataclass
from harness.errors import UsageError

FORMS = (
    "deny command PATTERN",
    "deny path PATTERN",
    "config KEY below NUMBER",
    "config KEY above NUMBER",
    "file PATH",
)
_LONGEST = 300


class Form(StrEnum):
    COMMAND = "deny command"
    PATH = "deny path"
    BELOW = "below"
    ABOVE = "above"
    FILE = "file"

    @property
    def denies(self) -> bool:
        """Whether hooks hold it; the gate holds the others."""
        return self in (Form.COMMAND, Form.PATH)


@dataclass(frozen=True, kw_only=True)
class Rule(Late):
    form: Form
    subject: str
    """A pattern, a key with dots between its parts, or a path in the experiment's folder."""
    bound: float | None = None

    @property
    def words(self) -> str:
        """As `read_rule` reads it."""
        if self.form in (Form.BELOW, Form.ABOVE):
            return f"config {self.subject} {self.form} {self.bound!r}"
        return f"{self.form} {self.subject}"

    def holds(self, value: object) -> bool:
        """Of a value of config.yaml; one that is no number holds nothing."""
        if isinstance(value, bool) or not isinstance(value, int | float) or self.bound is None:
            return False
        return value < self.bound if self.form is Form.BELOW else value > self.bound


def read_rule(text: str) -> Rule:
    """Raises UsageError (rule_unreadable) with the forms that there are."""
    words = text.split()
    if len(text) > _LONGEST or len(text.splitlines()) > 1:
        raise _unreadable(text)
    match words:
        case ["deny", "command" | "path" as what, _, *_]:
            subject = text.split(maxsplit=2)[2].strip()
            return _denial(Form(f"deny {what}"), subject, text)
        case ["config", key, "below" | "above" as side, number]:
            return Rule(form=Form(side), subject=key, bound=_number(number, text))
        case ["file", path] if _within(path):
            return Rule(form=Form.FILE, subject=path)
    raise _unreadable(text)


def _denial(form: Form, subject: str, text: str) -> Rule:
    """A pattern of wildcards alone would deny everything."""
    if not subject.strip("*?/. "):
        raise _unreadable(text)
    if form is Form.PATH and not _within(subject):
        raise _unreadable(text)
    return Rule(form=form, subject=subject)


def _within(path: str) -> bool:
    return not path.startswith(("/", "~")) and ".." not in path.split("/")


def _number(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise _unreadable(text) from None
    if not math.isfinite(value):
        raise _unreadable(text)
    return value


def _unreadable(text: str) -> UsageError:
    return UsageError(
        f"{text!r:.80} is no rule that can be enforced.",
        hint=f"The forms are: {'; '.join(FORMS)}. Paths are relative to the project.",
        code="rule_unreadable",
    )
