"""Writes the figures in docs/cost.md, by the table of prices and the loads that are assumed.

`python docs/cost.py` writes it; with `--check` it writes nothing and exits 1 if it would change.
"""

import sys
from pathlib import Path

from harness.domain.prices import DEFAULT_MODEL, FAMILIES, PRICES_OF
from harness.model_gateway.estimate import LOADS, PHASE, assumed, night
from harness.plans.model_budget import MOST_OUTPUT, first_request

PAGE = Path(__file__).resolve().parent / "cost.md"
EXPERIMENTS = 8
"""Of the plan that `harness init` writes."""
BEGIN = "<!-- figures: docs/cost.py writes them -->\n"
END = "<!-- end of figures -->"


def page() -> str:
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    figures = "\n".join([_prices(), _night(), _loads()])
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def _prices() -> str:
    lines = [
        f"## Prices\n\nList prices of {PRICES_OF} in US dollars a million tokens, and the most that"
        f" the first request of a session can cost (an answer may have {MOST_OUTPUT:,} tokens):"
        " the least that `budget.usd` can be.\n",
        "| model | read | cache written | cache read | written | first request, at most |",
        "|---|---|---|---|---|---|",
    ]
    for name, price in FAMILIES.items():
        cells = (price.input, price.cache_write, price.cache_read, price.output)
        shown = " | ".join(f"{cell:g}" for cell in cells)
        lines.append(f"| {name} | {shown} | {first_request(name).usd:.2f} |")
    long = [name for name, price in FAMILIES.items() if price.long_above]
    for name in long:
        price = FAMILIES[name]
        lines.append(
            f"\nA prompt of {name} above {price.long_above:,} tokens costs"
            f" {price.long_factor:g} times as much, its answer too."
        )
    return "\n".join(lines) + "\n"


def _night() -> str:
    lines = [
        f"## A night\n\nOf {EXPERIMENTS} experiments, as `harness init` writes them, until the"
        " sessions of your project were metered:\n",
        "| model | million tokens | US dollars |",
        "|---|---|---|",
    ]
    for name in FAMILIES:
        total = night(EXPERIMENTS, [], model=name).expected
        lines.append(f"| {name} | {total.tokens / 1e6:.1f} | {total.usd:.2f} |")
    lines.append(f"\nThe CLI asks {DEFAULT_MODEL} where nobody names a model.")
    return "\n".join(lines) + "\n"


def _loads() -> str:
    lines = [
        "## What that assumes\n\nEach request writes what is new to the cache and reads the rest"
        " from it.\n",
        "| role | sessions an experiment | requests | first prompt | each adds | each answer |"
        f" US dollars a session on {DEFAULT_MODEL} |",
        "|---|---|---|---|---|---|---|",
    ]
    for role, load in LOADS.items():
        lines.append(
            f"| {role} | {load.sessions:g} | {load.requests} | {load.prompt:,} | {load.growth:,}"
            f" | {load.answer:,} | {assumed(role, DEFAULT_MODEL).usd:.2f} |"
        )
    lines.append(
        f"\nWhere phases are gates, each one that is due adds one session of its role:"
        f" {PHASE.requests} requests, {PHASE.prompt:,} tokens first, {PHASE.growth:,} each,"
        f" {PHASE.answer:,} an answer, ${assumed('analyst', DEFAULT_MODEL).usd:.2f}."
    )
    return "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        same = PAGE.read_text("utf-8") == text
        if not same:
            print("docs/cost.md is not what docs/cost.py makes: run it", file=sys.stderr)
        return 0 if same else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
