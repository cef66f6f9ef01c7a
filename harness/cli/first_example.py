"""`harness init --example`: a small repository of the package, ready to try."""

import sys
from importlib.util import find_spec
from pathlib import Path

from harness.cli.changing import changing
from harness.cli.first_start import Given, Start
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.install.examples import copy_example, example
from harness.install.install import Installation
from harness.plans.approval import approve_plan
from harness.settings import find_root


def example_given(name: str, root: Path) -> Given:
    """Copies the example. Raises NotFoundError, RefusedError (also project_above); UsageError
    (packages_missing) without what its programs import."""
    chosen = example(name)
    _require_no_project(root)
    lacking = [module for module in chosen.needs if find_spec(module) is None]
    if lacking:
        raise UsageError(
            f"The example {name} needs {', '.join(lacking)}, which {sys.executable} does not have.",
            hint=f"`{sys.executable} -m pip install {' '.join(map(_package, lacking))}`.",
            code="packages_missing",
        )
    copy_example(chosen, root)
    return Given(
        table=root / chosen.data,
        label=chosen.label,
        metric=chosen.metric,
        group=None,
        time=None,
        folder=chosen.project,
    )


def _require_no_project(root: Path) -> None:
    """Approving the example's plan is no decision about somebody's project."""
    try:
        above = find_root(root)
    except NotFoundError:
        return
    if above != root:
        raise RefusedError(
            f"{root} belongs to the harness project {above}; an example is a project of its own.",
            hint="Make an empty folder outside it, and call it there.",
            code="project_above",
        )


def _package(module: str) -> str:
    return {"sklearn": "scikit-learn"}.get(module, module)


def approve_example(done: Installation, start: Start, *, by: str) -> bool:
    """The plan, the table and the programs of an example are the package's own: nobody else wrote
    them, so the person who asks for it approves it."""
    with changing(done.place.layout.root, new_config=True) as opened:
        approve_plan(opened, done.place.layout.root / start.plan, by=by)
    return True
