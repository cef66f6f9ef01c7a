"""The experiment that a command is about: the named one, else the only one of this working tree
that is not decided."""

import re
import shlex

import click

from harness.cli.output import tell
from harness.domain.ids import experiment_id, is_experiment_id
from harness.errors import NotFoundError, UsageError
from harness.ledger.project import Project

_NUMBER = re.compile(r"(?:exp(?:eriment)?)?[-_ ]?0*([1-9]\d{0,3})", re.IGNORECASE)
EXPERIMENT = click.argument("experiment", required=False)


def chosen(project: Project, named: str | None, line: str) -> str:
    """The id; one that was not named is said on stderr. `line`: the command without it. Raises
    UsageError for what is no id, and (no_experiment) unless exactly one is open."""
    if named is not None:
        require_id(named, line)
        if not project.ledger.experiments(newest=1):
            raise NotFoundError(
                f"There is no experiment {named}: none exists yet.",
                hint='`harness try "IDEA"` opens the first one, trains it and asks its gate.',
            )
        return named
    found = [one.id for one in project.undecided()]
    if len(found) == 1:
        tell(f"{found[0]} is the open experiment")
        return found[0]
    there = f"open are {', '.join(found)}" if found else "none is open"
    way = "" if found else ' `harness try "IDEA"` opens one.'
    if found and line.startswith("harness try"):
        way = ' `harness try "IDEA"` opens another.'
    raise UsageError(
        f"`{line}` needs an experiment: {there}.",
        hint=f"Name one, e.g. `{line} {found[0] if found else 'exp-0001'}`.{way}",
        code="no_experiment",
    )


def require_id(text: str, line: str) -> None:
    """Raises UsageError for a text that has not the form of an id."""
    if is_experiment_id(text):
        return
    number = _NUMBER.fullmatch(text)
    if number:
        meant = f"`{line} {experiment_id(int(number[1]))}`"
    elif line == "harness train":
        meant = f"`harness try {shlex.quote(text)}`, which opens an experiment for an idea"
    elif text.endswith(".md"):
        meant = f"`harness plan check {shlex.quote(text)}`, which looks at a plan"
    else:
        meant = "one of those that `harness experiment list` names"
    raise UsageError(
        f"`{line}` takes the id of an experiment, and {text!r} is none; expected e.g. exp-0001.",
        hint=f"You may mean {meant}.",
    )
