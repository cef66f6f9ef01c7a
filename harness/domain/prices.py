"""The one table of prices of models: list prices, per token, with the day they are of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MILLION = 1_000_000
PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
MODEL = "ANTHROPIC_MODEL"
"""The variable by which a person names another model than the CLI's own."""
_VENDOR = re.compile(r"\A(?:.*/)?(?:[a-z-]+\.)?anthropic\.")
_VERSION = re.compile(r"-v\d+(?::\d+)?\Z")
_DATE = re.compile(r"[-@]20\d{6}\Z")


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars a million tokens."""

    input: float
    output: float
    cache_write: float
    """Kept for five minutes."""
    cache_write_1h: float
    cache_read: float
    long_above: int | None = None
    """A prompt of more tokens than this costs `long_factor` times as much, its answer too."""
    long_factor: float = 1.0

    def worst_case(self, input_tokens: int, output_tokens: int) -> float:
        """Dollars for at most so many tokens, however many of them are written to the cache."""
        # Which part of the prompt is written to the cache is the service's choice.
        dearest = max(self.input, self.cache_write, self.cache_write_1h)
        return (
            self._factor(input_tokens)
            * (input_tokens * dearest + output_tokens * self.output)
            / MILLION
        )

    def cost(self, usage: Mapping[str, Any]) -> float:
        """Dollars for the `usage` object of a finished answer."""
        prompt = sum(_count(usage, name) for name in PROMPT)
        return self._factor(prompt) * self._short(usage)

    def _factor(self, prompt_tokens: int) -> float:
        return (
            self.long_factor
            if self.long_above is not None and prompt_tokens > self.long_above
            else 1.0
        )

    def _short(self, usage: Mapping[str, Any]) -> float:
        written = _count(usage, "cache_creation_input_tokens")
        split = usage.get("cache_creation")
        hour = (
            min(written, _count(split, "ephemeral_1h_input_tokens"))
            if isinstance(split, Mapping)
            else 0
        )
        return (
            _count(usage, "input_tokens") * self.input
            + (written - hour) * self.cache_write
            + hour * self.cache_write_1h
            + _count(usage, "cache_read_input_tokens") * self.cache_read
            + _count(usage, "output_tokens") * self.output
        ) / MILLION


def _price(input_usd: float, output_usd: float, cache_read: float, **long_prompt: Any) -> Price:
    """Cache writes cost 1.25 and 2 times the input, in every family."""
    return Price(
        **long_prompt,
        input=input_usd,
        output=output_usd,
        cache_write=1.25 * input_usd,
        cache_write_1h=2 * input_usd,
        cache_read=cache_read,
    )


PRICES_OF = "2026-11-27"
"""The day on which they were measured."""
DEFAULT_MODEL = "claude-opus-5-5"
"""What the CLI asks where nobody names a model."""

# List prices that Claude Code CLI 2.1.332 reports for its own models, measured with known token
# counts against a scripted gateway.
FAMILIES: dict[str, Price] = {
    "claude-opus-5-5": _price(4, 20, 0.2),
    "claude-opus-5": _price(5, 25, 0.5),
    "claude-opus-4-8": _price(5, 25, 0.5),
    "claude-opus-4-5": _price(5, 25, 0.5),
    "claude-sonnet-5-5": _price(2, 10, 0.1),
    "claude-sonnet-5": _price(2, 10, 0.2),
    "claude-sonnet-4-6": _price(3, 15, 0.3),
    "claude-haiku-5-5": _price(0.1, 0.5, 0.01, long_above=100_000, long_factor=5),
    "claude-haiku-4-5": _price(1, 5, 0.1),
    "claude-fable-5-2": _price(8, 40, 0.2),
    "claude-fable-5": _price(10, 50, 1),
}
"""A model's name without a date -> its price."""


def price_of(model: str) -> Price | None:
    """The price of `model`'s family, without the date; None if unknown. Names of Bedrock and Vertex
    (us.anthropic.NAME-v1:0, NAME@20260101) are the family's too."""
    return FAMILIES.get(family_of(model))


def family_of(model: str) -> str:
    bare = _VERSION.sub("", _VENDOR.sub("", model))
    return _DATE.sub("", bare)


def model_of(environment: Mapping[str, str]) -> str:
    """What sessions ask for."""
    return environment.get(MODEL) or DEFAULT_MODEL


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0
