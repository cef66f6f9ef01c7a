"""Open a project for writing; on exit, write the files that derive from its ledger."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.audit.open_sessions import see_sessions
from harness.cli.output import environment
from harness.cli.person import caller_of
from harness.cli.unguarded import warn_unguarded
from harness.errors import HarnessError
from harness.ledger.project import Project, open_project
from harness.rendering.derived import write_derived


@contextlib.contextmanager
def changing(
    start: Path,
    *,
    restore: bool = False,
    new_config: bool = False,
    deriving: bool = False,
    again: bool = False,
    sees_sessions: bool = True,
) -> Iterator[Project]:
    """The project that contains `start`, open for writing; arguments and errors as `open_project`.

    A clone whose facts are not imported yet refuses commands that record facts
    (facts_not_imported); `deriving` says that this command records none. `again`: it opened the
    project before, and what there is to warn of was said. The others record which
    plain sessions worked here, before and after: the command may have opened the experiment.
    Without `sees_sessions` they do not: what it records lowers no grade.
    """
    with open_project(start, environment(), restore=restore, new_config=new_config) as opened:
        project = opened.called_by(caller_of(environment(), opened.settings.state))
        if not again:
            warn_unguarded(project, environment())
        records = not (restore or deriving)
        if records:
            project.ledger.require_imported()
        sees = records and sees_sessions
        if sees:
            see_sessions(project, environment())
        try:
            yield project
        except BaseException:
            # A failed or interrupted command may have recorded facts: the pages must show them,
            # and a second error while writing them must not hide the first.
            with contextlib.suppress(HarnessError, OSError):
                _closed(project, sees=sees)
            raise
        _closed(project, sees=sees)


def _closed(project: Project, *, sees: bool) -> None:
    if sees:
        see_sessions(project, environment())
    write_derived(project)
