"""How many tokens a request can bring at most; what has no bound, or a price of its own, is refused
unsent."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model_gateway.gateway import Refusal
from harness.model_gateway.wire import Block, RecordedRequest, blocks

OVERHEAD_TOKENS = 2_000
"""What the service adds to a request for tools and the like, at most."""
IMAGE_TOKENS = 5_000
"""Of one image, however large and however well compressed: the service scales it down."""
PDF_TOKENS = 1_000_000
"""The largest context window: nothing in a PDF's size says how many pages it shows."""
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
"""Top-level fields that bring nothing but their own text. Others (mcp_servers, container ...) may
bring more."""
SOURCES = ("base64", "text", "content")
"""Kinds of `source` whose bytes stand in the request itself."""
TEXT = "text/plain"


def require_bounded(body: Mapping[str, Any]) -> None:
    """Raises Refusal (price_unknown, cost_not_bounded), naming the part of the request."""
    _refuse_unpriced(body)
    if unknown := [
        name for name, value in body.items() if name not in KNOWN and value not in (None, [], {})
    ]:
        raise Refusal(
            f"The field {unknown[0]!r} of the request may bring tokens that its size does not"
            " show.",
            hint="Leave it out, or play a scenario.",
            code="cost_not_bounded",
        )
    _refuse_compaction(body.get("context_management"))
    for block in _all_blocks(body):
        source = block.get("source")
        kind = source.get("type") if isinstance(source, dict) else None
        if "file_id" in block or (isinstance(source, dict) and kind not in SOURCES):
            raise Refusal(
                f"A block of the type {block.get('type')!r} brings a file or an address (source"
                f" type {kind!r}); its tokens cannot be counted before.",
                hint="Send its bytes (base64) or its text.",
                code="cost_not_bounded",
            )


def worst_tokens(request: RecordedRequest) -> int:
    """A token is at least one byte, so the size bounds text; pictures and pages of a PDF have
    bounds of their own."""
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
    """Clearing makes a request smaller; anything else may be a further answer that the service
    bills."""
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
    """Of system and messages, also those inside tool results and documents; what a tool was given
    is no block."""
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
    """What is billed beyond tokens or at another rate: tools that the service runs, and faster
    tiers."""
    kinds = [
        str(tool.get("type") or "custom")
        for tool in body.get("tools") or ()
        if isinstance(tool, dict)
    ]
    if server := [kind for kind in kinds if not kind.startswith(CLIENT_TOOLS)]:
        raise Refusal(
            f"The tool {server[0]!r} may be run by the service and billed apart.",
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
