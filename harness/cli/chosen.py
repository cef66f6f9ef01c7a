"""The experiment that a command is about: the named one, else the only one of this working tree
that is not decided."""

import click

from harness.cli.output import tell
from harness.errors import UsageError
from harness.ledger.project import Project

EXPERIMENT = click.argument("experiment", required=False)


def chosen(project: Project, named: str | None, line: str) -> str:
    """The id; one that was not named is said on stderr. `line`: the command without it. Raises
    UsageError (no_experiment) unless exactly one is open."""
    if named is not None:
        return named
    found = [one.id for one in project.undecided()]
    if len(found) == 1:
        tell(f"{found[0]} is the open experiment")
        return found[0]
    there = f"open are {', '.join(found)}" if found else "none is open"
    way = "" if found else " `harness experiment new --hypothesis TEXT` opens one."
    raise UsageError(
        f"`{line}` needs an experiment: {there}.",
        hint=f"Name one, e.g. `{line} {found[0] if found else 'exp-0001'}`.{way}",
        code="no_experiment",
    )
