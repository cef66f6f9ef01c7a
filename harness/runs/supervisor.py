"""The supervisor of one run: register, start, follow its rows, end, collect.

`train` and `posttrain run` both stand on `supervise`; what differs between them is a SupervisedRun.
"""

import hashlib
import secrets
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from harness.artifacts.metrics_file import Row
from harness.artifacts.resources import Summary
from harness.clock import parse_iso
from harness.detectors.alarm import Alarm
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.ledger.facts import RunStarted
from harness.ledger.project import Project
from harness.process import identity
from harness.runs.checkpoint_watch import CheckpointWatch, Seen
from harness.runs.closing import read_all, rows_of, write_run_json
from harness.runs.endings import (
    Ending,
    Interrupts,
    by_alarm,
    cancelled,
    leftovers,
    lost_at_launcher,
    never_started,
)
from harness.runs.environment import (
    child_environment,
    make_private,
    prepare_private,
    remove_private,
    run_variables,
)
from harness.runs.launchers.launcher import (
    Handle,
    KilledProcesses,
    Launcher,
    RunCommand,
    beside,
    open_launcher,
)
from harness.runs.notify import AlarmNotices, Notifier
from harness.runs.resources import ResourceLog
from harness.runs.run_tail import Event, Progress, RunAlarms, RunRows, RunTail, alarm_event
from harness.runs.workspace import Workspace, remove_workspace

_POLL_SECONDS = 0.1
_OUTPUT_SECONDS = 5.0


class HasRun(Protocol):
    @property
    def run(self) -> Run: ...


Report = TypeVar("Report", bound=HasRun)


@dataclass(frozen=True, kw_only=True)
class RegisteredRun:
    run: Run
    token: str
    """Its link token."""
    began: float | None
    """The file system's time when its folder was made; None for a resumed run."""


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    run: Run
    began: float | None
    rows: RunRows
    cut: Ending | None
    """How the harness ended it, or why it never started; None when it ended by itself."""
    exit_code: int | None = None
    seconds: float | None = None
    findings: list[Finding] = field(default_factory=list)
    """What the supervisor saw of its rows and of its processes."""
    resources: Summary = field(default_factory=dict)
    told: Mapping[str, Seen] = field(default_factory=dict)
    """What it saw of the checkpoints that the rows tell of, by the name that they give."""

    def measured(self, ending: Ending) -> Ending:
        """`ending` with what was measured."""
        findings = [*ending.findings, *self.findings]
        return replace(
            ending,
            exit_code=self.exit_code,
            seconds=self.seconds,
            findings=findings,
            resources=self.resources,
        )


@dataclass(kw_only=True)
class SupervisedRun(ABC, Generic[Report]):
    """What differs between the runs of a plan and those of a training program."""

    project: Project
    sandbox: Sandbox
    python: Mapping[str, Any]
    """Of the interpreter, as `ask_python` gives it."""
    inherited: Mapping[str, str]
    on_event: Event
    grace: float
    """Seconds between TERM and KILL."""
    placed: Mapping[str, Any] = field(default_factory=dict)
    """Where an engine put this supervisor: see `placement.Order.placed`."""
    at_signal: Callable[[], Ending] = cancelled
    """How it ends at a signal."""

    @property
    def launcher(self) -> str:
        """Its name, as the facts have it."""
        return str(self.placed.get("engine") or beside(self.project.settings))

    @abstractmethod
    def register(self) -> RegisteredRun:
        """A new run with a new folder, or the next attempt of one that stopped."""

    @abstractmethod
    def shown(self) -> str:
        """What its first event says beside the run's name."""

    def prepare(self, run: Run) -> None:
        """Called when the run is registered, before anything else of it."""

    def guarded(self) -> AbstractContextManager[None]:
        """Entered before the run starts, left when it has ended."""
        return nullcontext()

    @abstractmethod
    def words(self, run: Run) -> list[str]:
        """The command, not confined yet."""

    @abstractmethod
    def variables(self, run: Run) -> dict[str, str]:
        """Beside those that every run gets."""

    @abstractmethod
    def workspace(self, run: Run) -> Workspace:
        """A new one, in which the command is started."""

    @abstractmethod
    def confinement(self, workspace: Workspace) -> Confinement:
        """Beside the run's folder and its private one, where it writes."""

    @abstractmethod
    def memory_bytes(self) -> int | None: ...

    def take(self, rows: list[Row]) -> None:
        """The run's own rows as they come, those of earlier attempts first."""

    def news(self, row: int) -> tuple[dict[str, Any], Alarm | None] | None:
        """What else is to be told now: an event, and a note of the run; `row` is its newest."""
        return None

    @abstractmethod
    def limit(self, elapsed: float, rows: RunRows) -> Ending | None:
        """How the run ends if it has to end now, `elapsed` seconds after its start."""

    @abstractmethod
    def close(self, ended: EndedRun) -> Report:
        """Judge what the run left, collect it, record its end."""


def new_token() -> tuple[str, str]:
    """A link token and its SHA-256. The ledger gets only the hash, so a reader of the ledger cannot
    forge rows of the run."""
    token = secrets.token_hex(16)
    return token, hashlib.sha256(token.encode()).hexdigest()


class _Looks(NamedTuple):
    """What looks at a run while it goes on."""

    tail: RunTail
    alarms: RunAlarms
    watch: CheckpointWatch
    progress: Progress
    used: ResourceLog
    notices: AlarmNotices


def supervise(task: SupervisedRun[Report], interrupts: Interrupts) -> Report:
    """One run from its registration to its recorded end. A run that was stopped by a signal is
    closed as cancelled; then KeyboardInterrupt is raised. ConfigError when config.toml names a
    launcher that is not there."""
    # The order survives kill -9 at any point. A run is a fact before anything of it starts, and its
    # processes carry the token whose hash is in that fact, so `recover` finds and ends them even
    # when their handle was never recorded.
    launcher = open_launcher(task.launcher)
    with interrupts.held():
        registered = task.register()
        announce(task, registered)
        try:
            task.prepare(registered.run)
            with task.guarded():
                ended = _start_and_follow(task, registered, launcher, interrupts)
            # Before its end is a fact: until then `recover` finds what a killed supervisor left.
            remove_workspace(task.project.layout, registered.run.token)
            report = task.close(ended)
        finally:
            remove_workspace(task.project.layout, registered.run.token)
            remove_private(registered.run.token)
        announce_end(task, report.run)
        if report.run.status is RunStatus.CANCELLED:
            raise KeyboardInterrupt
        return report


def _start_and_follow(
    task: SupervisedRun[Report],
    registered: RegisteredRun,
    launcher: Launcher,
    interrupts: Interrupts,
) -> EndedRun:
    project, run, began = task.project, registered.run, registered.began
    clock = project.clock
    write_run_json(project.layout, run)
    alarms, rows = RunAlarms(project, run), rows_of(project.layout, run)
    tail = RunTail(rows, clock, parse_iso(run.registered_at))
    watch = CheckpointWatch(project, run)
    for before in tail.before():
        task.take(before)
        alarms.take(before)
        watch.take_earlier(before)
    notifier = Notifier(project, lambda text: task.on_event({"kind": "notify", "text": text}))
    notices = AlarmNotices(notifier, tail.rows.run)
    progress = Progress(task.on_event, tail.rows)
    try:
        handle = launcher.submit(_command(task, registered))
        handle |= {"placed": dict(task.placed)} if task.placed else {}
    except (OSError, HarnessError) as error:
        return EndedRun(run=run, began=began, rows=tail.rows, cut=never_started(error))
    start, cut = clock.monotonic(), None
    place = project.layout.run(run.experiment, run.id, "resources")
    used = ResourceLog(place, clock)
    looks = _Looks(tail, alarms, watch, progress, used, notices)
    # From here on something runs. Whatever happens, a signal or an error of ours, it is ended, with
    # all that it started, before the run is closed.
    try:
        run = _record_start(task, run, handle)
        with interrupts.heeded():
            cut = _follow(task, run, launcher, handle, looks)
    except KeyboardInterrupt:
        cut = task.at_signal()
    finally:
        seconds = clock.monotonic() - start
        killed = _end(task, run, launcher, handle)
    # One more look, after everything has ended: it takes what was written since the last one.
    for last in chain(tail.look(), [[]]):
        _tell(task, last, looks)
        watch.take(last)
        progress.note(last)
    progress.end()
    notifier.close()
    return EndedRun(
        run=run,
        began=began,
        rows=read_all(project.layout, run),
        cut=cut,
        exit_code=launcher.poll(handle, seconds=0),
        seconds=seconds,
        findings=[*leftovers(run, killed.left), *tail.findings()],
        resources=used.end(),
        told=watch.end(),
    )


def _command(task: SupervisedRun[Report], registered: RegisteredRun) -> RunCommand:
    run, layout = registered.run, task.project.layout
    folder, private = layout.run(run.experiment, run.id), make_private(run.token)
    workspace = task.workspace(run)
    variables = run_variables(
        project=workspace.seen,
        experiment=run.experiment,
        run=run.id,
        run_dir=folder,
        token=registered.token,
        seed=run.seed,
        attempt=run.attempt,
    )
    imports = workspace.imports(task.python["project_paths"])
    variables |= task.variables(run)
    variables |= prepare_private(private, python=task.python, imports=imports)
    confined = task.confinement(workspace)
    confined = replace(confined, writable=(*confined.writable, private))
    words = workspace.words(task.words(run))
    environment = child_environment(task.inherited, private, variables)
    return RunCommand(
        argv=task.sandbox.command(
            words, confined, environment=environment, memory_bytes=task.memory_bytes()
        ),
        cwd=workspace.seen,
        environment=environment,
        stdout=layout.run(run.experiment, run.id, "stdout"),
        stderr=layout.run(run.experiment, run.id, "stderr"),
        append=registered.began is None,
    )


def _record_start(task: SupervisedRun[Report], run: Run, handle: Handle) -> Run:
    project = task.project
    project.ledger.append(
        RunStarted(
            experiment=run.experiment,
            run=run.id,
            job={"launcher": task.launcher, "handle": handle},
            supervisor=identity(),
        )
    )
    run = project.ledger.run(run.experiment, run.id)
    write_run_json(project.layout, run)
    return run


def _follow(
    task: SupervisedRun[Report],
    run: Run,
    launcher: Launcher,
    handle: Handle,
    looks: _Looks,
) -> Ending | None:
    """Watch until the command ends by itself (None) or has to be ended (how)."""
    start = task.project.clock.monotonic()
    tail, alarms = looks.tail, looks.alarms
    while launcher.poll(handle, seconds=_POLL_SECONDS) is None:
        # Once more without rows: news and records come without them, too.
        for new in chain(tail.look(), [[]]):
            looks.watch.take(new)
            _tell(task, new, looks)
            looks.progress.note(new)
        looks.used.look(lambda: launcher.processes(handle))
        elapsed = task.project.clock.monotonic() - start
        looks.progress.show(elapsed)
        if (fatal := alarms.fatal()) is not None:
            return by_alarm(run, fatal)
        if (ending := task.limit(elapsed, tail.rows)) is not None:
            return ending
        if launcher.lost(handle):
            return lost_at_launcher()
    return None


def _tell(task: SupervisedRun[Report], rows: list[Row], looks: _Looks) -> None:
    """What new rows raise, and what else is new."""
    alarms, notices = looks.alarms, looks.notices
    task.take(rows)
    for alarm in alarms.take(rows):
        task.on_event(alarm_event(notices.run, alarm))
        notices.tell(alarm.plain())
    if (told := task.news(looks.tail.rows.count)) is not None:
        event, note = told
        if note is not None:
            alarms.add([note])
            notices.tell(note.plain())
        task.on_event(event)


def _end(
    task: SupervisedRun[Report], run: Run, launcher: Launcher, handle: Handle
) -> KilledProcesses:
    """TERM, KILL after the grace; then the same for what an ended command left running."""
    if launcher.poll(handle, seconds=0) is None:
        launcher.signal(handle, signal.SIGTERM)
        launcher.poll(handle, seconds=task.grace)
    killed = launcher.kill(handle, run.token)
    launcher.output(handle, seconds=_OUTPUT_SECONDS)
    return killed


# Events


def announce(task: SupervisedRun[Report], registered: RegisteredRun) -> None:
    run = registered.run
    name = f"{run.experiment}/{run.id}"
    how = "started" if registered.began is not None else f"goes on, attempt {run.attempt}"
    text = f"{name}  {task.shown()}: {how}"
    task.on_event({"kind": "run", "run": name, "seed": run.seed, "text": text})


def announce_end(task: SupervisedRun[Report], run: Run) -> None:
    name = f"{run.experiment}/{run.id}"
    text = f"{name}  {run.status}: {run.reason}"
    task.on_event({"kind": "run", "run": name, "status": run.status.value, "text": text})
