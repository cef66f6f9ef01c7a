"""The end of a loop is told to whom config.toml names, and what that costs is nothing."""

import json
import re
import sys
from pathlib import Path

from harness.ledger.spending import SpendingLog
from tests.cli.journey import make_project

BUDGET = "experiments: 8, run_minutes: 2, total_minutes: 20"


def test_the_end_by_a_budget_is_told(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    plan = journey.root / "plan.md"
    plan.write_text(plan.read_text().replace(BUDGET, f"{BUDGET}, usd: 9"))
    heard, program = tmp_path / "heard.json", tmp_path / "tell.py"
    program.write_text(f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())")
    config = journey.root / ".harness/config.toml"
    words = json.dumps([sys.executable, str(program)])
    config.parent.mkdir()
    config.write_text(f'project_id = "toy-12345678"\n\n[notify]\ncommand = {words}\n')
    # `init` writes its line about hooks before the table, not into it.
    made = journey.harness("init", "--hooks", "none")
    assert made.exit_code == 0, made.stderr
    assert re.search(r'(?s)hooks = "none"\n.*\[notify\]\ncommand', config.read_text())
    unheard = journey.harness("doctor", "--notify", "--json")
    assert unheard.document["error"]["code"] == "no_notify"
    assert journey.harness("plan", "approve").exit_code == 0
    assert journey.harness("doctor", "--notify").exit_code == 0
    assert json.loads(heard.read_text())["event"] == "trial"
    SpendingLog(journey.state / "spending.jsonl", "toy").reserve(
        session="s", role="oracle", usd=9.5
    )
    scenario = journey.root / "ci/scenario.yaml"
    scenario.parent.mkdir()
    made = journey.harness("scenario", "new", str(scenario))
    assert made.exit_code == 0, made.stderr
    ended = journey.harness("run", "--scenario", str(scenario), "--json")
    assert (ended.exit_code, ended.document["reason"]) == (1, "budget"), ended.stderr
    told = json.loads(heard.read_text())
    assert (told["event"], told["reason"], told["plan"]) == ("budget", "budget", "toy")
    assert told["detail"] == "9.50 of 9.00 USD are used (budget.usd)."
