"""A scenario in a fresh clone, as CI has it: the approval that came with git is enough, and nobody
has to type anything."""

from pathlib import Path

from harness.cli.changing import changing
from harness.cli.output import environment, tell
from harness.cli.person import require_person
from harness.errors import NotFoundError
from harness.ledger.exchange import import_facts
from harness.ledger.project import open_project
from harness.plans.rehearsal import rehearse
from harness.rendering.derived import write_derived

_WAITING = "facts_not_imported"
_READS_IN = "ledger import"


def in_clone(start: Path) -> None:
    """Read the facts in, where this is a clone that has none of them yet, and play under the plan
    that they approve. Raises RefusedError (human_verb) below an agent: it may have written them."""
    if not _waits(start):
        return
    require_person(_READS_IN, environment(), needs_terminal=False)
    with changing(start, restore=True) as opened:
        imported = import_facts(opened.ledger, opened.layout.facts_dir)
        approved = opened.plan()
        plan = rehearse(opened)
        write_derived(opened, everything=True)
    tell(
        f"a clone: read {imported} facts; {approved.name} version {approved.version} was approved"
        f" by {approved.by}. The scenario is played as {plan.name}: it counts for nothing else."
    )


def _waits(start: Path) -> bool:
    try:
        with open_project(start, environment(), read_only=True) as opened:
            return opened.ledger.facts_wait()
    except NotFoundError as error:
        return error.code == _WAITING
