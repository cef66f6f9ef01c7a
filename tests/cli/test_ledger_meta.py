"""`harness ledger verify` answers no when the ledger was told to extend another chain."""

import sqlite3
from pathlib import Path

from tests.cli.journey import make_project


def test_a_changed_writer_is_exit_one_and_stops_what_would_write(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    journey.harness("init")
    assert journey.harness("plan", "approve").exit_code == 0
    assert journey.harness("ledger", "verify").exit_code == 0
    with sqlite3.connect(journey.state / "ledger.db") as connection:
        connection.execute("UPDATE meta SET value = 'w00000000'")
    connection.close()
    answer = journey.harness("ledger", "verify", "--json")
    assert (answer.exit_code, answer.document["verified"]) == (1, False)
    (problem,) = answer.document["problems"]
    assert problem["kind"] == "meta"
    assert "chain of writer w00000000" in problem["message"]
    opened = journey.harness("experiment", "new", "--hypothesis", "x", "--json")
    assert (opened.exit_code, opened.document["error"]["code"]) == (3, "ledger_damaged")
