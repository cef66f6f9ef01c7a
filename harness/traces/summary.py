"""What a session came to: messages, tools, subagents, tokens and cost by model, time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from harness.clock import parse_iso
from harness.domain.prices import price_of
from harness.traces.ingest import Reading
from harness.traces.session_notes import SessionNotes
from harness.traces.states import State, replayed, text_of
from harness.traces.tally import count_of

_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_write": "cache_creation_input_tokens",
    "cache_read": "cache_read_input_tokens",
}
_CUT = 400
"""Characters of a message that are shown."""


@dataclass(slots=True)
class _Sum:
    answers: int = 0
    states: int = 0
    first: str = ""
    last: str = ""
    tools: dict[str, dict[str, int]] = field(default_factory=dict)
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)

    def add(self, state: State, source: str) -> None:
        self.states += 1
        if source not in self.sources:
            self.sources.append(source)
        for time in (state.time, state.ended):
            self.last = max(self.last, time)
            if time and (not self.first or time < self.first):
                self.first = time
        failed = {result["call"] for result in state.results if result["is_error"]}
        for block in state.action:
            if block["type"] == "tool_use":
                tool = self.tools.setdefault(block["name"], {"calls": 0, "errors": 0})
                tool["calls"] += 1
                tool["errors"] += block["id"] in failed
        tokens = self._spend(state)
        thread = state.thread
        if thread.name == "main":
            self.answers += 1
            return
        agent = self.agents.setdefault(thread.name, {"answers": 0, "output": 0})
        agent["answers"] += 1
        agent["output"] += tokens["output"]
        agent |= {"kind": thread.kind, "type": thread.agent_type, "call": thread.call}

    def _spend(self, state: State) -> dict[str, int]:
        model = state.model or "unknown"
        spent = self.models.setdefault(
            model, {"answers": 0, **dict.fromkeys(_TOKENS, 0), "usd": 0.0}
        )
        tokens = {name: count_of(state.usage, key) for name, key in _TOKENS.items()}
        spent["answers"] += 1
        for name, count in tokens.items():
            spent[name] += count
        price = price_of(model)
        known = price is not None and spent["usd"] is not None
        spent["usd"] = spent["usd"] + price.cost(state.usage) if known and price else None
        return tokens


def summarise(reading: Reading) -> Iterator[dict[str, Any]]:
    """Each session, oldest first. What a fork holds of another session is that one's."""
    sums: dict[str, _Sum] = {}
    for source, _tally, state in reading.states():
        sums.setdefault(state.thread.session, _Sum()).add(state, source.name)
    notes = reading.book.sessions
    rows = [_row(notes[name], sums.get(name, _Sum())) for name in notes]
    yield from sorted(rows, key=lambda row: (row["first"], row["session"]))


def _row(notes: SessionNotes, found: _Sum) -> dict[str, Any]:
    first = min(filter(None, (notes.first, found.first)), default="")
    last = max(notes.last, found.last)
    costs = [spent["usd"] for spent in found.models.values() if spent["usd"] is not None]
    unpriced = [name for name, spent in found.models.items() if spent["usd"] is None]
    return {
        "session": notes.id,
        "title": notes.title,
        "cwd": notes.cwd,
        "branch": notes.branch,
        "version": notes.version,
        "first": first,
        "last": last,
        "seconds": _seconds(first, last),
        "prompts": notes.prompts,
        "answers": found.answers,
        "states": found.states,
        "tools": found.tools,
        "subagents": [{"id": name, **agent} for name, agent in found.agents.items()],
        "models": found.models,
        "usd": round(sum(costs), 6) if costs else None,
        "unpriced": unpriced,
        "compactions": notes.compactions,
        "api_errors": notes.api_errors,
        "interrupts": notes.interrupts,
        "images": notes.images,
        "hooks": notes.hooks,
        "sources": found.sources,
    }


def conversation(reading: Reading, session: str) -> Iterator[dict[str, Any]]:
    """Every message of a session, cut: {time, thread, role, kind, text}."""
    for _source, _tally, state in reading.states():
        if state.thread.session != session:
            continue
        for message in state.added:
            text = message["content"]
            text = text if isinstance(text, str) else text_of(text)
            yield _line(state, message["role"], message["kind"], text)
        for block in replayed(state.action):
            if block["type"] == "tool_use":
                given = ", ".join(f"{key}={value!s:.200}" for key, value in block["input"].items())
                yield _line(state, "assistant", "call", f"{block['name']}({given})")
            elif block["type"] == "text" and block["text"]:
                yield _line(state, "assistant", "answer", block["text"])
        for result in state.results:
            text = result["content"]
            text = text if isinstance(text, str) else text_of(text)
            yield _line(state, "tool", "error" if result["is_error"] else "result", text)


def _line(state: State, role: str, kind: str, text: str) -> dict[str, Any]:
    thread = state.thread.name
    return {
        "time": state.time,
        "thread": thread,
        "role": role,
        "kind": kind,
        "text": text[:_CUT],
    }


def _seconds(first: str, last: str) -> float | None:
    moments = [_moment(text) for text in (first, last)]
    if moments[0] is None or moments[1] is None:
        return None
    return (moments[1] - moments[0]).total_seconds()


def _moment(text: str) -> datetime | None:
    try:
        return parse_iso(text)
    except ValueError:
        return None
