"""ATIF, the Agent Trajectory Interchange Format of Harbor: `schema_version` ATIF-v1.x, `steps`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.traces.book import Book
from harness.traces.chat import Chat
from harness.traces.documents import read_document
from harness.traces.states import State, listed
from harness.traces.tally import Tally, count_of

NAME = "atif"
_USAGE = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cache_read_input_tokens": "cached_tokens",
}


def fits(rows: list[dict[str, Any]]) -> bool:
    first = rows[0]
    version = str(first.get("schema_version"))
    return version.startswith("ATIF-v") and isinstance(first.get("steps"), list)


def read(path: Path, tally: Tally, book: Book) -> Iterator[State]:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    document = read_document(path, tally)
    agent = document.get("agent")
    model = str(agent.get("model_name") or "") if isinstance(agent, dict) else ""
    session = str(document.get("session_id") or path.stem)
    messages = [each for step in listed(document.get("steps")) for each in _messages(step)]
    yield from Chat(tally, book, session=session).read(messages, model)


def _messages(step: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(step, dict):
        return
    source = step.get("source")
    if source != "agent":
        role = "system" if source == "system" else "user"
        yield {"role": role, "content": step.get("message")}
        return
    yield {
        "role": "assistant",
        "content": step.get("message"),
        "reasoning_content": step.get("reasoning_content"),
        "timestamp": step.get("timestamp"),
        "model": step.get("model_name"),
        "usage": _usage(step.get("metrics")),
        "tool_calls": [
            {
                "id": call.get("tool_call_id"),
                "function": {
                    "name": call.get("function_name"),
                    "arguments": call.get("arguments"),
                },
            }
            for call in listed(step.get("tool_calls"))
            if isinstance(call, dict)
        ],
    }
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for result in listed(results):
        if isinstance(result, dict):
            call = result.get("source_call_id")
            yield {"role": "tool", "tool_call_id": call, "content": result.get("content")}


def _usage(metrics: Any) -> dict[str, int]:
    """In the names that prices go by; ATIF's prompt tokens hold the cached ones."""
    if not isinstance(metrics, dict):
        return {}
    usage = {name: count_of(metrics, theirs) for name, theirs in _USAGE.items()}
    cached = usage["cache_read_input_tokens"]
    return usage | {"input_tokens": max(0, usage["input_tokens"] - cached)}
