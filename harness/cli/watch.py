"""`harness watch`: follow the project's runs, or the logs of other programs."""

import contextlib
import functools
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from harness.artifacts.resources import in_words
from harness.cli.output import emit, environment, json_option, project_option, tell
from harness.cli.reading import reading
from harness.cli.tmux_pane import split
from harness.clock import SystemClock, parse_iso
from harness.domain.ids import names_experiment
from harness.domain.plain_text import one_line
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.errors import NotFoundError, UsageError
from harness.foreign.formats import find_logs
from harness.gates.alarms import standing_diagnosis, unanswered
from harness.ledger.project import Project
from harness.views.console import PlainConsole
from harness.views.dashboard import draw
from harness.views.follow import MOST_RUNS, Follower
from harness.views.follow_experiment import ExperimentFollower, watched
from harness.views.follow_logs import LogFollower
from harness.views.tables import number, render_table
from harness.views.watching import POLL_SECONDS, in_lines, on_screen, read_all, screen

_START_SECONDS = 30.0
_LONGEST_NAME = 80
_SAY_NOTHING = (RunStatus.LOST, RunStatus.CANCELLED)


@click.command("watch")
@click.argument("target", nargs=-1)
@click.option("--once", is_flag=True, help="Show the current state and exit.")
@click.option(
    "--wait",
    is_flag=True,
    help="Of a training that was just started: wait up to 30 seconds for its first run.",
)
@click.option(
    "--follow", is_flag=True, help="Keep watching: the next experiment, or a log without end."
)
@click.option(
    "--until-alarm",
    is_flag=True,
    help="End at an alarm without a diagnosis, or with the training; rows are not printed.",
)
@click.option(
    "--split", "beside", is_flag=True, help="Open it in a tmux pane beside this one and exit."
)
@click.option(
    "--plain",
    is_flag=True,
    help="Print lines, not a screen; the default when stdout is not a terminal.",
)
@project_option
@json_option
def command(
    target: tuple[str, ...],
    once: bool,
    wait: bool,
    follow: bool,
    until_alarm: bool,
    beside: bool,
    plain: bool,
    project: Path,
    as_json: bool,
) -> None:
    """Follow TARGET until its training ends: an experiment (default: the active one) or log files.

    Several logs or folders of logs are shown side by side. Formats: JSON lines, CSV, TSV,
    trainer_state.json, printed steps and TensorBoard event files. Exit 1 when the newest run of a
    seed did not complete. --json prints only the final state, as one object. --until-alarm, for an
    experiment, waits half a minute for a training to begin: run in the background beside it, its
    end wakes a session that waits.
    """
    if until_alarm:
        if as_json or once or follow or beside or plain:
            raise click.UsageError("--until-alarm takes no other option than --project.")
        _until_alarm(project, target)
    if beside:
        options = {"--wait": wait, "--follow": follow, "--plain": plain}
        words = [*target, *(name for name, asked in options.items() if asked)]
        pane = split([*words, "--project", str(project.resolve())], environment())
        emit({"pane": pane}, f"watching in pane {pane}", as_json=as_json)
        return
    console = PlainConsole(environment(), file=sys.stdout, highlight=False)
    lines = plain or as_json or once or not console.is_terminal or console.is_dumb_terminal
    screened = None if lines else console
    if not target or (len(target) == 1 and names_experiment(target[0])):
        _watch_project(
            project,
            target[0] if target else None,
            screened,
            once=once,
            starts=wait,
            follow=follow,
            as_json=as_json,
        )
    follower = LogFollower(_logs(target), SystemClock())
    _follow(follower, screened, once=once, ends=not follow, quiet=as_json)
    if screened is None:
        text = "\n".join(line.plain for line in draw(follower, width=console.width))
        emit(follower.document(), text, as_json=as_json)
    sys.exit(0 if once or follower.succeeded() else 1)


def _until_alarm(place: Path, target: tuple[str, ...]) -> None:
    """Wait for what a session must hear of, then exit the program."""
    if len(target) > 1 or (target and not names_experiment(target[0])):
        raise UsageError(
            "--until-alarm follows one experiment, no log.",
            hint="`harness watch EXP --until-alarm`, e.g. with exp-0001.",
            code="no_experiment",
        )
    with reading(place) as opened:
        name = watched(opened, target[0] if target else None)
        _await_run(opened, name)
        follower = ExperimentFollower(opened, name)
        said = functools.partial(tell, error=False)
        asks = functools.partial(_unexplained, opened, follower)
        if in_lines(follower, opened.clock, said, until=asks):
            said(
                f"next: let the agent training-checker explain the alarm of {name}, then start"
                f" `harness watch {name} --until-alarm` again: it tells of the next one"
            )
            sys.exit(0)
        emit({}, *_text(follower.document()), as_json=False)
        sys.exit(0 if follower.succeeded() else 1)


def _unexplained(project: Project, follower: ExperimentFollower) -> bool:
    """Whether an alarm stands that diagnosis.md does not name;
    how far a run is that goes on is not asked."""
    views = [view for view in follower.views() if view.status not in _SAY_NOTHING]
    shown = {view.picture.name: view.picture.alarms for view in views}
    raised = {run: alarms for run, alarms in shown.items() if alarms}
    if not raised:
        return False
    rows = dict.fromkeys(raised, sys.maxsize)
    return bool(unanswered(standing_diagnosis(project, follower.experiment), raised, rows))


def _watch_project(
    place: Path,
    experiment: str | None,
    console: Console | None,
    *,
    once: bool,
    starts: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Follow, then exit the program; with `follow` only an interrupt ends it. `starts`: what
    trains may not have begun yet."""
    with reading(place) as opened:
        if starts:
            _await_run(opened, experiment)
        done: set[str] = set()
        while True:
            name = _experiment(
                opened, experiment, console, waits=follow or console is not None, done=done
            )
            follower = ExperimentFollower(opened, name)
            _follow(follower, console, once=once, ends=True, quiet=as_json)
            document = follower.document()
            if not follow or once:
                break
            done.add(name)
            experiment = None
            if console is None:
                emit(document, *_text(document), as_json=as_json)
        if console is None:
            emit(document, *_text(document), as_json=as_json)
        sys.exit(0 if once or follower.succeeded() else 1)


def _await_run(project: Project, named: str | None) -> None:
    """Return when a run goes on, ended just now, or none came in time."""
    clock = project.clock
    end = clock.monotonic() + _START_SECONDS
    while clock.monotonic() < end:
        with contextlib.suppress(NotFoundError):
            if any(_is_new(project, run) for run in project.ledger.runs(watched(project, named))):
                return
        clock.sleep(POLL_SECONDS)


def _is_new(project: Project, run: Run) -> bool:
    if run.status not in FINAL_RUNS or run.ended_at is None:
        return run.status not in FINAL_RUNS
    return project.clock.now() - parse_iso(run.ended_at) < timedelta(seconds=_START_SECONDS)


def _experiment(
    project: Project, named: str | None, console: Console | None, *, waits: bool, done: set[str]
) -> str:
    """The experiment to follow; with `waits`, wait for the first that is not in `done`."""
    try:
        experiment = watched(project, named)
        if experiment not in done:
            return experiment
    except NotFoundError:
        if named is not None or not waits:
            raise
    message = (
        f"waiting for {'the next' if done else 'the first'} run at"
        f" {project.layout.project('checklist').parent}"
    )
    if console is None:
        tell(message)
        return _wait(project, done)
    with screen(console) as show:
        show([Text(message, style="yellow")])
        return _wait(project, done)


def _wait(project: Project, done: set[str]) -> str:
    while True:
        project.clock.sleep(POLL_SECONDS)
        try:
            experiment = watched(project, None)
        except NotFoundError:
            continue
        if experiment not in done:
            return experiment


def _follow(
    follower: Follower, console: Console | None, *, once: bool, ends: bool, quiet: bool
) -> None:
    clock = SystemClock()
    if once:
        read_all(follower)
    elif console is not None:
        on_screen(console, follower, clock, ends=ends)
    else:
        in_lines(
            follower,
            clock,
            (lambda _line: None) if quiet else lambda line: tell(line, error=False),
            ends=ends,
        )


def _logs(targets: Sequence[str]) -> list[Path]:
    """The log files to follow. Raises UsageError for a target that is no path and no experiment."""
    paths = [Path(text) for text in targets]
    for path, text in zip(paths, targets, strict=True):
        if not _exists(path) and os.sep not in text and not path.suffix:
            raise UsageError(
                f"{text!r} is neither a log file nor an experiment id.",
                hint=(
                    "Name an experiment, e.g. exp-0001, or a log; write a log that does not exist"
                    " yet as ./run.log."
                ),
                code="no_log",
            )
    return [log for path in paths for log in find_logs(path, most=MOST_RUNS)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that no disk takes
        raise UsageError(
            f"{one_line(str(path), _LONGEST_NAME)} cannot be read: {error.strerror}.",
            hint="Name a log file, or a folder of logs.",
            code="log_unreadable",
        ) from error


def _text(document: dict[str, Any]) -> list[str]:
    columns = ("run", "seed", "status", "epochs", "metrics", "seconds", "reason")
    rows = [
        (
            run["run"],
            run["seed"],
            (
                run["status"]
                if run["alive"] or run["status"] in FINAL_RUNS
                else f"{run['status']} (unsupervised)"
            ),
            _epoch(run),
            "  ".join(f"{name} {number(value)}" for name, value in run["metrics"].items()) or "-",
            "-" if run["seconds"] is None else f"{run['seconds']:.1f}",
            run["reason"] or "-",
        )
        for run in sorted(document["runs"], key=lambda one: one["status"] in FINAL_RUNS)
    ]
    alarms = [
        f"{run['run']}  alarm  {alarm['severity']} {alarm['code']}  {one_line(alarm['message'])}"
        for run in document["runs"]
        for alarm in run["alarms"]
    ]
    head = (
        f"{document['experiment']}: {document['state']} ({document['evidence']}, not recomputed)"
    )
    used = [
        f"{run['run']}  used  {'  '.join(in_words(run['resources']))}"
        for run in document["runs"]
        if run["resources"]
    ]
    notes = [
        f"{run['run']}  note  {one_line(note)}"
        for run in document["runs"]
        for note in run["notes"]
    ]
    table = render_table("", columns, rows) if rows else "no runs yet"
    return [head, table, *used, *notes, *alarms]


def _epoch(run: dict[str, Any]) -> str:
    """How many are done, e.g. "30 of 30"."""
    if run["epoch"] is None:
        return "-"
    done, total = run["epoch"] + 1, run["total_epochs"]
    return f"{done} of {total}" if total is not None and total >= done else f"{done}"
