"""The loop at work: ask `next_step`, do it, record it, until it says stop."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.domain.facts import LoopEnded
from harness.domain.records import ApprovedPlan
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus
from harness.driver.leftovers import close_cut_sessions
from harness.driver.steps import StepRunner
from harness.driver.supervisors import is_held, is_supervised
from harness.ledger.project import Project
from harness.loop.load_state import load_state
from harness.loop.next_step import next_step
from harness.loop.steps import SessionStep, Step, StopLoop, StopReason
from harness.model_gateway.gateway import Gateway
from harness.rendering.derived import write_derived
from harness.runs.lock import looping
from harness.runs.recover import recover

POLL_SECONDS = 0.2
UNFINISHED = tuple(status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS)

OnProgress = Callable[[Mapping[str, Any]], None]


def run_loop(
    project: Project,
    gateway: Gateway,
    sandbox: Sandbox,
    on_progress: OnProgress = lambda _event: None,
) -> LoopEnded:
    """Run experiments under the approved plan until `next_step` stops; returns why, as it was
    recorded.

    First whatever an earlier loop left is put in order: its sessions are ended and closed as cut,
    runs without a supervisor are ended and closed by what happened. The gateway is started here and
    stopped again. Raises RefusedError when no plan is approved or another loop is at work
    (loop_running), GatewayError when the gateway could not answer.
    """
    plan = project.plan()
    with looping(project.layout):
        _put_in_order(project, on_progress)
        gateway.start()
        try:
            return _loop(
                project,
                plan,
                gateway,
                StepRunner(project, gateway, sandbox, on_progress),
                on_progress,
            )
        finally:
            gateway.stop()
            write_derived(project)


def _put_in_order(project: Project, on_progress: OnProgress) -> None:
    for session in close_cut_sessions(project.ledger, project.layout):
        on_progress({"event": "session_cut", "text": f"closed session {session.id}, which was cut"})
    for experiment in project.ledger.experiments(statuses=UNFINISHED):
        if is_held(project, experiment.id):
            on_progress(
                {
                    "event": "waiting",
                    "text": f"{experiment.id}: waiting for the supervisor of an earlier loop",
                }
            )
        while is_held(
            project, experiment.id
        ):  # a supervisor that outlived its driver finishes what it began
            project.clock.sleep(POLL_SECONDS)
    for finding in recover(project):
        on_progress({"event": "recovered", "text": f"{finding.message} {finding.hint}"})
    write_derived(project)


def _loop(
    project: Project,
    plan: ApprovedPlan,
    gateway: Gateway,
    runner: StepRunner,
    on_progress: OnProgress,
) -> LoopEnded:
    unchanged, before, steps = 0, None, 0
    while True:
        state = load_state(project, supervised=lambda run: is_supervised(project, run))
        unchanged = unchanged + 1 if state == before else 0
        before = state
        step = _affordable(next_step(replace(state, unchanged=unchanged)), gateway)
        if isinstance(step, StopLoop):
            return _end(project, plan, step, on_progress, nothing_done=steps == 0)
        runner.execute(step)
        steps += 1
        write_derived(project)


def _affordable(step: Step, gateway: Gateway) -> Step:
    """`step`, or a StopLoop if it needs the model and the gateway has refused a request for the
    budget."""
    if isinstance(step, SessionStep) and gateway.over_budget is not None:
        return StopLoop(reason=StopReason.BUDGET, detail=gateway.over_budget)
    return step


def _end(
    project: Project,
    plan: ApprovedPlan,
    step: StopLoop,
    on_progress: OnProgress,
    *,
    nothing_done: bool,
) -> LoopEnded:
    """Record the end, unless the loop had ended for the same reason and nothing was done since."""
    ended = LoopEnded(plan=plan.name, reason=step.reason.value, detail=step.detail)
    if not (nothing_done and project.ledger.loop_end() == ended):
        project.ledger.append(ended)
    on_progress({"event": "loop_ended", "text": f"loop ended: {ended.reason}. {ended.detail}"})
    return ended
