"""The one way in which a verb opens a project to change it: what is derived from the ledger is
written at its end."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.cli.output import environment
from harness.errors import HarnessError
from harness.ledger.project import Project, open_project
from harness.rendering.derived import write_derived


@contextlib.contextmanager
def changing(
    start: Path, *, restore: bool = False, new_config: bool = False, deriving: bool = False
) -> Iterator[Project]:
    """The project that contains `start`, open for writing; see `open_project` for the arguments and
    what is raised.

    In a clone whose facts are not imported yet a verb that is to record something is refused
    (facts_not_imported); `deriving` says that this one records nothing.

    Also a verb that fails or is interrupted may have recorded facts: they are shown, as far as the
    ledger lets it, and its own error stays the answer.
    """
    with open_project(start, environment(), restore=restore, new_config=new_config) as project:
        if not (restore or deriving):
            project.ledger.require_imported()
        try:
            yield project
        except BaseException:
            with contextlib.suppress(HarnessError, OSError):
                write_derived(project)
            raise
        write_derived(project)
