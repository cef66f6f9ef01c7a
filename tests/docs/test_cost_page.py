"""docs/cost.md is rendered from the prices, and its figures are those of a night step by step."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.prices import FAMILIES, PRICES_OF
from harness.ledger.spending import Paid
from harness.model_gateway.estimate import LOADS, assumed, night

ROOT = Path(__file__).resolve().parents[2]
OPUS = "claude-opus-5-5"


def test_the_page_is_what_the_prices_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/cost.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = (ROOT / "docs/cost.md").read_text("utf-8")
    assert f"List prices of {PRICES_OF}" in text
    assert all(f"| {name} |" in text for name in FAMILIES)
    (usd,) = re.findall(rf"\| {OPUS} \| [\d.]+ \| ([\d.]+) \|\n", text)
    assert float(usd) == pytest.approx(by_hand(), abs=0.005)


def by_hand() -> float:
    """Eight experiments, each request on its own: 4, 5, 0.2 and 20 dollars a million."""
    total = 0.0
    for load in LOADS.values():
        for turn in range(load.requests):
            new = load.prompt if turn == 0 else load.growth
            old = 0 if turn == 0 else load.prompt + load.growth * (turn - 1)
            total += 8 * load.sessions * (new * 5 + old * 0.2 + load.answer * 20) / 1e6
    return total


def test_what_was_metered_takes_the_place_of_what_is_assumed() -> None:
    one = {"plan": "p", "session": "a", "role": "oracle", "usd": 2.0, "tokens": 1000}
    paid = [Paid(**one), Paid(**one), Paid(**{**one, "session": "b", "usd": 5.0})]
    rest = night(2, paid, model=OPUS, most_usd=9.0)
    others = sum(
        load.sessions * (assumed(role, OPUS).usd or 0.0)
        for role, load in LOADS.items()
        if role != "oracle"
    )
    assert rest.from_measured == ("oracle",)
    assert rest.expected.usd == pytest.approx(2 * (4.5 + others))
    assert "measured here: oracle" in rest.words
    assert "at most $9.00 (budget.usd)" in rest.words


def test_a_model_without_a_price_has_tokens_alone() -> None:
    rest = night(1, [], model="my-deployment", most_tokens=1_000_000)
    assert rest.expected.usd is None
    assert "$" not in rest.words
    assert "at most 1,000,000 tokens (budget.tokens)" in rest.words


@pytest.mark.parametrize(
    ("experiments", "phases", "words"),
    [
        (1, 0, "1 experiment"),
        (2, 1, "2 experiments and 1 phase"),
        (1, 2, "1 experiment and 2 phases"),
    ],
)
def test_one_is_no_plural(experiments: int, phases: int, words: str) -> None:
    rest = night(experiments, [], model=OPUS, phases=["analyst"] * phases, most_usd=9.0)
    assert f" expected for {words} on {OPUS} (" in rest.words


def test_each_phase_that_is_due_is_a_session_more() -> None:
    without = night(2, [], model=OPUS, most_usd=9.0)
    gated = night(2, [], model=OPUS, phases=["data-engineer", "analyst"], most_usd=9.0)
    each = assumed("analyst", OPUS).usd
    assert each == pytest.approx(
        sum(
            (6_000 if turn == 0 else 2_000) * 5e-6
            + (6_000 + 2_000 * (turn - 1) if turn else 0) * 0.2e-6
            + 700 * 20e-6
            for turn in range(10)
        )
    )
    assert gated.expected.usd == pytest.approx((without.expected.usd or 0.0) + 2 * each)
    assert "for 2 experiments and 2 phases on" in gated.words
    assert "phases" not in without.words
    paid = [Paid(plan="p", session="a", role="analyst", usd=3.0, tokens=1000)]
    known = night(2, paid, model=OPUS, phases=["data-engineer", "analyst"], most_usd=9.0)
    assert known.expected.usd == pytest.approx((without.expected.usd or 0.0) + each + 3.0)
    assert known.from_measured == ("analyst",)
