"""A budget that pays no request is refused while a person can still change it."""

import pytest

from harness.domain.prices import FAMILIES
from harness.plans.model_budget import (
    budget_problems,
    first_request,
    least_budget,
    too_small,
)
from harness.plans.schema import Budget

FEW = {"experiments": 8, "run_minutes": 5.0, "total_minutes": 40.0}
HAIKU = "claude-haiku-5-5"


@pytest.mark.parametrize("model", sorted(FAMILIES))
def test_the_least_is_enough_and_a_cent_less_is_not(model: str) -> None:
    least = first_request(model)
    assert least.usd is not None
    assert too_small({"usd": least.usd}, model) is None
    assert "budget.usd is" in str(too_small({"usd": least.usd - 0.01}, model))
    assert too_small({"tokens": least.tokens}, model) is None
    assert "budget.tokens is" in str(too_small({"tokens": least.tokens - 1}, model))
    assert f"{least.tokens:,}" in least_budget(model)


def test_a_plan_without_models_has_no_problem() -> None:
    assert list(budget_problems(Budget(**FEW), HAIKU)) == []


def test_what_is_refused_on_one_model_is_not_on_another() -> None:
    budget = Budget(**FEW, usd=0.5)
    assert list(budget_problems(budget, HAIKU)) == []
    (problem,) = budget_problems(budget, "claude-opus-5-5")
    assert problem.code == "budget_too_small"
    assert "Set budget.usd to 2.71 or more" in problem.hint


def test_a_model_without_a_price_is_not_refused_by_dollars() -> None:
    assert list(budget_problems(Budget(**FEW, usd=0.01), "my-deployment")) == []
