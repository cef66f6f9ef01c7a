"""Which gateway a loop gets: a scenario's, or one to the model service that holds the key and the
budget."""

from collections.abc import Mapping
from pathlib import Path

from harness.domain.records import ApprovedPlan
from harness.errors import RefusedError, UsageError
from harness.ledger.project import Project
from harness.ledger.spending import SpendingLog, spent_elsewhere_usd
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.recording import Recording
from harness.model_gateway.scenario import read_scenario
from harness.model_gateway.scripted import Scripted

KEY = "ANTHROPIC_API_KEY"
UPSTREAM = "ANTHROPIC_BASE_URL"
DEFAULT_UPSTREAM = "https://api.anthropic.com"
SCRIPTED_RETRIES, LIVE_RETRIES = 1, 10


def open_gateway(
    project: Project,
    plan: ApprovedPlan,
    environment: Mapping[str, str],
    *,
    scenario: Path | None = None,
    record: Path | None = None,
) -> Gateway:
    """A gateway that is not started yet. With `scenario` neither a key nor a budget is read.

    Raises UsageError when both files are given or the scenario is not valid, RefusedError
    (key_missing, budget_missing) when a live gateway lacks its key or the plan's budget.usd.
    """
    if scenario is not None and record is not None:
        raise UsageError(
            "A scenario is played, not recorded: --scenario and --record exclude each other.",
            hint="Leave one out.",
        )
    if scenario is not None:
        return Gateway(Scripted(read_scenario(scenario)))
    budget = plan.content["budget"].get("usd")
    if budget is None:
        raise RefusedError(
            f"The plan {plan.name} has no budget.usd, and a real model endpoint costs money.",
            hint=(
                f"Add `usd` to the budget in {plan.path} and approve it, or pass `--scenario FILE`."
            ),
            code="budget_missing",
        )
    if not environment.get(KEY):
        raise RefusedError(
            f"{KEY} is not set; the model gateway needs it, and nothing else gets it.",
            hint=f"Set {KEY} in your terminal, or pass `--scenario FILE`.",
            code="key_missing",
        )
    meter = Meter(
        budget_usd=float(budget),
        spent_before_usd=spent_elsewhere_usd(project.ledger, project.layout, plan.name),
        log=SpendingLog(project.layout.spending, plan.name),
    )
    return Gateway(
        Live(
            upstream=environment.get(UPSTREAM) or DEFAULT_UPSTREAM,
            key=environment[KEY],
            meter=meter,
            observe=None if record is None else Recording(record),
        )
    )


def is_scripted(gateway: Gateway) -> bool:
    return isinstance(gateway.answerer, Scripted)


def retries(gateway: Gateway) -> int:
    """How often the CLI asks again after an error: a scenario answers the same every time."""
    return SCRIPTED_RETRIES if is_scripted(gateway) else LIVE_RETRIES
