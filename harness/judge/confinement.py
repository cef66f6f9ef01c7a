"""What the sandbox of a person's own session reaches, and what no agent may change in it."""

import os
import shutil
from collections.abc import (
    Iterable,
    Iterator,
    Sequence,
)
from pathlib import Path

from harness.domain.sandbox import Confinement
from harness.domain.statuses import CLOSED_EXPERIMENTS
from harness.guard.control_files import (
    in_place,
    protected_paths,
)
from harness.guard.own_python import judge_below
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.settings import main_worktree

MOST_CLOSED = 200
_RESOLVER = Path("/etc/resolv.conf")
"""Often a link into /run, which does not exist inside."""


def kept_from_agents(project: Project, plan: ApprovedPlan | None) -> tuple[Path, ...]:
    """What exists in the project and no agent may change. Raises RefusedError for a link out."""
    layout = project.layout
    kept = [layout.project(name) for name in ("config_toml", "memory", "checklist")]
    # A plan that nobody approved yet is a draft: the session may write it.
    approved = dict.fromkeys(version.path for version in project.ledger.plans())
    kept += [layout.root / path for path in approved]
    # The folder .harness itself too, so that no agent can create what is missing in it.
    kept += [layout.project("config_toml").parent, *protected_paths(layout.root)]
    kept += judge_below(layout.root)
    splits = plan.splits.values() if plan is not None else ()
    tables = [layout.root / split["path"] for split in splits if split.get("path")]
    kept += [path for path in tables if path.resolve().is_relative_to(layout.root)]
    # Only the newest 200: each is a mount and part of a command line of limited length. The policy
    # protects all. The folder above must stay writable for the experiment that the session opens.
    closed = project.ledger.experiments(newest=MOST_CLOSED, statuses=CLOSED_EXPERIMENTS)
    kept += [layout.experiment(experiment.id) for experiment in closed]
    return in_place(layout.root, kept)


def session_confinement(
    project: Project,
    plan: ApprovedPlan | None,
    *,
    home: Path,
    states: Path,
    config: Path,
    program: Path,
    folder: Path,
    private: Iterable[Path],
    plugins: Iterable[Path] = (),
) -> Confinement:
    """The project writable but for what no agent may change, HOME read-only but for the CLI's
    `config`, `plugins` to be read, none of the harness's `states`, the network as it is."""
    layout, settings = project.layout, project.settings
    layout.experiments.mkdir(parents=True, exist_ok=True)
    root = layout.root
    around = [
        *_around(home, (states, layout.state)),
        *(path for plugin in plugins for path in _around(plugin, (states, layout.state))),
        *(Path(item) for item in settings.readable),
        *(hop.parent for hop in (program, program.resolve())),
        folder,
        *_main_tree(root),
    ]
    if settings.interpreter and os.path.isabs(settings.interpreter):
        around.append(Path(settings.interpreter).parent.parent)
    if _RESOLVER.resolve().is_relative_to("/run"):
        around.append(_RESOLVER.resolve())
    checklist = layout.project("checklist")
    kept = _mounted([path for path in kept_from_agents(project, plan) if path != checklist])
    return Confinement(
        writable=(root, *in_place(root, [layout.experiments]), config, *private),
        read_only=(
            *kept,
            *(path for path in around if path.exists() and path != config),
        ),
        hidden=(layout.state,),
        network=True,
    )


def _main_tree(root: Path) -> list[Path]:
    """Of a linked worktree the main one: its repository and its guards' snapshot are there."""
    found = (main_worktree(folder) for folder in (root, *root.parents))
    return [main for main in found if main is not None][:1]


def found_cli() -> Path | None:
    """The Claude Code CLI that the person has on PATH."""
    found = shutil.which("claude")
    return None if found is None else Path(found)


def _mounted(kept: Sequence[Path]) -> list[Path]:
    """Without files in folders that are kept whole: a mount of its own would go on showing the old
    file when it is replaced outside."""
    folders = [path for path in kept if path.is_dir()]
    return [
        path
        for path in kept
        if path.is_dir() or not any(path.is_relative_to(folder) for folder in folders)
    ]


def _around(folder: Path, hidden: tuple[Path, ...]) -> Iterator[Path]:
    """`folder` without what is hidden: itself, or what lies beside the hidden in it."""
    if not any(secret.is_relative_to(folder) for secret in hidden):
        yield folder
        return
    if folder in hidden:
        return
    for path in sorted(folder.iterdir()):
        if not path.is_symlink() or path.exists():
            yield from _around(path, hidden) if path.is_dir() else [path]
