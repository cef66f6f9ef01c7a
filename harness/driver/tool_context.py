"""What the agents' tools do: one session's view of the project.

Calling a tool twice does no harm, because a session that was cut is played again from its start.
"""

import shlex
from collections.abc import Callable
from typing import Any

import anyio

from harness.artifacts.experiment_files import claim_of
from harness.contract.roles import Role
from harness.decisions.claimed import claim_notes
from harness.decisions.diagnoses import record_diagnosis, record_methods, undiagnosed_runs
from harness.decisions.experiments import ensure_hypothesis, open_experiment, record_result
from harness.decisions.hand_offs import write_hand_off
from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, SandboxKind, Split
from harness.driver.program_context import LONGEST_WAIT_S, ProgramToolContext
from harness.driver.run_news import RunNews, last_metrics
from harness.driver.session import Pulse
from harness.driver.supervisors import Supervisor, is_going
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.evaluation.score import summarise
from harness.evaluation.scores import counted_evaluations
from harness.gates.open_alarms import as_news, open_by_run
from harness.ledger.project import Project

REGISTER_SECONDS = 60.0
POLL_SECONDS = 0.1
STARTS = 3


class ToolContext(ProgramToolContext):
    """One session's view of the project, with the calls that the session has made."""

    def __init__(
        self,
        project: Project,
        *,
        session: str,
        role: Role,
        sandbox: SandboxKind,
        experiment: str | None = None,
        parent: str | None = None,
        by: str | None = None,
        pulse: Pulse | None = None,
        on_change: Callable[[], None] = lambda: None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.project, self.session, self.role, self.sandbox = project, session, role, sandbox
        self.current, self._parent = experiment, parent
        self.by = by or role.name
        """Who acts, as facts and result.md say it."""
        self.pulse, self._on_change, self._tell = pulse or Pulse(), on_change, tell
        self.supervisor: Supervisor | None = None
        """Of the runs that this session started, the newest."""
        self.done: set[str] = set()
        """Names of the tools that answered without an error."""

    async def open_experiment(self, arguments: dict[str, Any]) -> dict[str, Any]:
        opened = self._given(arguments["hypothesis"], arguments["rationale"]) or open_experiment(
            self.project,
            hypothesis=arguments["hypothesis"],
            rationale=arguments["rationale"],
            parent=self._parent,
            by=self.by,
            session=self.session or None,
        )
        self.current = opened.id
        self._on_change()
        layout = self.project.layout
        return {
            "experiment_id": opened.id,
            "status": opened.status,
            "parent": opened.parent,
            "project": str(layout.root),
            "folder": str(layout.experiment(opened.id)),
            "write": [str(layout.experiment(opened.id, item.name)) for item in self.role.owns],
        }

    async def start_run(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        if experiment.status in CLOSED_EXPERIMENTS:
            raise RefusedError(
                f"{experiment.id} is {experiment.status}; expected an open experiment.",
                hint="Open a new one with open_experiment.",
                code="experiment_closed",
            )
        before = {run.id for run in self.project.ledger.runs(experiment.id)}
        if not self._going(experiment.id):
            words = shlex.split(arguments["command"]) if arguments.get("command") else None
            await self._start(experiment.id, words, before)
            self._on_change()
        report = self._report(experiment.id)
        problem = self.supervisor.problem() if self.supervisor is not None else None
        if problem is not None and not self._registered_any(experiment.id, before):
            raise UsageError(problem["message"], hint=problem["hint"], code=problem["code"])
        return {**report, "next": "Call run_status with wait_seconds until its state is ended."}

    async def run_status(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        wait = min(float(arguments.get("wait_seconds", 0)), LONGEST_WAIT_S)
        news = RunNews(self.project, experiment.id, self._tell, alarms=False)
        raised = len(self.project.ledger.alarms(experiment.id))

        def ended() -> bool:
            """Or an alarm came, which the caller hears of at once."""
            news.look()
            return (
                not self._going(experiment.id)
                or len(self.project.ledger.alarms(experiment.id)) > raised
            )

        await self._until(ended, wait)
        self._on_change()
        return self._report(experiment.id)

    async def evaluation_report(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        evaluations = counted_evaluations(
            self.project, experiment.id, self.project.plan(), Split.VALIDATION
        )
        score = summarise(evaluations)
        if score is None:
            raise NotFoundError(
                f"{experiment.id} has no recomputed score on validation.",
                hint=(
                    "Record the result without claims, and say in the shortfalls why there is no"
                    " score."
                ),
                code="no_score",
            )
        return {
            "experiment_id": experiment.id,
            **score.plain(),
            "claim": claim_of(score.mean),
            "tiers": {str(tier): value for tier, value in self.project.objective().tiers.items()},
            "findings": [finding for item in evaluations for finding in item.findings],
        }

    async def record_result(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        path = record_result(
            self.project,
            experiment.id,
            claims=arguments.get("claims", {}),
            summary=arguments["summary"],
            shortfalls=arguments.get("shortfalls", []),
            by=self.by,
        )
        findings = claim_notes(self.project, experiment.id, arguments.get("claims", {}))
        return {
            "experiment_id": experiment.id,
            "written": str(path),
            "findings": [finding.plain() for finding in findings],
        }

    async def record_diagnosis(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        path = record_diagnosis(
            self.project,
            experiment.id,
            run=arguments["run"],
            what_happened=arguments["what_happened"],
            mechanism=arguments["mechanism"],
            alarms=arguments["alarms"],
            candidates=arguments["candidates"],
            by=self.by,
        )
        self._on_change()
        left = undiagnosed_runs(self.project, experiment.id)
        return {"experiment_id": experiment.id, "written": str(path), "runs_left": left}

    async def record_methods(self, arguments: dict[str, Any]) -> dict[str, Any]:
        experiment = self._experiment(arguments)
        path = record_methods(self.project, experiment.id, methods=arguments["methods"], by=self.by)
        return {"experiment_id": experiment.id, "written": str(path)}

    async def hand_off(self, arguments: dict[str, Any]) -> dict[str, Any]:
        named = self._experiment(arguments).id if arguments.get("experiment_id") else self.current
        written = write_hand_off(
            self.project,
            text=arguments["text"],
            by=self.by,
            session=self.session or None,
            experiment=named,
        )
        self._on_change()
        layout = self.project.layout
        return {
            "experiment_id": written.experiment,
            "at": written.at,
            "page": layout.relative(layout.hand_off(written.at, written.hash)),
        }

    def _experiment(self, arguments: dict[str, Any]) -> Experiment:
        identifier = arguments.get("experiment_id") or self.current
        if identifier is None:
            raise UsageError(
                "No experiment is open.", hint="Call open_experiment first.", code="no_experiment"
            )
        if self.current is not None and identifier != self.current:
            raise RefusedError(
                f"This session works on {self.current}, not on {identifier}.",
                hint=f"Leave experiment_id out or pass {self.current}.",
                code="other_experiment",
            )
        return self.project.ledger.experiment(identifier)

    def _given(self, hypothesis: str, rationale: str) -> Experiment | None:
        """The session's own experiment when it has one already; its hypothesis stands."""
        if self.current is None:
            return None
        known = self.project.ledger.experiment(self.current)
        if " ".join(hypothesis.split()) != known.hypothesis:
            raise RefusedError(
                f"{known.id} is this session's experiment; its hypothesis is {known.hypothesis!r}.",
                hint=(
                    "Go on with it: call open_experiment with that hypothesis, word for word, or"
                    " start_run."
                ),
                code="experiment_undecided",
            )
        ensure_hypothesis(self.project, known, rationale)
        return known

    async def _start(self, experiment: str, words: list[str] | None, before: set[str]) -> None:
        """Start a supervisor; one that was killed before it registered a run is started again:
        nothing was begun."""
        for _ in range(STARTS):
            self.supervisor = Supervisor.start(
                self.project, experiment, words, sandbox=self.sandbox, session=self.session or None
            )
            await self._until(lambda: self._registered(experiment, before), REGISTER_SECONDS)
            if self._registered_any(experiment, before) or not self.supervisor.killed():
                return

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Until `condition` or the time has passed; the session's watchdog knows that we are at
        work."""
        with self.pulse.working(), anyio.move_on_after(seconds):
            while not condition():
                await anyio.sleep(POLL_SECONDS)

    def _registered(self, experiment: str, before: set[str]) -> bool:
        """A new run is there, or the supervisor has ended without one."""
        ended = self.supervisor is not None and self.supervisor.ended()
        return ended or self._registered_any(experiment, before)

    def _registered_any(self, experiment: str, before: set[str]) -> bool:
        return any(run.id not in before for run in self.project.ledger.runs(experiment))

    def _going(self, experiment: str) -> bool:
        ours = self.supervisor is not None and not self.supervisor.ended()
        return ours or is_going(self.project, experiment)

    def _report(self, experiment: str) -> dict[str, Any]:
        runs = self.project.ledger.runs(experiment)
        layout = self.project.layout
        return {
            "experiment_id": experiment,
            "state": "running" if self._going(experiment) else "ended" if runs else "not started",
            "seeds_wanted": self.project.objective().seeds,
            "runs": [
                {
                    "run": run.id,
                    "seed": run.seed,
                    "status": run.status,
                    "reason": run.reason,
                    "seconds": run.seconds,
                    "last_row": last_metrics(self.project, run),
                    "stderr": layout.relative(layout.run(run.experiment, run.id, "stderr")),
                }
                for run in runs
            ],
            "alarms": [
                {
                    "run": run,
                    "code": alarm.code,
                    "rows": [point.row for point in alarm.evidence] or [alarm.row],
                    "said": as_news(f"{experiment}/{run}", alarm),
                }
                for run, alarms in open_by_run(self.project, experiment).items()
                for alarm in alarms
            ],
            "findings": [finding for run in runs for finding in run.findings],
        }
