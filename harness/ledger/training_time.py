"""What the runs of a plan have used of its budget."""

from harness.ledger.ledger import Ledger


def training_seconds(ledger: Ledger, plan: str) -> float:
    """Seconds of training by all ended runs of all experiments under the plan `plan`, however they
    ended."""
    ours = [item.id for item in ledger.experiments() if item.plan == plan]
    return sum(run.seconds or 0.0 for experiment in ours for run in ledger.runs(experiment))
