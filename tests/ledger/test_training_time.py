"""Minutes are counted over all runs of a plan, however they ended."""

from pathlib import Path

from tests.ledger.ledger_samples import ended, open_ledger, plan, register, started


def test_every_ended_run_of_the_plan_counts(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        for _ in range(2):
            experiment = ledger.open_experiment(hypothesis="x", parent=None, by="me").id
            for status, seconds in (
                ("completed", 3.0),
                ("failed", 2.0),
                ("cancelled", 4.0),
                ("lost", None),
            ):
                run = register(ledger, experiment)
                ledger.append(started(experiment, run))
                ledger.append(ended(experiment, run, status, seconds=seconds))
        assert ledger.training_seconds("digits") == 18.0
        assert ledger.training_seconds("another") == 0.0
