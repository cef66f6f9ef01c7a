"""What `harness try` asks a person on a terminal before it begins."""

import sys
from collections.abc import Mapping, Sequence

from harness.cli.person import require_yes, stdin_is_terminal
from harness.domain.plain_text import one_line
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project
from harness.plans.approved import plan_seeds
from harness.runs.continued import Due, due
from harness.runs.experiment_config import unnamed
from harness.runs.train_job import admitted, code_now


def ask_to_go_on(
    project: Project, experiment: str, words: Sequence[str] | None, sandbox: Sandbox
) -> None:
    """A person on a terminal, who may not know what a call without an idea does. Raises
    RefusedError (not_confirmed)."""
    if not _on_terminal():
        return
    record, approved = project.ledger.experiment(experiment), project.plan()
    wanted = len(plan_seeds(approved, record))
    runs = counted_runs(project.ledger.runs(experiment))
    done = sum(run.status is RunStatus.COMPLETED for run in runs)
    trained = f"{done} of its {wanted} seeds are trained"
    begins = {
        Due.TRAIN: f"it trains the seeds that lack a run of the code as it is ({trained})",
        Due.TAKE: f"it trains nothing ({trained}) and takes predict as it is now",
        Due.NOTHING: f"it trains nothing ({trained})",
    }[due(project, experiment, admitted(project, approved, words, sandbox=sandbox).argv)]
    shown = (
        f"No idea was given, and {experiment} is open: {one_line(record.hypothesis)}\n"
        f"To go on with it: {begins}, scores what has no score, and asks the gate.\n"
        'A new idea is another call: `harness try "IDEA"`.'
    )
    require_yes(shown, f"Go on with {experiment}?")


def ask_of_values(
    project: Project, words: Sequence[str] | None, values: Mapping[str, str], sandbox: Sandbox
) -> None:
    """Before an experiment is opened for values that training can hardly read; who is not on a
    terminal is told when it begins. Raises RefusedError (not_confirmed)."""
    if not _on_terminal():
        return
    approved = project.plan()
    argv = admitted(project, approved, words, sandbox=sandbox).argv
    told = unnamed(values, argv, code_now(project, approved), project.layout.objects)
    if told is not None:
        require_yes(told, "Open the experiment and train?")


def _on_terminal() -> bool:
    return stdin_is_terminal() and sys.stdout.isatty()
