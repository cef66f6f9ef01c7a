"""The control files as a person accepted them last, kept outside the project: what the audit
compares with.

control_files.listing says what counts. The list is changed by one process at a time.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import (
    dataclass,
    field,
    replace,
)
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.artifacts.content import read_bytes
from harness.artifacts.locate import Layout
from harness.clock import iso
from harness.errors import (
    ConfigError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from harness.files import (
    atomic_write,
    canonical_json,
    lock,
    move_into_place,
    pretty_json,
    private_folder,
    sha256_bytes,
)
from harness.guard.control_files import (
    GIT,
    GuardedLedger,
    GuardedProject,
    control_names,
    file_and_part,
    listing,
)
from harness.guard.hooks.control_digests import WORKTREES
from harness.settings import CONFIG, main_root

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A file that only grows, as it was when it was last looked at."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Accepted:
    at: str
    by: str
    files: Mapping[str, str]
    """Entry -> digest, of every control file that there was, as control_files.listing."""
    receipts: Mapping[str, Seen] = field(default_factory=dict)
    """Name of a session's receipts -> what of them has been seen."""

    @property
    def paths(self) -> set[str]:
        """The files that count, relative to the root."""
        return {file_and_part(entry)[0] for entry in self.files}

    @property
    def sha256(self) -> str:
        """Of the files and their digests: what the ledger remembers of the list."""
        return sha256_bytes(canonical_json(dict(sorted(self.files.items()))))


def control_paths(root: Path) -> tuple[str, ...]:
    """Files and folders that the audit looks at in the project at `root`, whether they exist or
    not."""
    return (*control_names(root), GIT, CONFIG)


def control_listing(root: Path) -> dict[str, str]:
    """Entry -> digest of all that counts in the control files of the project at `root`."""
    # Below .git they are the main one's: linked worktrees have its repository.
    names, repository = control_paths(root), main_root(root)
    own = [name for name in names if not _of_git(name)]
    found = listing(root, own) | listing(repository, filter(_of_git, names))
    return {
        entry: digest
        for entry, digest in found.items()
        if not entry.startswith(f"{WORKTREES}/") and digest != _NOTHING
    }


def of_file(files: Mapping[str, str], path: str) -> dict[str, str]:
    """The entries of one file."""
    return {entry: files[entry] for entry in files if file_and_part(entry)[0] == path}


def _of_git(path: str) -> bool:
    return path.split("/")[0] == GIT


def read_accepted(layout: Layout) -> Accepted | None:
    """None when nothing was accepted yet. Raises ConfigError (accepted_damaged) when the file is
    not what it was."""
    return _read(layout.accepted)


def accepted_list(project: GuardedProject) -> Accepted | None:
    """The list as the ledger remembers it, where it can be had: an acceptance that was cut between
    its fact and the file has left it in `layout.accepted_next`. Else as `read_accepted`, which says
    what it raises."""
    found, expected = (
        read_accepted(project.layout),
        project.ledger.accepted_list(project.ledger.writer),
    )
    if expected is None or (found is not None and found.sha256 == expected):
        return found
    return _next(project.layout, expected) or found


def _next(layout: Layout, expected: str) -> Accepted | None:
    """What a cut acceptance left, if it is the list of digest `expected`."""
    try:
        found = _read(layout.accepted_next)
    except ConfigError:
        return None
    return found if found is not None and found.sha256 == expected else None


def _read(path: Path) -> Accepted | None:
    try:
        value = json.loads(read_bytes(path))
        if value["schema"] != _SCHEMA:
            raise ValueError(f"schema {value['schema']!r}")
        receipts = {
            name: Seen(bytes=int(seen["bytes"]), sha256=seen["sha256"])
            for name, seen in value["receipts"].items()
        }
        return Accepted(
            at=value["at"], by=value["by"], files=dict(value["files"]), receipts=receipts
        )
    except NotFoundError:
        return None
    except (UsageError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} is damaged ({error}); it holds the control files as they were accepted.",
            hint="Look at them, then let a person run `harness audit --accept`.",
            code="accepted_damaged",
        ) from error


def accept(
    layout: Layout,
    *,
    by: str,
    at: datetime,
    paths: Iterable[str] | None = None,
    ledger: GuardedLedger | None = None,
    seen: Mapping[str, str] | None = None,
) -> Accepted:
    """Take the control files as they are now for what they should be; `ledger`, if given, remembers
    the list. Raises RefusedError (changed_meanwhile) when they are not as they were `seen`.

    With `paths`, those alone, and what else was accepted stays; where nothing was accepted yet,
    all. A damaged list is replaced by a whole one only, never by a part: then it raises ConfigError
    as `read_accepted`. Killed anywhere, the list is the old one or the new one for `accepted_list`,
    and the next call puts it in its place.
    """
    private_folder(layout.state)
    with lock(layout.state):
        if ledger is not None:
            _finish(layout, ledger)
        made = _made(layout, by, at, paths)
        if seen is not None and dict(made.files) != dict(seen):
            raise RefusedError(
                "The control files are not what they were a moment ago; nothing was accepted.",
                hint="Look again: `harness audit` names them.",
                code="changed_meanwhile",
            )
        if ledger is None or ledger.accepted_list(ledger.writer) == made.sha256:
            _write(layout.accepted, made)
        else:
            _write(layout.accepted_next, made)
            ledger.accept_control(sha256=made.sha256, files=len(made.paths), by=by)
            move_into_place(layout.accepted_next, layout.accepted)
    return made


def _finish(layout: Layout, ledger: GuardedLedger) -> None:
    """End an acceptance that was cut: its fact says whether it took place."""
    if not layout.accepted_next.exists():
        return
    expected = ledger.accepted_list(ledger.writer)
    if expected is not None and _next(layout, expected) is not None:
        move_into_place(layout.accepted_next, layout.accepted)
    else:
        layout.accepted_next.unlink()


def _made(layout: Layout, by: str, at: datetime, paths: Iterable[str] | None) -> Accepted:
    before = None if paths is None else read_accepted(layout)
    now = control_listing(layout.root)
    if before is None or paths is None:
        return Accepted(at=iso(at), by=by, files=now, receipts=seen_receipts(layout))
    chosen = set(paths)
    kept = {
        entry: digest
        for entry, digest in before.files.items()
        if file_and_part(entry)[0] not in chosen
    }
    new = {entry: digest for entry, digest in now.items() if file_and_part(entry)[0] in chosen}
    return replace(before, files=kept | new)


def accept_on_record(
    project: GuardedProject,
    *,
    by: str,
    at: datetime | None = None,
    paths: Iterable[str] | None = None,
    seen: Mapping[str, str] | None = None,
) -> Accepted:
    """`accept`, and a fact that says what the list is from now on, so that a rewritten list is
    noticed.

    From the first approved plan on: before it nothing is judged, and `init --remove` leaves no
    ledger behind.
    """
    ledger = project.ledger
    known = ledger if ledger.plan() is not None else None
    now = at or project.clock.now()
    return accept(project.layout, by=by, at=now, paths=paths, ledger=known, seen=seen)


def note_receipts(layout: Layout, *, cut: Iterable[str]) -> None:
    """Remember how far each session's receipts were seen; those in `cut` stay as they were
    remembered.

    What was accepted meanwhile stays accepted. Without anything accepted nothing is remembered, and
    no file is made.
    """
    if not layout.accepted.exists():
        return
    private_folder(layout.state)
    with lock(layout.state):
        accepted = read_accepted(layout)
        if accepted is None:
            return
        kept = {name: seen for name, seen in accepted.receipts.items() if name in set(cut)}
        now = {**seen_receipts(layout), **kept}
        if now != dict(accepted.receipts):
            _write(layout.accepted, replace(accepted, receipts=now))


def seen_receipts(layout: Layout) -> dict[str, Seen]:
    found = {}
    for path in sorted(layout.shared("receipts").glob("*.jsonl")):
        try:
            data = read_bytes(path)
        except UsageError:
            continue
        found[path.name] = Seen(bytes=len(data), sha256=sha256_bytes(data))
    return found


def _write(path: Path, accepted: Accepted) -> None:
    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "at": accepted.at,
        "by": accepted.by,
        "files": dict(sorted(accepted.files.items())),
        "receipts": {
            name: {"bytes": s.bytes, "sha256": s.sha256}
            for name, s in sorted(accepted.receipts.items())
        },
    }
    atomic_write(path, pretty_json(document))


_NOTHING = sha256_bytes(b"")
"""The digest of a file that decides nothing: it is as good as none."""
