"""What a request costs: the one table of prices, and the most that a request can cost.

A request whose cost has no bound, or whose price is not per token, is refused before it is sent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.model_gateway.gateway import Refusal
from harness.model_gateway.wire import Block, RecordedRequest, blocks

MILLION = 1_000_000
PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
OVERHEAD_TOKENS = 2_000
"""The most that the service adds to a request, for tools and the like."""
IMAGE_TOKENS = 5_000
"""Of one image of any size and compression: the service scales it down."""
PDF_TOKENS = 1_000_000
"""The largest context window: the size of a PDF does not tell how many pages it has."""
CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "memory_", "computer_", "tool_search_tool_")
USUAL = {"speed": "standard", "inference_geo": "global"}
KNOWN = frozenset(
    {
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "max_tokens",
        "metadata",
        "stream",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
        "thinking",
        "cache_control",
        "context_management",
        "output_config",
        "output_format",
        "betas",
        "diagnostics",
        *USUAL,
    }
)
"""Top-level fields that cost no more than their own text. Others (mcp_servers, container ...) may
cost more."""
SOURCES = ("base64", "text", "content")
"""Kinds of `source` whose bytes are in the request itself."""
TEXT = "text/plain"

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


# List prices that Claude Code CLI 2.1.332 reports for its own models, measured with known token
# counts against a scripted gateway. Until the table is corrected, a caller passes a changed price
# or a missing model by `prices=`.
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


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of `model` in `prices`, else its family's without the date; None if unknown."""
    return prices.get(model) or FAMILIES.get(_DATE.sub("", model))


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def worst_case_usd(request: RecordedRequest, price: Price) -> float:
    """Dollars at most: `worst_tokens` bounds the input, max_tokens the output.

    Raises Refusal without max_tokens.
    """
    limit = request.body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise Refusal(
            "The request has no max_tokens, so its cost has no bound.", hint="Send max_tokens."
        )
    return price.worst_case(worst_tokens(request), limit)


def require_bounded(body: Mapping[str, Any]) -> None:
    """Raises Refusal (price_unknown, cost_not_bounded), naming the part of the request."""
    _refuse_unpriced(body)
    if unknown := [
        name for name, value in body.items() if name not in KNOWN and value not in (None, [], {})
    ]:
        raise Refusal(
            f"The field {unknown[0]!r} of the request may cost tokens that its size does not show.",
            hint="Leave it out, or play a scenario.",
            code="cost_not_bounded",
        )
    _refuse_compaction(body.get("context_management"))
    for block in _all_blocks(body):
        source = block.get("source")
        kind = source.get("type") if isinstance(source, dict) else None
        if "file_id" in block or (isinstance(source, dict) and kind not in SOURCES):
            raise Refusal(
                f"A block of type {block.get('type')!r} refers to a file or an address (source type"
                f" {kind!r}); its tokens cannot be counted before it is sent.",
                hint="Send its bytes (base64) or its text.",
                code="cost_not_bounded",
            )


def worst_tokens(request: RecordedRequest) -> int:
    """The most tokens that the request's input can have."""
    # A token is at least one byte, so the size bounds all text. An image or a PDF can have more
    # tokens than its compressed bytes: they have bounds of their own.
    images, pages = 0, 0
    for block in _all_blocks(request.body):
        source = block.get("source")
        if block.get("type") == "image":
            images += IMAGE_TOKENS
        elif (
            isinstance(source, dict)
            and source.get("type") == "base64"
            and source.get("media_type") != TEXT
        ):
            pages = PDF_TOKENS
    return request.bytes + OVERHEAD_TOKENS + images + pages


def _refuse_compaction(managed: Any) -> None:
    """Raises Refusal for an edit other than clearing: it may be a further answer, billed apart."""
    edits = managed.get("edits") if isinstance(managed, dict) else None
    kinds = (
        [str(edit.get("type")) for edit in edits if isinstance(edit, dict)]
        if isinstance(edits, list)
        else []
    )
    if other := [kind for kind in kinds if not kind.startswith("clear_")]:
        raise Refusal(
            f"context_management asks for {other[0]!r}, whose cost is not known.",
            hint="Leave it out.",
            code="cost_not_bounded",
        )


def _all_blocks(body: Mapping[str, Any]) -> Iterator[Block]:
    """The blocks of system and messages, also inside tool results and documents, but not in the
    input of a tool."""
    waiting = [
        body.get("system"),
        *(message.get("content") for message in blocks(body.get("messages"))),
    ]
    while waiting:
        for block in blocks(waiting.pop()):
            yield block
            source = block.get("source")
            waiting += [
                block.get("content"),
                source.get("content") if isinstance(source, dict) else None,
            ]


def _refuse_unpriced(body: Mapping[str, Any]) -> None:
    """Raises Refusal for what is billed beyond tokens or at another rate: tools that the service
    runs, and faster tiers."""
    kinds = [
        str(tool.get("type") or "custom")
        for tool in body.get("tools") or ()
        if isinstance(tool, dict)
    ]
    if server := [kind for kind in kinds if not kind.startswith(CLIENT_TOOLS)]:
        raise Refusal(
            f"The service may run the tool {server[0]!r} and bill it apart.",
            hint="Leave it out of the role's tools.",
            code="price_unknown",
        )
    for name, usual in USUAL.items():
        if body.get(name) not in (None, usual):
            raise Refusal(
                f"{name} {body[name]!r} has a price of its own.",
                hint="Leave it out.",
                code="price_unknown",
            )
