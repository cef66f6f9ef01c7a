"""Numbers that must stand nowhere, in every form in which they could."""

import re
from collections.abc import Collection


def long_ones(values: Collection[float]) -> set[float]:
    """Those that no time and no other number has by chance."""
    return {value for value in values if len(repr(value)) > 10}


def spelled(values: Collection[float]) -> re.Pattern[str]:
    """Their digits as they are, rounded to four places, and in per cent."""
    forms = [re.escape(f"{value:.7f}"[:-1]) for value in values]
    forms += [rf"\b{re.escape(f'{value:.4f}')}(?!\d)" for value in values]
    forms += [rf"\b{re.escape(f'{100 * value:.2f}')} ?%" for value in values]
    return re.compile("|".join(sorted(forms)))
