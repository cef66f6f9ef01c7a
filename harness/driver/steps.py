"""Does each step of the loop: in the harness itself, or by one session of one role."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from harness.audit.open_sessions import see_sessions
from harness.contract.profiles import DEFAULT, PROFILES, Profile
from harness.decisions.experiments import MOVES, decide
from harness.decisions.lessons import candidate_line, note_candidates
from harness.decisions.phases import pass_phase, require_due
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import DecisionKind, Verdict, spoken
from harness.driver.branching import branch_code, record_choice
from harness.driver.messages import (
    build_message,
    diagnose_message,
    judge_message,
    phase_message,
    read_briefing,
    scout_message,
)
from harness.driver.remembered import briefing_for, remembered
from harness.driver.role_sessions import RoleSessions
from harness.driver.run_news import RunNews
from harness.driver.supervisors import Supervisor, is_going, is_held
from harness.evaluation.experiment import evaluate_experiment
from harness.evaluation.released import released_score
from harness.gates.alarms import open_by_run
from harness.gates.check import check_gate, require_validation_passed
from harness.ledger.project import Project
from harness.loop.steps import (
    Build,
    CheckGate,
    Decide,
    Diagnose,
    Evaluate,
    JudgeResult,
    PassPhase,
    Recover,
    Scout,
    Settle,
    Step,
    Train,
    Wait,
    WorkOnPhase,
)
from harness.model_gateway.gateway import Gateway
from harness.plans.approved import plan_of
from harness.runs.closing import recover

BY = "harness"
POLL_SECONDS = 0.2
BUILDER, ORACLE, CHECKER, SCOUT = "model-builder", "oracle", "training-checker", "research-scout"

OnProgress = Callable[[Mapping[str, Any]], None]


class StepRunner:
    """Does steps; each leaves its facts behind before `execute` returns."""

    def __init__(
        self,
        project: Project,
        gateway: Gateway,
        sandbox: Sandbox,
        on_progress: OnProgress,
        parallel: int = 1,
        profile: Profile = PROFILES[DEFAULT],
    ) -> None:
        self._project, self.sandbox, self._on_progress = project, sandbox, on_progress
        self.profile = profile
        self.parallel = parallel
        """How many experiments may be open at once."""
        self._sessions = RoleSessions(project, gateway, sandbox, self._say, parallel, profile)
        self._table: dict[type, Callable[[Any], None]] = {
            Build: self._build,
            Wait: self._wait,
            Recover: self._recover,
            Train: self._train,
            Evaluate: self._evaluate,
            Diagnose: self._diagnose,
            Scout: self._scout,
            JudgeResult: self._judge,
            CheckGate: self._check,
            Decide: self._decide,
            Settle: self._settle,
            WorkOnPhase: self._work_on_phase,
            PassPhase: self._pass_phase,
        }

    def execute(self, step: Step) -> None:
        """Raises GatewayError when the gateway failed; an agent's errors raise nothing."""
        self._table[type(step)](step)

    def _build(self, step: Build) -> None:
        self._say(step, f"experiment {step.index}: model-builder, attempt {step.attempt}")
        project = self._project
        known = (
            None
            if step.experiment is None
            else project.ledger.experiment(step.experiment).hypothesis
        )
        briefing = briefing_for(project, step, BUILDER, known, self.profile.briefing)
        record_choice(project, step)
        code = branch_code(project, step.parent) if step.choice is not None else None
        prompt = build_message(
            step,
            project.plan(),
            briefing,
            known,
            beside=self.parallel > 1,
            branch="" if code is None else code.words,
        )
        context = self._sessions.run(step, BUILDER, prompt, parent=step.parent)
        # Of several its training goes on while the loop looks at the others.
        alone = self.parallel == 1
        if alone and context.supervisor is not None and context.current is not None:
            supervisor = context.supervisor
            self._follow(step, context.current, lambda: not supervisor.ended())

    def _diagnose(self, step: Diagnose) -> None:
        # A run with open alarms always gets its checker, whatever agents the plan names.
        project = self._project
        alarms = open_by_run(project, step.experiment).get(step.run, ())
        codes = ", ".join(dict.fromkeys(alarm.code for alarm in alarms))
        self._say(
            step,
            f"{step.experiment}/{step.run}: {step.name}, attempt {step.attempt}, explains {codes}",
        )
        about = [f"{alarm.code} {alarm.message}" for alarm in alarms]
        memory = remembered(project, CHECKER, step.experiment, about)
        prompt = diagnose_message(step, project.plan(), alarms, memory)
        self._sessions.run(step, CHECKER, prompt)

    def _scout(self, step: Scout) -> None:
        self._say(step, f"{step.experiment}: research-scout, attempt {step.attempt}")
        project = self._project
        codes = [
            alarm.code
            for alarms in open_by_run(project, step.experiment).values()
            for alarm in alarms
        ]
        memory = remembered(project, SCOUT, step.experiment, codes)
        prompt = scout_message(step, project.plan(), codes, memory)
        self._sessions.run(step, SCOUT, prompt)

    def _judge(self, step: JudgeResult) -> None:
        self._say(step, f"{step.experiment}: oracle, attempt {step.attempt}")
        self._sessions.run(step, ORACLE, judge_message(step, self._project.plan()))

    def _work_on_phase(self, step: WorkOnPhase) -> None:
        self._say(step, f"phase {step.phase}: {step.role}, attempt {step.attempt}")
        project = self._project
        view = require_due(project)
        about = [view.phase.purpose, project.plan().content["objective"]]
        memory = remembered(project, step.role, None, about, beside=read_briefing(project.layout))
        prompt = phase_message(view, project.plan(), read_briefing(project.layout), memory)
        self._sessions.run(step, step.role, prompt)

    def _pass_phase(self, step: PassPhase) -> None:
        view = pass_phase(self._project, by=BY, reason="Its evidence is there.")
        held = "; ".join(view.evidence)
        self._say(step, f"phase {view.name}: passed, by {held}")

    def _wait(self, step: Wait) -> None:
        self._say(step, f"{step.experiment}: waiting for its runs")
        self._follow(step, step.experiment, lambda: self._trains(step.experiment))

    def _trains(self, experiment: str) -> bool:
        """Also between two seeds."""
        project = self._project
        return is_going(project, experiment) or is_held(project, experiment)

    def _recover(self, step: Recover) -> None:
        self._say(step, f"{step.experiment}: closing runs without a supervisor")
        for finding in recover(self._project):
            self._say(step, f"  {finding.message}")

    def _train(self, step: Train) -> None:
        # A supervisor of an earlier loop may be alive: wait for it, then read the state again.
        if is_held(self._project, step.experiment):
            self._say(step, f"{step.experiment}: waiting for its supervisor")
            self._follow(step, step.experiment, lambda: is_held(self._project, step.experiment))
            return
        self._say(step, f"{step.experiment}: training the outstanding seeds")
        supervisor = Supervisor.start(
            self._project,
            step.experiment,
            list(step.argv),
            sandbox=self.sandbox.kind,
            session=None,
            verb=("train", "--registered"),
            slots=self.parallel,
        )
        if self.parallel == 1:
            self._follow(step, step.experiment, lambda: not supervisor.ended())

    def _evaluate(self, step: Evaluate) -> None:
        on = spoken(step.split)
        self._say(
            step,
            f"{step.experiment}: predict and score on {on}, in the sandbox {self.sandbox.kind}",
        )
        see_sessions(self._project, os.environ)
        evaluations = evaluate_experiment(
            self._project,
            step.experiment,
            step.split,
            self.sandbox,
            admit=require_validation_passed,
        )
        for evaluation in evaluations:
            value = evaluation.value
            shown = "sealed" if evaluation.scored else "no score"
            shown = shown if value is None else f"{evaluation.metric} {value:.4f}"
            self._say(step, f"  {evaluation.run}: {shown}")
        approved = plan_of(self._project, self._project.ledger.experiment(step.experiment))
        score = released_score(self._project, step.experiment, approved, step.split)
        if score is not None and "released" in score:
            self._say(step, f"  {step.experiment}: {score['released']['words']}")

    def _check(self, step: CheckGate) -> None:
        verdict, gate = check_gate(self._project, step.experiment, step.gate), spoken(step.gate)
        tier = (
            f" (tier {verdict.tier})" if verdict.verdict is Verdict.PASS and verdict.tier else ""
        )
        self._say(
            step,
            f"{step.experiment}: {gate} gate says {verdict.verdict}{tier}",
            verdict=verdict.verdict,
        )
        for finding in verdict.findings:
            self._say(step, f"  [{finding.code}] {finding.message}")
        for candidate in note_candidates(self._project, step.experiment):
            self._say(step, f"  {candidate_line(candidate)}")

    def _decide(self, step: Decide) -> None:
        decision = decide(
            self._project,
            kind=step.kind,
            experiment=step.experiment,
            by=BY,
            context=step.context,
            choice=step.choice,
            alternatives=step.alternatives,
            reason=step.reason,
            confidence=step.confidence,
            verdict=step.verdict,
        )
        shown = decision.choice if decision.kind is DecisionKind.DISCARD else decision.reason
        self._say(step, f"{step.experiment}: {decision.kind}. {shown}")

    def _settle(self, step: Settle) -> None:
        status = MOVES[step.kind]
        self._project.ledger.move_experiment(
            step.experiment, status, f"{step.kind} was decided before the harness was cut"
        )
        self._say(step, f"{step.experiment}: {status}")

    def _follow(self, step: Step, experiment: str, going: Callable[[], bool]) -> None:
        """Wait while `going`, and report news of the experiment's runs, and of others that train
        beside it."""
        project = self._project
        followed = {experiment, *(one.id for one in project.undecided())}
        news = [
            RunNews(project, one, lambda text: self._say(step, f"    {text}"))
            for one in sorted(followed)
        ]
        while going():
            for one in news:
                one.look()
            project.clock.sleep(POLL_SECONDS)
        for one in news:
            one.look()

    def _say(self, step: Step, text: str, **more: Any) -> None:
        self._on_progress(
            {"event": step.key.partition("-")[0], "step": step.key, "text": text, **more}
        )
