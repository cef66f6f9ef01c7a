"""What the rows of a Claude Code transcript count to, and which of them it holds again."""

from array import array
from typing import Any

import orjson

from harness.traces.seen import SeenKeys
from harness.traces.seen_before import usable
from harness.traces.tally import AnswerUsage, Tally


class RowCounts:
    """Of one file. Memory follows the number of uuids, a few bytes each."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._rows, self._others = SeenKeys(), SeenKeys()
        """Uuids of messages, and of other rows."""
        self._ids, self._calls = SeenKeys(), SeenKeys()
        self._parents = array("q")
        """Hashes of parents that no row before had: each may come, or be an orphan's."""
        self._waiting: set[str] = set()
        """Tool calls without a result so far."""
        self._groups: dict[int, AnswerUsage] = {}
        self._sessions: set[str] = set()
        self._uuid: Any = ""
        self.session = ""
        self.time = ""

    def place(self, row: dict[str, Any], *, is_message: bool) -> bool:
        """Note time, session and parent of a row. Whether the file had this message before: Claude
        Code writes rows again after a compaction."""
        tally, get = self._tally, row.get
        time = get("timestamp")
        if type(time) is str and time:
            if time < self.time:
                tally.timestamp_went_back += 1
            self.time = time
            if time > tally.last_ts:
                tally.last_ts = time
            if time < tally.first_ts or not tally.first_ts:
                tally.first_ts = time
        session = get("sessionId")
        if session != self.session and type(session) is str and session:
            self._sessions.add(session)
            self.session = session
        parent = get("parentUuid")
        if parent != self._uuid and type(parent) is str and parent and not self._had(hash(parent)):
            self._parents.append(hash(parent))
        uuid = self._uuid = get("uuid")
        if type(uuid) is not str or not uuid:
            return False
        if not is_message:
            self._others.add(uuid)
            return False
        if not usable(uuid):
            # It tells rows apart only together with what they say.
            self._others.add(uuid)
            uuid = _dumped([uuid, time, row["message"]])
        if self._rows.add(uuid):
            return False
        tally.repeated += 1
        return True

    def _had(self, uuid: int) -> bool:
        return self._rows.has(uuid) or self._others.has(uuid)

    def answer(
        self,
        thread: int,
        message: dict[str, Any],
        *,
        counted: bool,
    ) -> bool:
        """Count a row of an answer. Whether the file had its id before, in another place."""
        identifier = message.get("id")
        key = identifier if type(identifier) is str and identifier else self._uuid
        key, late = str(key or self._tally.rows), False
        group = self._groups.get(thread)
        if group is None or group.key != key:
            if group is not None:
                group.count(self._tally)
            group = self._groups[thread] = AnswerUsage(key)
            late = not self._ids.add(key)
            self._tally.unique_msg_ids += not late
        group.see(message.get("usage"), self._tally if counted else None)
        return late

    def results(self, results: list[dict[str, Any]], *, typed: bool) -> None:
        tally = self._tally
        tally.human_prompts += typed
        if results:
            tally.tool_result_rows += 1
        for block in results:
            tally.tool_result_errors += bool(block.get("is_error"))
            self._waiting.discard(str(block.get("tool_use_id")))

    def call(self, identifier: str) -> None:
        if self._calls.add(identifier):
            self._tally.tool_use_unique_ids += 1
            self._waiting.add(identifier)

    def finish(self) -> None:
        tally = self._tally
        for usage in self._groups.values():
            usage.count(tally)
        tally.orphan_parents = sum(not self._had(parent) for parent in self._parents)
        tally.tool_use_without_result = len(self._waiting)
        tally.sessions = len(self._sessions)


def _dumped(value: list[Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested too deeply: its message is left out when it is written
        return str(value[:2])
