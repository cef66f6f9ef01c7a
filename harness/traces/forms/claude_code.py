"""Transcripts of Claude Code, row by row, as states; memory does not follow the file's size."""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.jsonl import parse_line
from harness.traces.book import Book
from harness.traces.file_lines import LONGEST, file_lines
from harness.traces.row_counts import RowCounts
from harness.traces.seen_before import forked_from, origin, own_id
from harness.traces.states import (
    State,
    Thread,
    plain_blocks,
    result_of,
    state_id,
    text_of,
)
from harness.traces.tally import Tally
from harness.traces.transcripts import (
    AGENT_FILE,
    AGENT_TOOLS,
    NOT_TYPED,
    SYNTHETIC,
    agent_kind,
    agent_meta,
    is_row,
)

_INTERRUPTED = "[Request interrupted by user"
_REFUSED = (
    "The user doesn't want to",
    "Permission to use ",
    "PreToolUse:",
)
_BLOCKED = (
    "hook_blocking_error",
    "hook_stopped_continuation",
)
_MOST_ROOTS = 10_000
"""Rows of side conversations that are remembered, where rows do not name their agent."""
_MESSAGES = ("user", "assistant")
NAME = "claude-code"
_UNPLACED = ("file-history-snapshot", "file-history-delta", "fork-context-ref", "summary")
"""Rows that name neither their session nor themselves."""


def fits(rows: list[dict[str, Any]]) -> bool:
    return any(is_row(row) or row.get("type") in _UNPLACED for row in rows)


def read(path: Path, tally: Tally, book: Book) -> Iterator[State]:
    """The states of one file, each when it has ended.

    Raises NotFoundError or UsageError when the file cannot be read.
    """
    if path.name.startswith(AGENT_FILE):
        _read_meta(path, book)
    yield from _File(book, tally, path.stem).states(path)


def _read_meta(path: Path, book: Book) -> None:
    """What the file beside a subagent's says: its type, and the call that started it."""
    meta, agent = agent_meta(path), path.stem.removeprefix(AGENT_FILE)
    call, kind = meta.get("toolUseId"), meta.get("agentType")
    if isinstance(call, str):
        book.calls[agent] = call
    if isinstance(kind, str):
        book.types[agent] = kind


class _File:
    def __init__(self, book: Book, tally: Tally, stem: str) -> None:
        self._book, self._before, self._tally = book, book.before, tally
        self._stem = stem
        self._main: Thread | None = None
        """That of the newest row of a main conversation."""
        self._threads: dict[tuple[str, str], Thread] = {}
        self._roots: OrderedDict[str, str] = OrderedDict()
        self._counts = RowCounts(tally)
        self._copying: tuple[int, str] = (0, "")
        self._line = 0
        self._title = ""

    def states(self, path: Path) -> Iterator[State]:
        tally = self._tally
        line = b"\n"
        for self._line, line in enumerate(file_lines(path), 1):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                rows, whole = self._bad(line)
                for row in rows:
                    if (ended := self._row(row, counted=whole)) is not None:
                        yield ended
                continue
            if type(row) is dict:
                tally.rows += 1
                if (ended := self._row(row)) is not None:
                    yield ended
            else:
                tally.non_object_rows += 1
                tally.problem(f"line {self._line}: {type(row).__name__}, not an object")
        tally.lines = self._line
        tally.ends_newline = line.endswith(b"\n")
        yield from self._finish()

    def _finish(self) -> Iterator[State]:
        for thread in self._threads.values():
            if (ended := thread.end("end")) is not None:
                yield ended
        self._counts.finish()
        if self._title and (self._threads or self._counts.session):
            self._book.notes(self._counts.session or self._stem).title = self._title

    def _bad(self, line: bytes) -> tuple[list[dict[str, Any]], bool]:
        """The rows of a line that is no strict JSON, and whether it is one row all the same: with
        NaN, half a character, or in Latin-1."""
        tally = self._tally
        if not line.strip(b" \t\r\n\0"):
            tally.blank += 1
            return [], False
        where = f"line {self._line}"
        if len(line) >= LONGEST:
            tally.bad += 1
            tally.problem(f"{where}: longer than {LONGEST >> 20} MiB")
            return [], False
        parsed = parse_line(line, is_row)
        if len(parsed.rows) == 1 and not parsed.lost:
            tally.rows += 1
            if parsed.problem:
                tally.problem(f"{where}: {parsed.problem}")
            return parsed.rows, True
        rows = [row for row in parsed.rows if is_row(row)]
        tally.bad += 1
        tally.recovered += len(rows)
        if not parsed.lost:
            tally.glued += 1
            tally.problem(f"{where}: {len(rows)} rows on one line")
        elif not line.endswith(b"\n"):
            tally.torn = True
            tally.problem(f"{where}: torn, the last one")
        else:
            tally.problem(f"{where}: torn; {len(rows)} rows of it could be read")
        return rows, False

    def _row(self, row: dict[str, Any], *, counted: bool = True) -> State | None:
        tally, kind = self._tally, row.get("type")
        message = row.get("message")
        if kind == "user":
            tally.user_rows += counted
        elif kind == "assistant":
            tally.assistant_rows += counted
        if type(message) is not dict or kind not in _MESSAGES:
            self._counts.place(row, is_message=False)
            self._other(row, str(kind))
            return None
        again = self._counts.place(row, is_message=True)
        thread = self._thread(row)
        if "forkedFrom" in row:
            thread.forked_from = forked_from(row)
        if kind == "assistant":
            late = self._counts.answer(id(thread), message, counted=counted)
            return None if again else self._answer(thread, row, message, late=late)
        blocks = plain_blocks(message.get("content"))
        results = [block for block in blocks if block["type"] == "tool_result"]
        typed = not results and self._is_typed(row, thread, blocks)
        self._counts.results(results, typed=typed)
        if again:
            return None
        before = self._before
        if before.matters and before.copy(origin(row)):
            tally.copied += 1
        elif typed:
            thread.asked += 1
            self._book.notes(thread.session).prompted(self._counts.time)
        for block in results:
            self._result(thread, row, block)
        if len(blocks) > len(results):
            self._user(thread, row, blocks, typed=typed)
        return None

    def _thread(self, row: dict[str, Any]) -> Thread:
        session, agent = self._counts.session or self._stem, ""
        main = self._main
        if row.get("isSidechain"):
            given = row.get("agentId")
            agent = str(given) if given else self._root(row)
        elif main is not None and main.session == session:
            return main
        thread = self._threads.get((session, agent))
        if thread is None:
            thread = self._threads[session, agent] = Thread(session)
            self._describe(session, row)
            if agent:
                thread.name, thread.kind = agent, agent_kind(agent, "").value
                thread.call = self._book.calls.get(agent)
                thread.agent_type = self._book.types.get(agent)
        if not agent:
            self._main = thread
        return thread

    def _root(self, row: dict[str, Any]) -> str:
        """A name for the side conversation that a row without an agent's id belongs to."""
        uuid = str(row.get("uuid"))
        name = self._roots.get(str(row.get("parentUuid"))) or f"sidechain-{uuid[:8]}"
        self._roots[uuid] = name
        if len(self._roots) > _MOST_ROOTS:
            self._roots.popitem(last=False)
        return name

    def _describe(self, session: str, row: dict[str, Any]) -> None:
        notes = self._book.notes(session)
        for name, key in (("cwd", "cwd"), ("branch", "gitBranch"), ("version", "version")):
            value = row.get(key)
            if isinstance(value, str) and not getattr(notes, name):
                setattr(notes, name, value)

    def _answer(
        self, thread: Thread, row: dict[str, Any], message: dict[str, Any], *, late: bool
    ) -> State | None:
        if row.get("isApiErrorMessage") or message.get("model") == SYNTHETIC:
            self._tally.api_errors += 1
            self._book.notes(thread.session).api_errors += 1
            if thread.open is not None:
                thread.open.bump("api_errors")
            return None
        blocks = plain_blocks(message.get("content"))
        self._note_calls(thread, blocks)
        key = str(message.get("id") or "")
        state, ended, matters = thread.open, None, self._before.matters
        if state is not None and key and state.key == key:
            if matters:
                self._before.copy(origin(row))
        else:
            own, source = own_id(key), origin(row)
            name = own or source or f"{thread.session}|{thread.name}|{key}|{self._line}"
            if matters and self._before.copy(name, source):
                return self._copied(thread, key, name)
            late = late and bool(own)
            self._tally.late += late
            state = State(
                id=state_id(f"{name}|{self._line}" if late else name),
                thread=thread,
                model=str(message.get("model") or ""),
                time=self._counts.time,
                line=self._line,
                action=[],
                key=key,
            )
            ended = thread.begin(state)
        state.act(blocks)
        state.last_line, state.ended = self._line, self._counts.time
        usage, stop = message.get("usage"), message.get("stop_reason")
        if isinstance(usage, dict):
            state.usage = usage
        if isinstance(stop, str):
            state.outcome["stop"] = stop
        return ended

    def _copied(self, thread: Thread, key: str, name: str) -> State | None:
        """A row of an answer that an earlier file has: what was asked before it is that file's."""
        self._tally.copied += 1
        if key and self._copying == (id(thread), key):
            return None
        self._copying = (id(thread), key)
        self._book.notes(thread.session).prompts -= thread.asked
        return thread.copied(state_id(name))

    def _note_calls(self, thread: Thread, blocks: list[dict[str, Any]]) -> None:
        for block in blocks:
            if block["type"] != "tool_use":
                continue
            call = block["id"]
            if not call:
                call = block["id"] = f"call-{self._line}"
            self._counts.call(call)
            if block["name"] in AGENT_TOOLS:
                notes, given = self._book.notes(thread.session), block["input"]
                prompt = hash(str(given.get("prompt")))
                notes.asked[prompt] = "" if notes.asked.get(prompt, call) != call else call
                notes.types[call] = str(given.get("subagent_type") or "")

    def _is_typed(self, row: dict[str, Any], thread: Thread, blocks: list[dict[str, Any]]) -> bool:
        if not blocks or thread.name != "main" or row.get("isSidechain"):
            return False
        if row.get("isMeta") or row.get("isCompactSummary"):
            return False
        if row.get("isVisibleInTranscriptOnly"):
            return False
        return not text_of(blocks).lstrip().startswith(NOT_TYPED)

    def _user(
        self,
        thread: Thread,
        row: dict[str, Any],
        blocks: list[dict[str, Any]],
        *,
        typed: bool,
    ) -> None:
        text, notes = text_of(blocks), self._book.notes(thread.session)
        images = sum(block["type"] in ("image", "document") for block in blocks)
        self._tally.images += images
        notes.images += images
        rest = [block for block in blocks if block["type"] != "tool_result"]
        if text.startswith(_INTERRUPTED) and thread.open is not None:
            thread.open.outcome["interrupted"] = True
            notes.interrupts += 1
        kind = "prompt" if typed else "note"
        if row.get("isCompactSummary"):
            thread.compact()
            kind = "summary"
        elif row.get("isVisibleInTranscriptOnly"):
            return
        elif thread.name != "main" and not (thread.count or thread.added):
            kind = "instruction"
            self._join(thread, text)
        only_text = all(block["type"] == "text" for block in rest)
        content: Any = text if only_text else rest
        thread.say({"role": "user", "content": content, "kind": kind})

    def _join(self, thread: Thread, asked: str) -> None:
        """The call that started a subagent: by the result that names it, else by its prompt."""
        notes = self._book.notes(thread.session)
        kind = agent_kind(thread.name, asked)
        thread.kind = kind.value
        if thread.kind != "task":
            thread.call = None
            return
        thread.call = (
            thread.call or notes.started.get(thread.name) or notes.asked.get(hash(asked)) or None
        )
        thread.agent_type = thread.agent_type or notes.types.get(thread.call or "") or None

    def _result(self, thread: Thread, row: dict[str, Any], block: dict[str, Any]) -> None:
        call, told = str(block.get("tool_use_id")), row.get("toolUseResult")
        if isinstance(told, dict) and isinstance(told.get("agentId"), str):
            self._book.notes(thread.session).started[told["agentId"]] = call
        error = bool(block.get("is_error"))
        result = result_of(call, block.get("content"), error=error)
        state = thread.open
        if state is None or call not in state.calls:
            if not thread.last:
                return
            # Its call is in another file, or was copied with it.
            content = result["content"]
            thread.say({"role": "tool", "content": content, "kind": "note", "call": call})
            return
        state.got(call, result)
        state.ended = self._counts.time
        content = result["content"]
        if error and isinstance(content, str) and content.startswith(_REFUSED):
            state.bump("refused")

    def _other(self, row: dict[str, Any], kind: str) -> None:
        tally = self._tally
        if kind == "system":
            kind = f"system/{row.get('subtype')}"
            if kind == "system/compact_boundary":
                tally.compact_boundaries += 1
                if not (self._before.matters and self._before.copy(origin(row))):
                    self._book.notes(self._counts.session).compactions += 1
                self._thread(row).compact()
                return
            tally.microcompactions += kind == "system/microcompact_boundary"
            tally.api_errors += kind == "system/api_error"
        elif kind == "attachment":
            kind = self._attachment(row)
        elif kind in ("summary", "custom-title"):
            self._title = str(row.get("summary") or row.get("customTitle") or "")
        tally.skipped[kind] += 1

    def _attachment(self, row: dict[str, Any]) -> str:
        """What the program put into the context, and what hooks said."""
        held = row.get("attachment")
        held = held if isinstance(held, dict) else {}
        kind = str(held.get("type"))
        thread = self._thread(row)
        if "hook" in kind:
            self._tally.hooks[kind] += 1
            self._book.notes(thread.session).hooks += 1
            if kind in _BLOCKED and thread.open is not None:
                thread.open.bump("blocked_by_hook")
        rendered = row.get("rendered")
        texts = [
            text
            for item in (rendered if isinstance(rendered, list) else [])
            if isinstance(item, dict) and (text := text_of(plain_blocks(item.get("content"))))
        ]
        if texts and not (self._before.matters and self._before.copy(origin(row))):
            content = "\n".join(texts)
            thread.say({"role": "user", "content": content, "kind": "note"})
        return f"attachment/{kind}"
