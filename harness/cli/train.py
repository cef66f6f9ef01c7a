"""`harness train EXP [-- COMMAND]`: the only way to start training."""

import contextlib
import functools
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.answer import Answer, give
from harness.cli.changing import changing
from harness.cli.chosen import EXPERIMENT, chosen
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import (
    WholeNumber,
    environment,
    json_option,
    print_event,
    project_option,
    sandbox_for,
)
from harness.cli.person import require_starter, session_of
from harness.decisions.lessons import candidate_line, note_candidates
from harness.domain.findings import as_text
from harness.domain.ids import names_experiment
from harness.domain.launch_options import SKYPILOT
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.errors import HarnessError, UsageError
from harness.judge.identity import end_with
from harness.ledger.project import Project
from harness.rendering.policy_snapshot import write_policy_snapshot
from harness.rendering.standing import next_step
from harness.runs.environment import machine_slot
from harness.runs.experiment_config import read_values
from harness.runs.launchers.launcher import engine_for
from harness.runs.launchers.skypilot import task_of, write_task
from harness.runs.many_processes import ranks_of
from harness.runs.placement import caller, read_order
from harness.runs.take import take
from harness.runs.train import TrainReport, train, train_order


class _WithCommand(click.Command):
    """What stands after `--` is the training command, also where no experiment is named."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(context, args[:at])
        after = args[at + 1 :]
        # The judge of `harness claude` hands all words over after `--`.
        if context.params["experiment"] is None and after and names_experiment(after[0]):
            context.params["experiment"] = after.pop(0)
        context.params["training_command"] += tuple(after)
        return rest


set_option = click.option(
    "--set",
    "values",
    multiple=True,
    metavar="KEY=VALUE",
    help="For config.yaml, which training reads as `log.config`.",
)


launcher_option = click.option(
    "--launcher",
    default=None,
    metavar="NAME",
    help="Where seeds train: local, slurm, ray or torchrun; default: what config.toml says.",
)


@click.command("train", cls=_WithCommand)
@EXPERIMENT
@click.argument("training_command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--session", default=None, hidden=True, help="The agent session that asked for this run."
)
@click.option(
    "--resume",
    is_flag=True,
    help="Resume interrupted runs from their last checkpoint.",
)
@click.option(
    "--from",
    "sources",
    metavar="EXP[,EXP...]",
    default=None,
    help="Take the kept checkpoints of these experiments; nothing is trained.",
)
@click.option(
    "--registered",
    is_flag=True,
    hidden=True,
    help="With the code that its newest run was started with.",
)
@click.option(
    "--slots",
    type=WholeNumber(1, 64),
    default=1,
    metavar="N",
    help="One of N equal parts of the machine, for N trainings at once: a GPU each, or cores.",
)
@click.option(
    "--replicas",
    type=WholeNumber(min=1),
    default=None,
    metavar="N",
    help="Start N of the command, which average by DiLoCo.",
)
@launcher_option
@click.option(
    "--write",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="With --launcher skypilot: its task file; nothing is sent, nothing is trained.",
)
@click.option(
    "--placed", default=None, hidden=True, help="The order of one seed, that an engine was given."
)
@click.option(
    "--below", type=int, default=None, hidden=True, help="The process that it ends with."
)
@set_option
@isolation_options
@project_option
@json_option
def command(
    experiment: str | None,
    training_command: tuple[str, ...],
    session: str | None,
    resume: bool,
    registered: bool,
    slots: int,
    sources: str | None,
    replicas: int | None,
    launcher: str | None,
    written: Path | None,
    placed: str | None,
    below: int | None,
    values: tuple[str, ...],
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Train EXPERIMENT (default: the open one) under supervision, once per seed of the plan.

    E.g. `harness train exp-0001 -- python train.py`; the default command is the plan's
    training.entry. Without a config.yaml one is written: the command, its options and --set.
    --resume continues a seed's interrupted run as a further attempt, if command, code, data,
    sandbox and the run's files are unchanged; its checkpoints are where the command left them.
    --from, for a change of predict alone, takes the final checkpoints of another experiment, or of
    this one's earlier code; of several it makes a folder with one member each, for an ensemble.
    --replicas: docs/diloco.md; --launcher: docs/launchers.md. Exit 1 when a run did not complete.
    """
    if placed is not None:
        give(order_answer(project, placed, below), as_json=as_json)
        return
    if written is not None or launcher == SKYPILOT:
        give(
            task_answer(project, experiment, training_command, launcher, written), as_json=as_json
        )
        return
    _require_one(sources, training_command, bool(resume or replicas))
    given = read_values(values)
    with changing(project) as opened:
        require_starter(environment(), opened.settings.state)
        experiment = chosen(opened, experiment, "harness train")
        used = isolation(opened, sandbox, reason, verb="train", experiment=experiment)
        answer = train_answer(
            opened,
            experiment,
            list(training_command) or None,
            sandbox=used,
            session=session,
            values=given,
            resume=resume,
            registered=registered,
            slots=slots,
            replicas=replicas,
            launcher=launcher,
            sources=_names(sources),
            quiet=as_json,
        )
    give(answer, as_json=as_json)


def _names(sources: str | None) -> list[str] | None:
    return None if sources is None else [name.strip() for name in sources.split(",")]


def _require_one(sources: str | None, words: Sequence[str], more: bool) -> None:
    """Of what is asked for. Raises UsageError."""
    if sources is not None and (words or more):
        raise UsageError(
            "--from trains nothing: it takes no --resume, no --replicas and no command.",
            hint=f"`harness train EXP --from {sources}`, or leave --from out.",
        )
    if words and names_experiment(words[0]):
        raise UsageError(
            f"{words[0]} is no training command: one experiment is trained at a time.",
            hint=f"`harness train {words[0]}` by itself, when the other has ended.",
        )


def train_answer(
    project: Project,
    experiment: str,
    words: Sequence[str] | None,
    *,
    sandbox: Sandbox,
    values: Mapping[str, str],
    quiet: bool,
    session: str | None = None,
    resume: bool = False,
    registered: bool = False,
    slots: int = 1,
    replicas: int | None = None,
    launcher: str | None = None,
    sources: Sequence[str] | None = None,
) -> Answer:
    """Train, or with `sources` take their checkpoints. Progress goes to stderr unless `quiet`."""
    asked: dict[str, Any] = {
        "sandbox": sandbox,
        "session": session or session_of(environment()),
        "values": values,
        "on_event": functools.partial(told, project, quiet=quiet),
    }
    if sources is not None:
        report = take(project, experiment, sources, inherited=os.environ, **asked)
    else:
        with (
            engine_for(project, launcher) as engine,
            machine_slot(project.layout, slots if engine is None else 1, os.environ) as inherited,
        ):
            report = train(
                project,
                experiment,
                words,
                resume=resume,
                registered=registered,
                replicas=replicas,
                ranks=ranks_of(project.settings, launcher),
                inherited=inherited,
                engine=engine,
                **asked,
            )
    return _answer(project, experiment, report)


def task_answer(
    start: Path,
    experiment: str | None,
    words: Sequence[str],
    launcher: str | None,
    path: Path | None,
) -> Answer:
    """SkyPilot's task file for the experiment, written to `path`."""
    if path is None or launcher != SKYPILOT:
        raise UsageError(
            "--launcher skypilot and --write FILE go together: the harness sends no task.",
            hint=f"`harness train EXP --launcher {SKYPILOT} --write task.yaml`.",
        )
    with changing(start, deriving=True) as opened:
        name = chosen(opened, experiment, "harness train")
        options = opened.settings.launchers.get(SKYPILOT, {})
        task = task_of(opened, name, list(words) or None, options)
        write_task(path, task)
    send = f"`sky launch {path}` sends it; the harness did not."
    return Answer(document={"written": str(path), "task": task}, lines=[send], ok=True)


def order_answer(start: Path, name: str, below: int | None) -> Answer:
    """Train the seed that an order in the state directory names, and end with process `below`."""
    lost = threading.Event() if below is None else end_with(below)
    with changing(start, again=True) as opened:
        order, folder = read_order(opened.layout, name)
        opened = opened.called_by(caller(order))
        report = train_order(
            opened,
            order,
            folder,
            # Not that of the command line: whoever knows the name could write it.
            sandbox=sandbox_for(order.sandbox, required=False),
            on_event=functools.partial(told, opened, quiet=False),
            inherited=os.environ,
            is_lost=lost.is_set,
        )
        return _answer(opened, order.experiment, report)


def _answer(project: Project, experiment: str, report: TrainReport) -> Answer:
    went_wrong = not report.ok or bool(report.findings)
    candidates = note_candidates(project, experiment) if went_wrong else []
    document = {
        "experiment": experiment,
        "ok": report.ok,
        "runs": [_shown(run) for run in report.runs],
        "findings": [finding.plain() for finding in report.findings],
    }
    lines = [f"{run.id}  seed {run.seed}  {run.status}  {run.reason}" for run in report.runs]
    lines += [as_text(report.findings), *map(candidate_line, candidates)]
    lines.append(next_step(project, experiment).line)
    return Answer(
        document=document,
        lines=[line for line in lines if line],
        ok=report.ok,
    )


def told(project: Project, event: dict[str, Any], *, quiet: bool) -> None:
    """Hooks and the status line read the snapshot: it says that a run began, and how it ended."""
    if event["kind"] == "run":
        with contextlib.suppress(HarnessError, OSError):  # the training goes on without it
            write_policy_snapshot(project)
    if not quiet:
        print_event(event)


def _shown(run: Run) -> dict[str, Any]:
    names = ("seed", "status", "rows", "reason")
    return {"run": run.id} | {name: getattr(run, name) for name in names}
