"""What one step of an experiment comes to. The long verbs print it; `try` and `keep` go through
several."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from harness.cli.output import emit


@dataclass(frozen=True, kw_only=True)
class Answer:
    document: dict[str, Any]
    """What `--json` prints."""
    lines: Sequence[str]
    """For a person; the last ones say what leads on."""
    ok: bool = True
    """False: the answer is no, exit code 1."""


def give(answer: Answer, *, as_json: bool) -> NoReturn:
    """Print the answer and exit with its code."""
    emit(answer.document, *answer.lines, as_json=as_json)
    sys.exit(0 if answer.ok else 1)
