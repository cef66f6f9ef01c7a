"""One session taken out of files of rows that were made of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UsageError
from harness.files import atomic_write, pretty_json, replacing, sha256_file
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
    says so, and loses the session's name and the files named after it.

    Raises NotFoundError or UsageError.
    """
    before = held(path, session)
    if not before.rows:
        return before.sha256
    if before.rows == before.of:
        raise UsageError(
            f"{path} would be empty: all its {before.of} rows are of {session}.",
            hint="Remove the file.",
        )
    with replacing(path, mode=0o600) as new:
        for line in file_lines(path):
            if line.strip() and not _is_of(line, session):
                new.stream.write(line if line.endswith(b"\n") else line + b"\n")
    after = sha256_file(path)
    _note(path, session, before, after, at)
    return after


def digests_of(path: Path) -> set[str]:
    """The SHA-256 of a file, and of what it was before sessions were withdrawn from it."""
    earlier = {
        str(each.get("from_sha256"))
        for each in _manifest(path).get("withdrawn", ())
        if isinstance(each, dict)
    }
    return {sha256_file(path), *earlier}


def _told(path: Path, session: str) -> list[bool]:
    return [_is_of(line, session) for line in file_lines(path) if line.strip()]


def _is_of(line: bytes, session: str) -> bool:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(row, dict) and session in sessions_of(row)


def _note(path: Path, session: str, before: Held, after: str, at: str) -> None:
    manifest = _manifest(path)
    withdrawn = {"rows": before.rows, "at": at, "from_sha256": before.sha256}
    manifest |= {
        "rows": before.of - before.rows,
        "sha256": after,
        "withdrawn": [*manifest.get("withdrawn", ()), withdrawn],
    }
    if "sessions" in manifest:
        manifest["sessions"] = [name for name in manifest["sessions"] if name != session]
    if "files" in manifest:  # Claude Code names a file after its session
        manifest["files"] = [each for each in manifest["files"] if session not in _parts(each)]
    atomic_write(manifest_of(path), pretty_json(manifest), mode=0o600)


def _parts(file: dict[str, Any]) -> tuple[str, ...]:
    return Path(str(file.get("file"))).with_suffix("").parts


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = orjson.loads(manifest_of(path).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return manifest if isinstance(manifest, dict) else {}
