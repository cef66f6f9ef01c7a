"""Numbers that an agent states, with the precision in which it states them. Never evidence."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from harness.errors import UsageError

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z")
_LARGE = 1e9
"""From here on four decimals would be more digits than anybody reads."""


@dataclass(frozen=True)
class Claim:
    value: float
    text: str
    """As it was written: `0.90` claims two digits, `0.9` one."""


def claim_from(name: str, text: str, *, where: str) -> Claim:
    """Raises UsageError naming the claim for anything but a finite plain number, e.g. `93%`."""
    stripped = text.strip()
    if len(stripped) > 60 or not _NUMBER.match(stripped) or not math.isfinite(float(stripped)):
        shown = stripped if len(stripped) <= 40 else stripped[:37] + "..."
        raise UsageError(
            f"{where}: claims.{name} is {shown!r}; expected a plain number such as 0.94.",
            hint="Write the metric's value without a percent sign, a unit or words.",
            code="claim_not_a_number",
        )
    return Claim(float(stripped), stripped)


def agrees(claim: Claim, value: float) -> bool:
    """Whether `value` is within half a unit of the claim's last digit, or the nearest float to it
    where that has more digits than floats do; never for a value that is not finite."""
    if not (math.isfinite(value) and math.isfinite(claim.value)):
        return False
    return value == claim.value or abs(_exact(value) - Decimal(claim.text)) <= _half_unit(claim)


def precise_enough(claim: Claim, value: float) -> bool:
    """Whether agreeing with the finite `value` says something: half a unit of the claim's last
    digit is at most a tenth of `value`, or the claim is `value` exactly. `1` for 0.893 is not,
    `0.9` is; two significant digits always are."""
    return Decimal(claim.text) == _exact(value) or 10 * _half_unit(claim) <= abs(_exact(value))


def claim_of(value: float) -> str:
    """The text of a claim that agrees with the finite `value` and is precise enough: four decimals,
    or four significant digits of a number that is too small or too large for them."""
    decimals = f"{value:.4f}"
    claim = Claim(float(decimals), decimals)
    return decimals if abs(value) < _LARGE and precise_enough(claim, value) else f"{value:.3e}"


def _exact(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _half_unit(claim: Claim) -> Decimal:
    exponent = Decimal(claim.text).as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(5).scaleb(exponent - 1)
