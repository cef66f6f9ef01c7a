"""What models took, as a person asks for it; a budget that cannot pay is said before a night."""

import sys
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.domain.prices import PRICES_OF
from harness.ledger.spending import SpendingLog
from harness.model_gateway.estimate import night
from tests.cli.journey import Journey, make_project
from tests.screen import Screen

BUDGET = "experiments: 8, run_minutes: 2, total_minutes: 20"
USAGE = {
    "input_tokens": 10,
    "output_tokens": 500,
    "cache_creation_input_tokens": 20_000,
    "cache_read_input_tokens": 100_000,
}


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("cost")
    made = make_project(base / "project", base / "home")
    plan = made.root / "plan.md"
    plan.write_text(plan.read_text().replace(BUDGET, f"{BUDGET}, usd: 9, tokens: 5000000"))
    for words in (("init",), ("plan", "approve")):
        assert made.harness(*words).exit_code == 0
    return made


def test_nothing_yet_is_said_with_what_is_expected(journey: Journey) -> None:
    said = journey.harness("cost")
    assert said.exit_code == 0
    assert "nothing was metered yet" in said.stdout
    assert (
        "expected of the 8 experiments that the plan has left, on claude-opus-5-5: " in said.stdout
    )
    assert "(assumed; docs/cost.md)" in said.stdout


def test_what_is_expected_goes_by_the_profile_of_the_plan(tmp_path: Path) -> None:
    made = make_project(tmp_path / "project", tmp_path / "home")
    plan = made.root / "plan.md"
    asked = plan.read_text().replace("loop: {", "agents: {profile: low-token}\nloop: {")
    plan.write_text(asked.replace(BUDGET, f"{BUDGET}, usd: 9"))
    for words in (("init",), ("plan", "approve")):
        assert made.harness(*words).exit_code == 0
    for model in ("", "claude-haiku-5-5"):
        told = made.harness("cost", "--json", ANTHROPIC_MODEL=model).document
        low = night(4, [], model="claude-sonnet-5-5").expected
        rest = {"experiments": 4, "model": "claude-sonnet-5-5", "tokens": round(low.tokens)}
        assert told["next"] == {**told["next"], **rest, "usd": round(low.usd or 0, 4)}
        assert told["prices"]["model"] == "claude-sonnet-5-5"
    shown = made.harness("cost").stdout
    assert "expected of the 4 experiments that the plan has left, on claude-sonnet-5-5: " in shown


def test_what_is_expected_goes_by_the_model_that_a_person_names(journey: Journey) -> None:
    told = journey.harness("cost", "--json", ANTHROPIC_MODEL="claude-haiku-5-5").document
    assert told["next"]["model"] == told["prices"]["model"] == "claude-haiku-5-5"


def test_by_role_experiment_and_day(journey: Journey) -> None:
    log = SpendingLog(journey.state / "spending.jsonl", "toy", ManualClock())
    for role, usd in (("model-builder", 0.25), ("model-builder", 0.5), ("oracle", 0.125)):
        name = log.reserve(session=f"{role}-1", role=role, usd=3.0, tokens=190_000, model="m")
        log.settle(name, usd=usd, usage=USAGE)
    log.reserve(session="cut", role="oracle", usd=2.0, tokens=150_000, model="m")
    told = journey.harness("cost", "--json").document
    each = sum(USAGE.values())
    assert told["prices"]["of"] == PRICES_OF
    assert (told["total"]["requests"], told["total"]["unknown"]) == (4, 1)
    assert told["total"]["tokens"] == 3 * each + 150_000
    assert told["total"]["usd"] == 2.875
    assert told["budget"] == {
        "usd": {"used": 2.875, "of": 9},
        "tokens": {"used": 3 * each + 150_000, "of": 5_000_000},
    }
    builder, oracle = told["roles"]
    assert (builder["role"], builder["sessions"], builder["requests"]) == ("model-builder", 1, 2)
    assert builder["a_session"]["measured"] == {"tokens": 2 * each, "usd": 0.75}
    assert builder["a_session"]["projected"]["tokens"] > 0
    assert oracle["sessions"] == 2
    assert [(row["day"], row["requests"]) for row in told["days"]] == [("2026-01-01", 4)]
    assert [row["experiment"] for row in told["experiments"]] == ["none yet"]
    assert told["next"]["measured"] == ["model-builder", "oracle"]
    shown = journey.harness("cost").stdout
    assert "in all: " in shown
    assert f"list prices of {PRICES_OF}" in shown
    assert "1 requests broke off" in shown
    page = journey.harness("report").stdout
    assert f"- models: {3 * each + 150_000:,} of 5,000,000 tokens" in page


@pytest.mark.parametrize("verb", ["cost", "status"])
def test_no_line_is_wider_than_the_terminal(journey: Journey, verb: str) -> None:
    here = {"PYTHONPATH": str(Path(__file__).parents[2]), "NO_COLOR": "1"}
    words = [sys.executable, "-m", "harness", verb]
    screen = Screen(words, journey.environment(**here), journey.root)
    screen.resize(40, 80)
    assert screen.end() == 0
    lines = screen.seen.splitlines()
    paths = (str(journey.root), str(journey.home))
    assert [one for one in lines if len(one) > 80 and not any(path in one for path in paths)] == []
    piped = journey.harness(verb).stdout
    assert screen.seen.split() == piped.split()
    assert max(map(len, piped.splitlines())) > 80


def test_a_budget_that_pays_no_request_is_no_plan(tmp_path: Path) -> None:
    made = make_project(tmp_path / "project", tmp_path / "home")
    plan = made.root / "plan.md"
    plan.write_text(plan.read_text().replace(BUDGET, f"{BUDGET}, usd: 1"))
    assert made.harness("init").exit_code == 0
    checked = made.harness("plan", "check", "--json")
    assert checked.exit_code == 2
    (problem,) = checked.document["problems"]
    assert problem["code"] == "budget_too_small"
    assert "may cost up to $2.71 on claude-opus-5-5" in problem["message"]
    assert (
        made.harness("plan", "approve", "--json").document["error"]["code"] == "budget_too_small"
    )
    cheap = made.harness("plan", "check", ANTHROPIC_MODEL="claude-haiku-5-5")
    assert cheap.exit_code == 0, cheap.stderr


def test_a_budget_is_judged_by_the_model_of_the_plans_profile(tmp_path: Path) -> None:
    made = make_project(tmp_path / "project", tmp_path / "home")
    plan = made.root / "plan.md"
    plan.write_text(plan.read_text().replace(BUDGET, f"{BUDGET}, usd: 2"))
    assert made.harness("init").exit_code == 0
    (problem,) = made.harness("plan", "check", "--json").document["problems"]
    assert "on claude-opus-5-5" in problem["message"]
    asked = plan.read_text().replace("loop: {", "agents: {profile: low-token}\nloop: {")
    plan.write_text(asked)
    cheap = made.harness("plan", "check")
    assert cheap.exit_code == 0, cheap.stderr
    plan.write_text(asked.replace("usd: 2", "usd: 1"))
    told = made.harness("plan", "check", "--json", ANTHROPIC_MODEL="claude-haiku-5-5")
    (problem,) = told.document["problems"]
    assert problem["code"] == "budget_too_small"
    assert "on claude-sonnet-5-5" in problem["message"]
