"""One session taken out of files of rows that were made of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.domain.words import some
from harness.files import atomic_write, pretty_json, replacing, sha256_bytes, sha256_file
from harness.traces.contexts import sessions_of
from harness.traces.file_lines import file_lines
from harness.traces.ingest import manifest_of


@dataclass(frozen=True, kw_only=True)
class Held:
    """Rows of a session in a file."""

    path: Path
    sha256: str
    rows: int
    """Those of the session."""
    of: int


def held(path: Path, session: str) -> Held:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    lines = list(_told(path, session))
    return Held(path=path, sha256=sha256_file(path), rows=sum(lines), of=len(lines))


def withdraw(path: Path, session: str, *, at: str) -> str:
    """Rewrite `path` without the rows of `session`; its SHA-256 afterwards. The manifest beside it
    and the card say so; the manifest loses the session's name and the files named after it.

    Raises NotFoundError or UsageError.
    """
    before = held(path, session)
    if not before.rows:
        return before.sha256
    digest = hashlib.sha256()
    with replacing(path, mode=0o600) as new:
        for line in file_lines(path):
            if line.strip() and not _is_of(line, session):
                line = line if line.endswith(b"\n") else line + b"\n"
                new.stream.write(line)
                digest.update(line)
        after = digest.hexdigest()
        # Before the rows are gone: if this is killed in between, the models are still known.
        _note(path, session, before, after, at)
    _note_on_card(path, before, at)
    return after


def digests_of(path: Path) -> set[str]:
    """The SHA-256 of a file, and of what it was before sessions were withdrawn from it."""
    return {sha256_file(path), *(entry["from_sha256"] for entry in _withdrawn(path))}


def digests_with(path: Path, session: str) -> set[str]:
    """Those under which the file held `session`: until it was withdrawn."""
    if held(path, session).rows:
        return digests_of(path)
    entries, own = _withdrawn(path), _hash(session)
    # An entry without a session is of a version that noted none: it may be this one's.
    last = max(
        (n for n, one in enumerate(entries, 1) if one.get("session", own) == own), default=0
    )
    return {entry["from_sha256"] for entry in entries[:last]}


def was_withdrawn(path: Path, session: str) -> bool:
    """Whether the manifest of a file notes it."""
    return any(entry.get("session") == _hash(session) for entry in _withdrawn(path))


def sessions_in(path: Path) -> set[str]:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    found: set[str] = set()
    for line in file_lines(path):
        found |= sessions_of(_row(line))
    return found


def answers_beside(path: Path) -> Path | None:
    """Where a teacher's answers are kept, that was asked about these sessions."""
    kept = path.with_suffix(".answers.jsonl")
    return kept if kept.exists() else None


def _told(path: Path, session: str) -> list[bool]:
    return [_is_of(line, session) for line in file_lines(path) if line.strip()]


def _is_of(line: bytes, session: str) -> bool:
    return session in sessions_of(_row(line))


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return row if isinstance(row, dict) else {}


def _hash(session: str) -> str:
    return sha256_bytes(session.encode("utf-8", "surrogatepass"))


def _withdrawn(path: Path) -> list[dict[str, Any]]:
    entries = _manifest(path).get("withdrawn")
    entries = entries if isinstance(entries, list) else []
    return [one for one in entries if isinstance(one, dict) and "from_sha256" in one]


def _note(path: Path, session: str, before: Held, after: str, at: str) -> None:
    manifest = _manifest(path)
    withdrawn = {
        "rows": before.rows,
        "at": at,
        "from_sha256": before.sha256,
        "session": _hash(session),
    }
    entries = [one for one in _withdrawn(path) if one["from_sha256"] != before.sha256]
    manifest |= {
        "rows": before.of - before.rows,
        "sha256": after,
        "withdrawn": [*entries, withdrawn],
    }
    if "sessions" in manifest:
        manifest["sessions"] = [name for name in manifest["sessions"] if name != session]
    if "files" in manifest:  # Claude Code names a file after its session
        manifest["files"] = [each for each in manifest["files"] if session not in _parts(each)]
    atomic_write(manifest_of(path), pretty_json(manifest), mode=0o600)


def _note_on_card(path: Path, before: Held, at: str) -> None:
    card = path.with_name(path.name.removesuffix(".jsonl").removesuffix(".held_out") + ".card.md")
    if card.exists():
        told = f"{some(before.rows, 'row')} of {before.of} in {path.name}"
        text = card.read_text("utf-8").rstrip("\n")
        atomic_write(card, f"{text}\n\nA session was withdrawn at {at}: {told}.\n")


def _parts(file: dict[str, Any]) -> tuple[str, ...]:
    return Path(str(file.get("file"))).with_suffix("").parts


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = orjson.loads(manifest_of(path).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return manifest if isinstance(manifest, dict) else {}
