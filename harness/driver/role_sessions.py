"""The sessions of a loop's steps: prepared, run and closed, with their facts in the ledger."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from harness.artifacts.trees import this_tree
from harness.contract.profiles import DEFAULT, PROFILES, Profile
from harness.contract.roles import ROLE_BY_NAME, TOOL_PREFIX
from harness.domain.sandbox import Sandbox
from harness.driver import handing_over, watchdog
from harness.driver.callbacks import Guard
from harness.driver.environment import (
    SessionFolders,
    bundled_cli,
    child_environment,
    confinement,
    link_login,
    session_folders,
    write_launcher,
)
from harness.driver.session import SessionEnding, SessionOutcome, SessionSpec, run_session
from harness.driver.tool_context import ToolContext
from harness.driver.tools.table import session_tools
from harness.errors import GatewayError, HarnessError, ScenarioError
from harness.guard.control_files import watching
from harness.ledger.facts import SessionEnded, SessionStarted
from harness.ledger.project import Project
from harness.ledger.spending import session_usd
from harness.loop.steps import Diagnose, SessionStep, Step, WorkOnPhase
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.weather import Fault
from harness.model_gateway.wire import Asker
from harness.process import identity
from harness.rendering.policy_snapshot import policy_snapshot, write_policy_snapshot
from harness.rendering.prompts import system_prompt

SHOWN_CHARACTERS = 160
MAX_TOKENS = "max_tokens"
_OF_SESSION = (Fault.REQUEST, Fault.MALFORMED)


class Say(Protocol):
    def __call__(self, step: Step, text: str, **more: Any) -> None: ...


class RoleSessions:
    """Runs sessions in one project, through one gateway, in one kind of sandbox."""

    def __init__(
        self,
        project: Project,
        gateway: Gateway,
        sandbox: Sandbox,
        say: Say,
        parallel: int = 1,
        profile: Profile = PROFILES[DEFAULT],
    ) -> None:
        self._project, self._gateway, self._sandbox, self._say = project, gateway, sandbox, say
        self._profile = profile
        self._parallel = parallel

    def run(
        self, step: SessionStep, role_name: str, prompt: str, *, parent: str | None = None
    ) -> ToolContext:
        """Run one session and return its context. Raises GatewayError when the gateway failed."""
        project, role = self._project, self._profile.of(ROLE_BY_NAME[role_name])
        session = f"{session_name(step)}-{secrets.token_hex(3)}"
        folders = session_folders(project.layout, session)
        folders.create()
        write_policy_snapshot(project)
        context = ToolContext(
            project,
            session=session,
            role=role,
            sandbox=self._sandbox.kind,
            experiment=step.experiment,
            parent=parent,
            parallel=self._parallel,
            of_phase=isinstance(step, WorkOnPhase),
            on_change=lambda: write_policy_snapshot(project),
            tell=lambda text: self._say(step, f"    {text}"),
        )
        asker = Asker(
            role=role.name,
            experiment=str(step.index),
            attempt=str(step.attempt),
            session=session,
        )
        with self._gateway.admitted(asker) as key:
            spec = SessionSpec(
                session=session,
                role=role,
                system_prompt=system_prompt(role),
                prompt=handing_over.inherited(project, step.key, prompt),
                cwd=project.layout.root,
                folders=folders,
                launcher=self._launcher(session, folders, key),
                model=None if role.model == "inherit" else role.model,
                effort=self._profile.effort,
                max_turns=self._profile.max_turns,
            )
            self._record_start(step, spec)
            try:
                outcome = self._drive(step, spec, context)
            finally:
                link_login(folders, None)
        if outcome.outcome is not SessionEnding.FINISHED:
            self._say(step, f"  session {outcome.outcome}: {outcome.detail}")
        if self._gateway.failure is not None:
            raise self._failed(session, self._gateway.failure)
        return context

    def _failed(self, session: str, failure: str) -> GatewayError:
        if self._gateway.foreseen is None:
            return GatewayError(
                f"The model gateway ended in session {session}: {failure}",
                hint="Correct the endpoint, then run `harness continue`.",
            )
        return ScenarioError(
            f"Session {session} is not as the scenario says: {failure}",
            hint=(
                "Correct it, then `harness continue --scenario FILE`: this attempt counts for"
                " nothing, and the next one has its number."
            ),
        )

    def _launcher(self, session: str, folders: SessionFolders, key: str) -> Path:
        project = self._project
        service = self._gateway.service
        link_login(folders, service.login)
        confined = confinement(
            project,
            project.plan(),
            folders,
            gateway_port=self._gateway.port,
            login=service.login,
        )
        environment = child_environment(
            folders,
            session=session,
            gateway_url=self._gateway.url,
            gateway_key=key,
            interpreter=project.settings.interpreter,
            retries=self._gateway.retries,
            service=service,
        )
        if self._profile.cache_1h:
            environment["ENABLE_PROMPT_CACHING_1H"] = "1"
        return write_launcher(self._sandbox, confined, folders, environment, bundled_cli())

    def _record_start(self, step: SessionStep, spec: SessionSpec) -> None:
        self._project.ledger.append(
            SessionStarted(
                session=spec.session,
                role=spec.role.name,
                experiment=step.experiment,
                step=step.key,
                sandbox=self._sandbox.kind.value,
                driver=identity(),
                tree=this_tree(self._project.layout).id,
            )
        )

    def _drive(self, step: SessionStep, spec: SessionSpec, context: ToolContext) -> SessionOutcome:
        guard = Guard(
            context,
            snapshot=lambda: policy_snapshot(
                self._project, role=spec.role.name, own={context.current}
            ),
            on_call=lambda tool, call, permission, reason: self._show_call(
                step, tool, call, permission, reason
            ),
            on_alarm=lambda text: self._say(step, f"    {text}"),
        )
        # What is recorded when Ctrl-C or an error leaves the block before there is an outcome.
        outcome = SessionOutcome(outcome=SessionEnding.CUT, detail="the driver was interrupted")
        try:
            with watching(self._project, self._sandbox.kind, lambda: context.current):
                outcome = run_session(
                    spec,
                    tools=session_tools(context),
                    hooks=guard.hooks(),
                    pulse=context.pulse,
                    progress=lambda: watchdog.progress(context),
                    on_text=lambda text: self._say(step, f"  {spec.role.name}: {text}"),
                )
            if outcome.silent:
                watchdog.silent(context, spec.silence_seconds, outcome.at_work)
            if guard.ended:
                ending = SessionEnding.FAILED
                outcome = replace(outcome, outcome=ending, detail=guard.ended[:500])
            outcome = voided(named(outcome, self._gateway, spec.session), self._gateway)
        finally:
            try:
                self._handed_over(step, context, outcome)
            finally:
                self._record_end(spec, outcome)
        return outcome

    def _handed_over(
        self, step: SessionStep, context: ToolContext, outcome: SessionOutcome
    ) -> None:
        """Before its end is recorded: a session that a killed driver left open hands over when it
        is closed. A fault here hides no Ctrl-C that is on its way."""
        try:
            handing_over.ended(
                self._project,
                context.session,
                outcome.outcome,
                outcome.detail,
                experiment=context.current,
            )
        except (HarnessError, OSError) as error:
            self._say(step, f"  its hand-off is not recorded: {error}")

    def _record_end(self, spec: SessionSpec, outcome: SessionOutcome) -> None:
        self._project.ledger.append(
            SessionEnded(
                session=spec.session,
                outcome=outcome.outcome.value,
                detail=outcome.detail,
                turns=outcome.turns,
                cost_usd=session_usd(self._project.layout, spec.session),
                usage=outcome.usage,
            )
        )

    def _show_call(
        self, step: Step, tool: str, call: Mapping[str, Any], permission: str, reason: str
    ) -> None:
        shown = " ".join(str(call.get("command") or call.get("file_path") or "").split())[
            :SHOWN_CHARACTERS
        ]
        text = f"    {tool.removeprefix(TOOL_PREFIX)} {shown}".rstrip()
        if permission == "deny":
            text = f"{text}  -> denied: {reason}"
        self._say(step, text, tool=tool, permission=permission)


def named(outcome: SessionOutcome, gateway: Gateway, session: str) -> SessionOutcome:
    """By whose fault the session ended, where the gateway knows it better than the CLI, whose own
    words may blame the login. Tells the gateway's weather whether it was the service."""
    weather = gateway.weather
    weather.unserved = None
    if outcome.outcome is not SessionEnding.FAILED and not outcome.silent:
        return outcome
    if gateway.over_budget is not None:
        # Not the session's fault: as cut, its step is due again after the budget is raised.
        detail = f"budget: {gateway.over_budget}"
        return replace(outcome, outcome=SessionEnding.CUT, detail=detail)
    trouble = weather.trouble(session)
    if trouble is None:
        too_long = weather.stop_reason(session) == MAX_TOKENS and not outcome.silent
        return replace(outcome, outcome=SessionEnding.MAX_TOKENS) if too_long else outcome
    if trouble.fault in _OF_SESSION:
        ending = SessionEnding(trouble.fault.value)
        return replace(outcome, outcome=ending, detail=trouble.words)
    weather.unserved = trouble
    detail = f"{trouble.fault}: {trouble.words}"
    return replace(outcome, outcome=SessionEnding.UNSERVED, detail=detail)


def voided(outcome: SessionOutcome, gateway: Gateway) -> SessionOutcome:
    """Void where the scenario could not go on. A live session's attempt counts however it made its
    gateway end: else it could try without bound."""
    if gateway.failure is None or gateway.foreseen is None:
        return outcome
    return replace(outcome, outcome=SessionEnding.VOID)


def session_name(step: SessionStep) -> str:
    """The name of its sessions, without the random suffix."""
    return (
        f"{step.name}-{step.index}-{step.run}-{step.attempt}"
        if isinstance(step, Diagnose)
        else step.key
    )
