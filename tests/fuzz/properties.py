"""What holds for every input of a reader: it answers, or raises a HarnessError that can be shown;
nothing else.

Each property takes bytes, so that hypothesis and a coverage-guided fuzzer can both drive it.
`PROPERTIES` names them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.artifacts.experiment_files import ResultFile, agrees, read_result, render_result
from harness.artifacts.jsonl import LineFeed, parse_line
from harness.artifacts.metrics_file import Tail
from harness.artifacts.training_status import read_status
from harness.domain.plain_text import plain
from harness.errors import HarnessError
from harness.files import canonical_json
from harness.install.json_edit import load
from harness.install.merged_settings import with_hooks, without_hooks
from harness.plans.parse import Plan, plan_from, read_plan
from harness.settings import CONFIG, load_settings
from harness.traces.transcripts import read_session
from tests.metrics_rows import bad_values, read_rows

OURS = {
    "PreToolUse": [
        {
            "hooks": [
                {"type": "command", "command": "python3", "args": [".claude/hooks/harness/x.py"]}
            ]
        }
    ]
}


def answered(read: Callable[[], Any]) -> Any:
    """What `read` returns; None for a HarnessError, whose text names something and can be
    written."""
    try:
        return read()
    except HarnessError as error:
        refused = error
    assert refused.message
    assert refused.hint
    str(refused).encode()
    return None


def plan(folder: Path, data: bytes) -> Plan | None:
    """A plan that is read can be frozen, and reads back the same from what the ledger keeps."""
    path = folder / "plan.md"
    path.write_bytes(data)
    found: Plan | None = answered(lambda: read_plan(path))
    if found is not None:
        assert plan_from(json.loads(canonical_json(found.plain()))) == found
        assert "\0" not in found.oracle.predict + found.training.entry
        found.watch_settings()
    assert path.read_bytes() == data
    return found


def result(folder: Path, data: bytes) -> ResultFile | None:
    """A result that is read can be written again and then says the same; a claim agrees with its
    own value."""
    path = folder / "result.md"
    path.write_bytes(data)
    found: ResultFile | None = answered(lambda: read_result(path))
    if found is not None:
        assert all(agrees(claim, claim.value) for claim in found.claims.values())
        claims = {name: claim.text for name, claim in found.claims.items()}
        text = render_result(
            experiment="exp-0001",
            claims=claims,
            summary="",
            shortfalls=found.shortfalls,
            by="oracle",
        )
        path.write_text(text, "utf-8", newline="")
        again = read_result(path)
        # What is written is plain: a character that acts is not, nor a line of such alone.
        names = {plain(name): claim for name, claim in found.claims.items()}
        assert len(names) < len(found.claims) or again.claims == names
        assert again.shortfalls == [text for text in map(plain, found.shortfalls) if text]
    return found


def metrics(folder: Path, data: bytes) -> list[dict[str, Any]]:
    """Read at once or as it grows, a file has the same rows; merging makes no value up, and the
    file stays."""
    path = folder / "metrics.jsonl"
    path.write_bytes(data)
    whole = read_rows(path)
    grown = Tail(folder / "grown.jsonl")
    rows: list[dict[str, Any]] = []
    with grown.path.open("wb", buffering=0) as stream:
        for start in range(0, len(data), step := max(1, len(data) // 5)):
            stream.write(data[start : start + step])
            rows += grown.poll()
    rows += grown.poll(final=True)
    assert repr(rows) == repr(whole.rows)
    assert grown.warnings == [text.replace(path.name, grown.path.name) for text in whole.warnings]
    assert grown.intact()
    raw = {repr(value) for row in whole.rows for value in _leaves(row)}
    assert all(repr(value) in raw for row in whole.effective for value in _leaves(row))
    assert bad_values(whole.effective)[0] == whole.non_finite
    assert path.read_bytes() == data
    return whole.rows


def _leaves(row: dict[str, Any]) -> list[Any]:
    inner = row.get("metrics")
    return [
        *(value for key, value in row.items() if key != "metrics"),
        *(inner.values() if type(inner) is dict else ()),
    ]


def lines(_folder: Path, data: bytes) -> None:
    """However a stream is cut, its lines are the same; a line that lost something says so."""
    feed, whole = LineFeed(), LineFeed()
    found = [line for byte in data for line in feed.feed(bytes([byte]))]
    assert found == whole.feed(data)
    assert feed.rest == whole.rest
    for line in [*found, feed.rest]:
        parsed = parse_line(line)
        assert parsed.problem or not parsed.lost


def status(folder: Path, data: bytes) -> Any:
    """What is read has the types that it declares: a page formats it without looking again."""
    path = folder / "training_status.json"
    path.write_bytes(data)
    found = answered(lambda: read_status(path))
    if found is not None:
        shown = [f"{value:.4g}" for value in found.metrics.values()]
        shown += [
            f"{count:d}" for count in (found.rows, found.epoch, found.step) if count is not None
        ]
        assert all(shown)
        found.run.encode("utf-8", "surrogatepass")
    assert path.read_bytes() == data
    return found


def transcript(folder: Path, data: bytes) -> Any:
    """A transcript is read; each row is an event or counted, and a second reading says the same."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    found = answered(lambda: read_session(path))
    if found is not None:
        assert repr(read_session(path)) == repr(found)
        assert found.damaged <= data.count(b"\n") + data.count(b"\n\0") + data.count(b"\0\n")
    assert path.read_bytes() == data
    return found


def claude_settings(_folder: Path, data: bytes) -> str | None:
    """Our hooks go in once and come out again; nothing of the person's is lost on the way."""
    text = data.decode("utf-8", "surrogateescape")
    added: str | None = answered(lambda: with_hooks(text, OURS, "settings.json"))
    if added is None:
        return None
    assert with_hooks(added, OURS, "settings.json") == added
    before, after = (
        load(without_hooks(text, "settings.json")),
        load(without_hooks(added, "settings.json")),
    )
    assert _said(before) == _said(after)
    return added


def _said(settings: dict[str, Any]) -> str:
    """All but the places that are empty: with our hooks an empty one that was there before may go
    too."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    return repr(
        {
            **{key: value for key, value in settings.items() if key != "hooks"},
            **({"hooks": hooks} if hooks else {}),
        }
    )


def config(folder: Path, data: bytes) -> Any:
    """config.toml is read, or an error names it."""
    path = folder / CONFIG
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    found = answered(lambda: load_settings(folder, {"HOME": str(folder)}))
    if found is not None:
        assert (found.root / found.memory_dir).resolve().is_relative_to(found.root)
        assert not found.state.is_relative_to(found.root / ".harness")
    assert path.read_bytes() == data
    return found


PROPERTIES: dict[str, Callable[[Path, bytes], Any]] = {
    "plan": plan,
    "result": result,
    "metrics": metrics,
    "lines": lines,
    "status": status,
    "transcript": transcript,
    "claude_settings": claude_settings,
    "config": config,
}
