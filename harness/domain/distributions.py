"""Probabilities and quantiles of the distributions that judging uses: normal, Student's t, gamma,
Poisson, and the binomial of a fair coin.

By the series and continued fractions of the incomplete gamma and beta functions (Abramowitz and
Stegun 6.5, 26.5; Lentz's method), quantiles by Newton's. Tested against scipy's.
"""

import math
from collections.abc import Callable
from functools import cache

_TINY = 1e-300
_EXACT = 1e-16
_MOST_STEPS = 100_000
_STIRLING = 20.0
_LARGE = 1e5
"""From this shape on a gamma quantile is its asymptotic expansion, to the last digits."""


def normal_cdf(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """0 < p < 1"""
    # Bisected on a scale on which it is nearly a line, then Newton's.
    return _solved(normal_cdf, _normal_density, p, low=-39.0, high=39.0, start=0.0)


def _normal_density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def t_cdf(degrees: float, t: float) -> float:
    square = t * t
    if math.isinf(square):
        return 0.0 if t < 0 else 1.0
    both = degrees + square
    tail = _beta(degrees / 2, 0.5, degrees / both, square / both) / 2
    return tail if t < 0 else 1 - tail


@cache
def t_quantile(degrees: float, p: float) -> float:
    """0 < p < 1"""
    if p < 0.5:
        return -t_quantile(degrees, 1 - p)
    high = 2.0
    while t_cdf(degrees, -high) > 1 - p:
        high *= 2

    def above(t: float) -> float:
        return -t_cdf(degrees, -t)  # the small tail: nothing of it is lost beside 1

    def density(t: float) -> float:
        halves = _log_ratio(degrees / 2, 0.5)
        falls = (degrees + 1) / 2 * math.log1p(t * t / degrees)
        return math.exp(halves - falls) / math.sqrt(degrees * math.pi)

    return _solved(above, density, p - 1, low=0.0, high=high, start=high / 2)


def gamma_cdf(shape: float, x: float) -> float:
    """Of the gamma distribution of scale 1."""
    if x <= 0:
        return 0.0
    if x < shape + 1:
        return _gamma_series(shape, x)
    return 1 - _gamma_fraction(shape, x)


@cache
def gamma_quantile(shape: float, p: float) -> float:
    """0 < p < 1"""
    z = normal_quantile(p)
    # Cornish and Fisher's expansion; exact enough by itself where the shape is large.
    guess = (
        shape
        + z * math.sqrt(shape)
        + (z * z - 1) / 3
        + (z**3 - 7 * z) / (36 * math.sqrt(shape))
        - (3 * z**4 + 7 * z * z - 16) / (810 * shape)
    )
    if shape >= _LARGE:
        return guess
    high = max(guess, shape, 1.0)
    while gamma_cdf(shape, high) < p:
        high *= 2

    def cdf(x: float) -> float:
        return gamma_cdf(shape, x)

    def density(x: float) -> float:
        if x <= 0:
            return 0.0
        return math.exp((shape - 1) * math.log(x) - x - math.lgamma(shape))

    return _solved(cdf, density, p, low=0.0, high=high, start=max(guess, high * 1e-3))


def poisson_above(count: int, mean: float) -> float:
    """The chance of more than `count`."""
    return gamma_cdf(count + 1, mean)


def coin_cdf(heads: int, tosses: int) -> float:
    """The chance of at most `heads`."""
    if heads >= tosses:
        return 1.0
    return _beta(tosses - heads, heads + 1, 0.5, 0.5)


def _solved(
    cdf: Callable[[float], float],
    density: Callable[[float], float],
    p: float,
    *,
    low: float,
    high: float,
    start: float,
) -> float:
    """Where the rising `cdf` is `p`, between `low` and `high`."""
    x = min(max(start, low), high)
    for _ in range(200):
        off = cdf(x) - p
        low, high = (x, high) if off < 0 else (low, x)
        slope = density(x)
        better = x - off / slope if slope > 0 else math.nan
        if not low < better < high:
            better = (low + high) / 2
        if abs(better - x) <= _EXACT * 4 * abs(better):
            return better
        x = better
    return x


def _gamma_series(shape: float, x: float) -> float:
    """The lower part, for x < shape + 1."""
    term = total = 1 / shape
    for step in range(1, _MOST_STEPS):
        term *= x / (shape + step)
        total += term
        if term < total * _EXACT:
            break
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape))


def _gamma_fraction(shape: float, x: float) -> float:
    """The upper part, for x >= shape + 1."""
    b = x + 1 - shape
    c, d = 1 / _TINY, 1 / b
    value = d
    for step in range(1, _MOST_STEPS):
        a = -step * (step - shape)
        b += 2
        d = 1 / _apart(a * d + b)
        c = _apart(b + a / c)
        value *= c * d
        if abs(c * d - 1) < _EXACT * 4:
            break
    return value * math.exp(shape * math.log(x) - x - math.lgamma(shape))


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function at x; `rest` is 1 - x, with all its digits."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    logs = _log_ratio(max(a, b), min(a, b)) - math.lgamma(min(a, b))
    far = math.log1p(-rest) if rest < x else math.log(x)
    near = math.log1p(-x) if x < rest else math.log(rest)
    front = math.exp(logs + a * far + b * near)
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, rest) / b


def _log_ratio(a: float, b: float) -> float:
    """log(gamma(a + b) / gamma(a))"""
    if a < _STIRLING:
        return math.lgamma(a + b) - math.lgamma(a)
    # By Stirling's series: the difference of two large logarithms has lost its last digits.
    return (
        (a - 0.5) * math.log1p(b / a) + b * math.log(a + b) - b + _remainder(a + b) - _remainder(a)
    )


def _remainder(x: float) -> float:
    """Of Stirling's series."""
    square = 1 / (x * x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def _beta_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d = 1 / _apart(1 + part * d)
            c = _apart(1 + part / c)
            value *= c * d
        if abs(c * d - 1) < _EXACT * 4:
            break
    return value


def _apart(number: float) -> float:
    """Not zero: what Lentz's method divides by."""
    return number if abs(number) > _TINY else _TINY
