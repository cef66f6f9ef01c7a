"""The most that a request can cost.

A request whose cost has no bound, or whose price is not per token, is refused before it is sent.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.domain.prices import Price
from harness.model_gateway.gateway import Refusal
from harness.model_gateway.wire import Block, RecordedRequest, blocks
from harness.plans.model_budget import OVERHEAD_TOKENS

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
        "anthropic_version",
        "anthropic_beta",
        *USUAL,
    }
)
"""Top-level fields that cost no more than their own text. Others (mcp_servers, container ...) may
cost more."""
MOST_A_SECOND = 300
"""Output tokens that a model writes in a second at most: thinking is not shown on its way."""
SOURCES = ("base64", "text", "content")
"""Kinds of `source` whose bytes are in the request itself."""
TEXT = "text/plain"


def worst_case(request: RecordedRequest, price: Price | None) -> tuple[float, int]:
    """Dollars (0 without a price) and tokens at most: `worst_tokens` bounds the input, max_tokens
    the output.

    Raises Refusal without max_tokens.
    """
    limit = request.body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise Refusal(
            "The request has no max_tokens, so its cost has no bound.", hint="Send max_tokens."
        )
    asked = worst_tokens(request)
    usd = 0.0 if price is None else price.worst_case(asked, limit)
    return usd, asked + limit


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
