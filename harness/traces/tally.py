"""What was found in one file: counts that another program can check."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

_MOST_PROBLEMS = 20


@dataclass(slots=True)
class Tally:
    """Counts of rows as they stand in the file, repeated ones too. Where a number says
    `unique` or `dedup`, each answer of the model counts once."""

    file: str
    form: str = ""
    lines: int = 0
    bad: int = 0
    """Lines that are no JSON, blank ones apart."""
    blank: int = 0
    rows: int = 0
    non_object_rows: int = 0
    user_rows: int = 0
    assistant_rows: int = 0
    unique_msg_ids: int = 0
    tool_use_unique_ids: int = 0
    tool_result_rows: int = 0
    tool_result_errors: int = 0
    tool_use_without_result: int = 0
    human_prompts: int = 0
    """Texts that a person typed: no tool result, summary, echo of a command or interrupt."""
    compact_boundaries: int = 0
    microcompactions: int = 0
    api_errors: int = 0
    """Rows in which the service failed: retries and what was shown in place of an answer."""
    images: int = 0
    out_tokens_naive: int = 0
    out_tokens_first_wins: int = 0
    out_tokens_last_wins: int = 0
    out_tokens_max: int = 0
    cache_read_naive: int = 0
    cache_read_dedup: int = 0
    orphan_parents: int = 0
    """Parents that are not in the file."""
    timestamp_went_back: int = 0
    sessions: int = 0
    first_ts: str = ""
    last_ts: str = ""
    ends_newline: bool = True
    glued: int = 0
    """Bad lines that are several rows, all of which were read."""
    torn: bool = False
    """Whether the file ends within a row: its session still writes, or was killed."""
    recovered: int = 0
    """Rows that were read from bad lines."""
    repeated: int = 0
    """Rows that the file holds again."""
    copied: int = 0
    """Rows that an earlier file holds: of a fork, or of a copy."""
    late: int = 0
    """Rows of an answer that come after the next one; their usage does not count."""
    states: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """Type of row -> rows that are no part of a conversation."""
    hooks: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    """Where something is lost or wrong: the first 20."""

    def problem(self, text: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(text)

    def left_out(self, why: str) -> None:
        """A state that cannot be written."""
        self.states -= 1
        self.bad += 1
        self.problem(why)

    @property
    def verdict(self) -> str:
        """read, empty, foreign, glued, torn at its end, or damaged: rows are lost within it."""
        if not self.rows and not self.recovered:
            return "foreign" if self.lines > self.blank else "empty"
        if not self.form:
            return "foreign"
        if self.non_object_rows or self.bad > self.glued + self.torn:
            return "damaged"
        return "torn" if self.torn else "glued" if self.glued else "read"

    def plain(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        named["ends_newline"] = "y" if self.ends_newline else "n"
        inner = {name: dict(named[name]) for name in ("skipped", "hooks")}
        return {"verdict": self.verdict, **named, **inner}


def count_of(usage: Any, name: str) -> int:
    """A count in what a transcript says of its usage; 0 for what is no count."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value > 0 else 0


class AnswerUsage:
    """The tokens of one answer, of which each row counts a part anew."""

    __slots__ = ("first", "key", "last", "most", "read")

    def __init__(self, key: str) -> None:
        self.key = key
        self.first: int | None = None
        self.last = self.most = self.read = 0

    def see(self, usage: Any, tally: Tally | None) -> None:
        out: Any = 0
        read: Any = 0
        if type(usage) is dict:
            out, read = usage.get("output_tokens"), usage.get("cache_read_input_tokens")
            if type(out) is not int or out < 0:
                out = 0
            if type(read) is not int or read < 0:
                read = 0
        if self.first is None:
            self.first = out
        self.last, self.read = out, read
        if out > self.most:
            self.most = out
        if tally is not None:  # a row of a whole line
            tally.out_tokens_naive += out
            tally.cache_read_naive += read

    def count(self, tally: Tally) -> None:
        tally.out_tokens_first_wins += self.first or 0
        tally.out_tokens_last_wins += self.last
        tally.out_tokens_max += self.most
        tally.cache_read_dedup += self.read
