"""Live, and written down: each answer becomes a turn of a scenario that the scripted gateway
replays."""

import re
import threading
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.errors import GatewayError
from harness.files import atomic_write
from harness.model_gateway.scripted import REFERENCE
from harness.model_gateway.wire import RecordedRequest

_WORD = re.compile(r"[a-z][a-z_]{2,}(?:-[a-z]+)*\Z")
_WIRE_ID = re.compile(r"toolu_[A-Za-z0-9_]+")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes every string that a reader of YAML 1.1 or 1.2 could take for something else."""


def _string(dumper: _Dumper, text: str) -> Any:
    style = None if _WORD.match(text) else "|" if "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


class Recording:
    """An observer for `Live`: `Live(..., observe=Recording(path))`.

    The file is replaced after every answer. Headers, thinking and requests are not written; what
    the model said and the inputs of its tools are, word for word. A turn that was asked for again
    replaces the earlier one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turns: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __call__(self, request: RecordedRequest, message: dict[str, Any]) -> None:
        """Raises GatewayError for a subagent's request, which a scenario has no place for."""
        if request.subagent is not None:
            raise GatewayError(
                f"{request.where}: a subagent asked, and a scenario has no place for one.",
                hint="Record a session without the Agent tool.",
            )
        with self._lock:
            session = self._turns.setdefault(
                (request.role, request.experiment, request.attempt), {}
            )
            session[request.turn] = _turn(request.turn, message)
            atomic_write(self.path, as_yaml(self._turns))


def as_yaml(turns: dict[tuple[str, str, str], dict[int, dict[str, Any]]]) -> str:
    """The scenario, sessions in order of their first answer; of a session only what has no gap
    before it."""
    sessions = []
    for (role, experiment, attempt), known in turns.items():
        whole: list[dict[str, Any]] = []
        while len(whole) in known:
            whole.append(known[len(whole)])
        if whole:
            sessions.append(
                {"role": role, "experiment": experiment, "attempt": attempt, "turns": whole}
            )
    text = yaml.dump(
        {"sessions": sessions}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
    )
    return (
        "# Recorded from a live session; replay it with `harness run PLAN --scenario"
        f" FILE`.\n{text}"
    )


def _turn(number: int, message: dict[str, Any]) -> dict[str, Any]:
    content = [block for block in message.get("content", []) if isinstance(block, dict)]
    uses = [block for block in content if block.get("type") == "tool_use"]
    names = {block["id"]: f"turn-{number + 1}-{place + 1}" for place, block in enumerate(uses)}
    text = "\n\n".join(
        block["text"] for block in content if block.get("type") == "text" and block.get("text")
    )
    turn: dict[str, Any] = {}
    if text or not uses:
        turn["text"] = _plain(text or "(no text)", names)
    if uses:
        turn["tools"] = [
            {"id": names[use["id"]], "name": use["name"], "input": _plain(use["input"], names)}
            for use in uses
        ]
    return turn


def _plain(value: Any, names: dict[str, str]) -> Any:
    """Tool use ids of the service become the scenario's; words that look like a reference are kept
    as words."""
    if isinstance(value, dict):
        return {key: _plain(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, names) for item in value]
    if not isinstance(value, str):
        return value
    words = _WIRE_ID.sub(lambda match: names.get(match[0], match[0]), value)
    return REFERENCE.sub(lambda match: "$" + match[0], words)
