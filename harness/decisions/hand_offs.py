"""Hand-offs: what a session tells the next one before it ends."""

from harness.decisions.experiments import undecided_experiment
from harness.ledger.facts import HandOff, HandOffWritten
from harness.ledger.project import Project


def write_hand_off(
    project: Project, *, text: str, by: str, session: str | None, experiment: str | None = None
) -> HandOff:
    """Record `text` for the next session's briefing; about the experiment that is not decided
    unless one is named.

    Raises UsageError for a text that is empty or too long, NotFoundError for an unknown experiment.
    """
    if experiment is None:
        current = undecided_experiment(project)
        experiment = current.id if current else None
    said = text.strip() if isinstance(text, str) else text  # of an agent's tool it is any JSON
    fact = HandOffWritten(by=by, session=session, text=said, experiment=experiment)
    stored = project.ledger.append(fact)
    return HandOff(**fact.body(), at=stored.at, hash=stored.hash)
