"""A command below a Claude Code session in which no hook of the project runs: it says so first.

Claude Code reads hooks of the folder it was started in. Below the project, or above it in a
monorepo, its commands and agents are listed and none of its hooks runs; nothing of ours runs then
but what the session calls.
"""

from collections.abc import Mapping

from harness.cli.output import tell
from harness.cli.person import session_of
from harness.domain.statuses import HooksMode
from harness.guard.agent_files import hooks_mode, left_receipts
from harness.judge.identity import CALLER
from harness.ledger.project import Project


def warn_unguarded(project: Project, environment: Mapping[str, str]) -> None:
    """On stderr, so that the answer stays as it is. Hooks leave a receipt when a session begins."""
    session = session_of(environment)
    if session is None or environment.get(CALLER):
        return
    if left_receipts(project.layout.shared("receipts"), session):
        return  # a person's command, one of the loop or the judge, or a guarded session's
    if hooks_mode(project.settings) is HooksMode.NONE:
        return
    tell(
        "harness: no hook of this project guards this session: Claude Code was started in another"
        f" folder, or with hooks off. A person ends it and starts `claude` in {project.layout.root}"
        " (or `harness claude` there)."
    )
