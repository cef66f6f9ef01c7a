"""The one way in which a verb opens a project to change it: what is derived from the ledger is written at its end."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.cli.output import environment
from harness.errors import HarnessError
from harness.project.context import Project, open_project
from harness.rendering.derived import write_derived


@contextlib.contextmanager
def changing(start: Path, *, restore: bool = False, new_config: bool = False) -> Iterator[Project]:
    """The project that contains `start`, open for writing; see `open_project` for the arguments and what is raised.

    Also a verb that fails or is interrupted may have recorded facts: they are shown, as far as the ledger lets it, and
    its own error stays the answer.
    """
    with open_project(start, environment(), restore=restore, new_config=new_config) as project:
        try:
            yield project
        except BaseException:
            with contextlib.suppress(HarnessError, OSError):
                write_derived(project)
            raise
        write_derived(project)
