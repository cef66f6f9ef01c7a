"""The distributions that judging uses, against scipy's."""

import math

import pytest
from scipy import special

from harness.domain.distributions import (
    coin_cdf,
    gamma_cdf,
    gamma_quantile,
    normal_cdf,
    normal_quantile,
    poisson_above,
    t_cdf,
    t_quantile,
)

DEGREES = (1, 2, 3, 4, 5, 8, 10, 29, 100, 999)
SHAPES = (1, 2, 3, 5.5, 10, 50, 300, 1e4, 99_999, 100_000, 1e6, 1e9)


def near(value: float) -> object:
    return pytest.approx(float(value), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("degrees", DEGREES)
def test_students_t(degrees: int) -> None:
    for p in (0.001, 0.3, 0.6, 0.9, 0.975, 0.98, 0.995, 0.9999):
        assert t_quantile(degrees, p) == near(special.stdtrit(degrees, p))
    for t in (-math.inf, -500.0, -5.0, -2.0, -0.3, -1e-3, 0.0, 0.7, 40.0):
        assert t_cdf(degrees, t) == near(special.stdtr(degrees, t))


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma(shape: float) -> None:
    for p in (0.0025, 0.1, 0.5, 0.975, 0.9975):
        assert gamma_quantile(shape, p) == near(special.gammaincinv(shape, p))


@pytest.mark.parametrize("shape", SHAPES[:8])
def test_gamma_probabilities(shape: float) -> None:
    for x in (0.0, shape / 3, shape, shape + 1, 2 * shape, 20 * shape):
        assert gamma_cdf(shape, x) == pytest.approx(float(special.gammainc(shape, x)), rel=1e-9)


def test_normal() -> None:
    for z in (-math.inf, -30.0, -9.0, -3.0, -1.0, 0.0, 0.5, 8.0):
        assert normal_cdf(z) == near(special.ndtr(z))
    for p in (1e-12, 0.01, 0.4, 0.5, 0.975, 0.999999):
        assert normal_quantile(p) == near(special.ndtri(p))


def test_poisson() -> None:
    for count, mean in ((0, 0.1), (0, 1e-9), (3, 0.5), (10, 2.0), (30, 1e-3), (1000, 990.0)):
        assert poisson_above(count, mean) == near(special.pdtrc(count, mean))


@pytest.mark.parametrize("tosses", [1, 2, 5, 10, 33, 100, 1000])
def test_coins(tosses: int) -> None:
    for heads in {0, tosses // 3, tosses // 2, tosses - 1, tosses}:
        assert coin_cdf(heads, tosses) == near(special.bdtr(heads, tosses, 0.5))
