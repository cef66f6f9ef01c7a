"""Names of experiments and runs. Numbers come from the ledger and are never reused."""

import re
from collections.abc import Callable

from harness.errors import NotFoundError

_EXPERIMENT = re.compile(r"exp-(\d{4,})\Z")
_NAMED = re.compile(r"exp-[0-9]+\Z")
_RUN = re.compile(r"run-(\d{2,})\Z")


def experiment_id(number: int) -> str:
    """1 -> "exp-0001"; at least four digits."""
    return f"exp-{number:04d}"


def run_id(number: int) -> str:
    """1 -> "run-01"; at least two digits."""
    return f"run-{number:02d}"


def experiment_number(identifier: str) -> int:
    """The inverse of `experiment_id`. Raises ValueError, e.g. for "exp-1"."""
    return _number(_EXPERIMENT, identifier, experiment_id)


def is_experiment_id(text: str) -> bool:
    """Whether it is spelled as the ledger spells it: "exp-0001", and neither "exp-1" nor
    "exp-00001"."""
    try:
        experiment_number(text)
    except ValueError:
        return False
    return True


def names_experiment(text: str) -> bool:
    """Whether somebody means an experiment by it, also as "exp-1": then it is no idea, plan, log or
    training command."""
    return _NAMED.match(text) is not None


def no_experiment(identifier: str) -> NotFoundError:
    form = "" if is_experiment_id(identifier) else "; an id looks like exp-0001"
    return NotFoundError(
        f"There is no experiment {identifier!r}{form}.",
        hint="`harness experiment list` shows those that exist.",
    )


def run_number(identifier: str) -> int:
    """The inverse of `run_id`. Raises ValueError."""
    return _number(_RUN, identifier, run_id)


def _number(pattern: re.Pattern[str], identifier: str, spell: Callable[[int], str]) -> int:
    match = pattern.match(identifier)
    if match is None or spell(int(match[1])) != identifier:
        raise ValueError(f"not an id: {identifier!r}")
    return int(match[1])
