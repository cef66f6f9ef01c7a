"""Open the engine of a command, or of a loop whose trainings share it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from harness.ledger.project import Project
from harness.process import judge_environment
from harness.runs.launchers.engine import Engine, open_engine


@contextlib.contextmanager
def engine_for(project: Project, asked: str | None) -> Iterator[Engine | None]:
    """What --launcher names, closed at the end. Raises as `open_engine`."""
    settings, state = project.settings, project.layout.state
    engine = open_engine(settings, asked, os.environ, state)
    try:
        yield engine
    finally:
        if engine is not None:
            engine.close()


@contextlib.contextmanager
def launching(project: Project, asked: str | None) -> Iterator[Project]:
    """`project` as a loop gets it: its supervisors are started with the launcher that was asked
    for, and what they share is there meanwhile. Raises as `open_engine`."""
    with engine_for(project, asked) as engine:
        if engine is not None:
            engine.start(judge_environment(os.environ))
        chosen = asked or project.settings.launcher
        yield replace(project, settings=replace(project.settings, launcher=chosen))
