"""The smallest scenario that a project plays: its code as it stands, opened, trained and judged."""

from typing import Any

from harness.contract.roles import TOOL_PREFIX
from harness.domain.statuses import Split
from harness.ledger.facts import ApprovedPlan
from harness.model_gateway.scenario import as_yaml
from harness.plans.approved import secret

HYPOTHESIS = "The code as it stands trains, and is scored as the plan says"
_HEAD = """\
# The smallest scenario of this project: one experiment with the code as it stands.
# `harness scenario check FILE` says what is wrong with it, `harness run --scenario FILE` plays it.
# Write what your agents would say and do between the turns; docs/formats.md has the form.
"""
_WAIT_S = 600


def smallest(approved: ApprovedPlan, experiment: int = 1) -> str:
    """As YAML. Of hidden labels nothing is claimed; else the number that was measured."""
    claims: dict[str, str] = {}
    if not secret(approved, Split.VALIDATION.value):
        claims = {approved.content["oracle"]["metric"]: "${report.claim}"}
    key = str(experiment), "1"
    builder = [
        _calls("I open an experiment.", "open", "open_experiment", **_opening(approved)),
        _calls("I start its training.", "start", "start_run"),
        _calls("I wait for it.", "status", "run_status", wait_seconds=_WAIT_S),
        {"text": "It is trained."},
    ]
    oracle = [
        _calls("What did the harness measure?", "report", "evaluation_report"),
        _calls(
            "I record that and nothing else.",
            "record",
            "record_result",
            claims=claims,
            summary="As measured by the harness.",
        ),
        {"text": "Recorded."},
    ]
    turns = {
        ("model-builder", *key): dict(enumerate(builder)),
        ("oracle", *key): dict(enumerate(oracle)),
    }
    return as_yaml(turns, head=_HEAD)


def _opening(approved: ApprovedPlan) -> dict[str, str]:
    return {
        "hypothesis": HYPOTHESIS,
        "rationale": f"A change that breaks it for the plan {approved.content['name']} shows here.",
    }


def _calls(text: str, identifier: str, tool: str, **given: Any) -> dict[str, Any]:
    call = {"id": identifier, "name": f"{TOOL_PREFIX}{tool}", "input": given}
    return {"text": text, "tools": [call]}
