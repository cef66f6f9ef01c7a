"""Open a project read-only. Apart from `changing`, so that such commands do not load renderers."""

from pathlib import Path

from harness.cli.output import environment
from harness.cli.unguarded import warn_unguarded
from harness.ledger.project import Project, open_project


def reading(start: Path) -> Project:
    """The project that contains `start`; a context manager."""
    project = open_project(start, environment(), read_only=True)
    warn_unguarded(project, environment())
    return project
