"""Runs the loop: opens the gateway, closes leftovers of an earlier loop, does each next step."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.artifacts.trees import is_known, own_trees
from harness.clock import Clock
from harness.contract.profiles import PROFILES, Profile, profile_of
from harness.domain.grade import Caller, CallerKind
from harness.domain.notices import Notice
from harness.domain.prices import model_of
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import GateMode, SandboxKind
from harness.driver import handing_over
from harness.driver.access import service_of
from harness.driver.environment import session_folders
from harness.driver.outage import Outage
from harness.driver.scenario_end import excused, in_scenario
from harness.driver.session import SessionEnding, end_session_processes
from harness.driver.steps import SCOUT, StepRunner
from harness.driver.supervisors import is_held, is_supervised
from harness.driver.vouching import vouching
from harness.errors import HarnessError, RefusedError, UsageError
from harness.guard.own_python import require_out_of_reach
from harness.ledger.facts import ApprovedPlan, LoopEnded, Session, SessionEnded
from harness.ledger.ledger import Ledger
from harness.ledger.phases import sessions_due
from harness.ledger.project import Project
from harness.ledger.spending import (
    SpendingLog,
    read_spending,
    session_usd,
    spent,
    spent_elsewhere,
)
from harness.loop.load_state import load_state
from harness.loop.next_step import next_step
from harness.loop.state import LoopLimits, LoopState
from harness.loop.steps import SessionStep, Step, StopLoop, StopReason
from harness.model_gateway.estimate import Night, left_of, night
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.scenario import Recording, read_scenario
from harness.model_gateway.scripted import Scripted
from harness.plans.model_budget import least_budget, too_small
from harness.plans.schema import Loop
from harness.process import boot_id, is_same_alive
from harness.rendering.derived import write_derived
from harness.runs.closing import recover
from harness.runs.lock import looping
from harness.runs.notify import Notifier

SCRIPTED_RETRIES = 1
"""A scenario gives the same answer every time."""
POLL_SECONDS = 0.2

OnProgress = Callable[[Mapping[str, Any]], None]


def open_gateway(
    project: Project,
    plan: ApprovedPlan,
    environment: Mapping[str, str],
    *,
    scenario: Path | None = None,
    record: Path | None = None,
) -> Gateway:
    """A gateway, not started yet: of a scenario, or to the model service, with access and budget.

    Raises UsageError when both files are given or the scenario is invalid, RefusedError
    (budget_missing, budget_too_small, key_missing, access_unknown).
    """
    if scenario is not None and record is not None:
        raise UsageError(
            "--scenario and --record exclude each other: a scenario is replayed, not recorded.",
            hint="Leave one out.",
        )
    if scenario is not None:
        script = read_scenario(scenario)
        return Gateway(
            Scripted(script),
            retries=SCRIPTED_RETRIES,
            foreseen=frozenset(session.key for session in script.sessions),
        )
    _require_budget(plan, model_of(environment))
    budget, service = plan.content["budget"], service_of(environment)
    before = spent_elsewhere(project.ledger, project.layout, plan.name)
    meter = Meter(
        budget_usd=budget.get("usd"),
        budget_tokens=budget.get("tokens"),
        spent_before_usd=before.usd,
        spent_before_tokens=before.tokens,
        log=SpendingLog(project.layout.spending, plan.name),
    )
    live = Live(
        service=service,
        meter=meter,
        observe=None if record is None else Recording(record),
    )
    return Gateway(live, service=service, weather=live.weather)


def _require_budget(plan: ApprovedPlan, model: str) -> None:
    """Raises RefusedError."""
    budget = plan.content["budget"]
    if budget.get("usd") is None and budget.get("tokens") is None:
        raise RefusedError(
            f"The plan {plan.name} has neither budget.tokens nor budget.usd, and a real model"
            " takes both.",
            hint=(
                f"Add `tokens` or `usd` to the budget in {plan.path} and approve it, or pass"
                " `--scenario FILE`."
            ),
            code="budget_missing",
        )
    why = too_small(budget, model)
    if why is not None:
        raise RefusedError(
            f"The plan {plan.name} pays no request: {why}.",
            hint=f"{least_budget(model)} Then approve it.",
            code="budget_too_small",
        )


def expected_night(
    project: Project,
    plan: ApprovedPlan,
    environment: Mapping[str, str],
    profile: Profile | None = None,
) -> Night:
    """What the loop is expected to take from here on, and the most that it can. `profile`: by
    default the one that the plan names."""
    ledger, layout = project.ledger, project.layout
    budget = plan.content["budget"]
    used = spent(ledger, layout, plan.name)
    usd, tokens = budget.get("usd"), budget.get("tokens")
    experiments, model = left_of(ledger, plan, environment, profile)
    return night(
        experiments,
        list(read_spending(layout.spending).values()),
        model=model,
        phases=sessions_due(ledger, plan),
        most_usd=None if usd is None else max(0.0, usd - used.usd),
        most_tokens=None if tokens is None else max(0, tokens - used.tokens),
    )


def run_loop(
    project: Project,
    gateway: Gateway,
    sandbox: Sandbox,
    on_progress: OnProgress = lambda _event: None,
    parallel: int = 1,
    *,
    waiting: Clock | None = None,
    profile: Profile | None = None,
) -> LoopEnded:
    """Run experiments under the approved plan until `next_step` stops; return the recorded reason.
    Up to `parallel` are open at once: while the oldest trains, sessions start the next ones.

    `profile`: by default the one that the plan names.

    Leftovers of an interrupted loop are closed first. Its runs and evaluations are the driver's,
    unless what started it was not isolated. By `waiting`, the project's clock, it waits for a model
    service that does not answer. Raises RefusedError when no plan is approved
    or another loop is running (loop_running), ConfigError (judge_in_reach), GatewayError when the
    gateway could not answer.
    """
    plan = project.plan()
    require_out_of_reach(project.layout.root, sandbox.kind)
    if project.caller.isolated:
        project = project.called_by(Caller(CallerKind.DRIVER, sandbox.kind))
    layout = project.layout
    _require_sandbox(project.ledger.gate_mode(plan)[0], sandbox)

    def tell(text: str) -> None:
        on_progress({"event": "lease", "text": f"the loop of this working tree: {text}"})

    with looping(layout, tell), vouching(layout.state, project.caller, layout.root):
        _close_leftovers(project, on_progress)
        gateway.start()
        notifier = Notifier(project, lambda text: on_progress({"event": "notify", "text": text}))
        try:
            used = profile or PROFILES[profile_of(plan.content)]
            runner = StepRunner(project, gateway, sandbox, on_progress, parallel, used)
            outage = _outage(plan, waiting or project.clock, on_progress)
            ended = _loop(project, plan, gateway, runner, outage, on_progress)
            _notify_end(notifier, ended)
            return ended
        except HarnessError as error:
            _notify_broken(notifier, plan, error)
            raise
        finally:
            gateway.stop()
            write_derived(project)
            notifier.close()


def _require_sandbox(mode: GateMode, sandbox: Sandbox) -> None:
    if mode is GateMode.FULL_AUTO and sandbox.kind is SandboxKind.NONE:
        raise RefusedError(
            "full-auto keeps what no person saw, and this loop has no sandbox.",
            hint="Leave --sandbox out where one works, or `harness gates set auto --reason TEXT`.",
            code="isolation_absent",
        )


def _notify_end(notifier: Notifier, ended: LoopEnded) -> None:
    first = {
        StopReason.WAITING: Notice.GATE,
        StopReason.BUDGET: Notice.BUDGET,
    }.get(StopReason(ended.reason), Notice.END)
    notifier.send_any(
        (first, Notice.END),
        f"loop ended: {ended.reason}. {ended.detail}",
        plan=ended.plan,
        reason=ended.reason,
        detail=ended.detail,
        next="harness status",
    )


def _notify_broken(notifier: Notifier, plan: ApprovedPlan, error: HarnessError) -> None:
    notifier.send(
        Notice.END,
        f"loop broke off: {error.message}",
        plan=plan.name,
        reason=error.code,
        detail=f"{error.message} {error.hint}",
        next="harness continue",
    )


def close_cut_sessions(
    ledger: Ledger,
    layout: Layout,
    ending: Callable[[Session, str], None] = lambda _session, _detail: None,
) -> list[Session]:
    """End the processes of every open session of this machine whose driver is gone, and record it
    as cut. One whose driver lives is led by the loop of another working tree; of one on another
    machine, with which a server shares the ledger, nobody here can tell. `ending` comes before
    each is recorded: a driver that is killed meanwhile leaves what it did not do to the next."""
    own = own_trees(layout)
    if isinstance(layout.ledger, Path):
        own |= {""}  # facts of before trees had ids
    left = [
        session
        for session in ledger.sessions(open_only=True)
        if _is_of_here(session, layout, own)
        and (_is_led_by_us(session) or not is_same_alive(session.driver))
    ]
    for session in left:
        ended = end_session_processes(session_folders(layout, session.id), session.id, grace=0.0)
        detail = "its driver ended without closing it" + (
            f"; {ended} of its processes were ended" if ended else ""
        )
        ending(session, detail)
        cost = session_usd(layout, session.id)
        ledger.append(
            SessionEnded(session=session.id, outcome="cut", detail=detail, turns=0, cost_usd=cost)
        )
    return left


def _is_of_here(session: Session, layout: Layout, own: frozenset[str]) -> bool:
    """A linked worktree's too; containers of one boot each know their own trees only."""
    booted_here = session.driver.get("boot") == boot_id()
    return session.tree in own or (
        booted_here and (not session.tree or is_known(layout, session.tree))
    )


def _is_led_by_us(session: Session) -> bool:
    us = {"pid": os.getpid(), "boot": boot_id()}
    return us.items() <= session.driver.items()


def _close_leftovers(project: Project, on_progress: OnProgress) -> None:
    def hands_over(session: Session, detail: str) -> None:
        try:
            handing_over.ended(project, session.id, SessionEnding.CUT, detail)
        except (HarnessError, OSError) as error:
            text = f"{session.id}: its hand-off is not recorded: {error}"
            on_progress({"event": "hand_off_failed", "text": text})

    for session in close_cut_sessions(project.ledger, project.layout, hands_over):
        on_progress(
            {"event": "session_cut", "text": f"closed session {session.id}, which was cut"}
        )
    for experiment in project.undecided():
        if is_held(project, experiment.id):
            text = f"{experiment.id}: waiting for the supervisor of an earlier loop"
            on_progress({"event": "waiting", "text": text})
        # A supervisor that outlived its driver finishes its runs; two would share the folder.
        while is_held(project, experiment.id):
            project.clock.sleep(POLL_SECONDS)
    for finding in recover(project):
        on_progress({"event": "recovered", "text": f"{finding.message} {finding.hint}"})
    write_derived(project)


def _loop(
    project: Project,
    plan: ApprovedPlan,
    gateway: Gateway,
    runner: StepRunner,
    outage: Outage,
    on_progress: OnProgress,
) -> LoopEnded:
    unchanged, before, steps = 0, None, 0
    while True:
        state = load_state(
            project,
            supervised=lambda run: is_supervised(project, run),
            held=lambda experiment: is_held(project, experiment),
            parallel=runner.parallel,
        )
        state = replace(state, limits=within(state.limits, runner.profile))
        unchanged = unchanged + 1 if state == before else 0
        before = state
        _require_sandbox(state.limits.mode, runner.sandbox)
        # The state is read anew for each step: after kill -9 nothing but ledger and disk is left.
        step = _affordable(next_step(replace(state, unchanged=unchanged)), gateway)
        if gateway.foreseen is not None:
            step = in_scenario(step, state, gateway.foreseen, excused(plan))
        step = outage.due(step, gateway.weather)
        if isinstance(step, StopLoop):
            _tell_training(state, on_progress)
            return _end(project, plan, step, on_progress, nothing_done=steps == 0)
        runner.execute(step)
        steps += 1
        write_derived(project)


def within(limits: LoopLimits, profile: Profile) -> LoopLimits:
    """The plan's limits, as far as the profile goes."""
    most = limits.experiments
    if profile.experiments is not None:
        most = min(most, profile.experiments)
    scouts = limits.references and SCOUT not in profile.without_roles
    return replace(limits, experiments=most, references=scouts)


def _tell_training(state: LoopState, on_progress: OnProgress) -> None:
    for one in state.experiments:
        if one.held or any(run.supervised for run in one.runs):
            text = f"{one.id}: its training goes on; `harness continue` judges it"
            on_progress({"event": "training_left", "text": text})


def _outage(plan: ApprovedPlan, clock: Clock, on_progress: OnProgress) -> Outage:
    # Plans that were approved before there was this field have its default.
    hours = plan.content["loop"].get("service_hours", Loop().service_hours)
    return Outage(
        hours * 3600,
        clock,
        lambda text: on_progress({"event": "service_unavailable", "text": text}),
    )


def _affordable(step: Step, gateway: Gateway) -> Step:
    """`step`; a StopLoop for a session after the gateway has refused a request for the budget."""
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
    """Record the end, unless the newest recorded end is the same and nothing was done since."""
    ended = LoopEnded(plan=plan.name, reason=step.reason.value, detail=step.detail)
    if not (nothing_done and project.ledger.loop_end() == ended):
        project.ledger.append(ended)
    on_progress({"event": "loop_ended", "text": f"loop ended: {ended.reason}. {ended.detail}"})
    return ended
