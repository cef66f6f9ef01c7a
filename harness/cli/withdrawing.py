"""A session taken out of files: what the command does, and what it says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.clock import SystemClock, iso
from harness.domain.words import some
from harness.errors import UsageError
from harness.ledger.project import Project
from harness.posttrain.lineage import trained_on
from harness.traces.withdrawal import (
    Held,
    answers_beside,
    digests_of,
    digests_with,
    held,
    sessions_in,
    was_withdrawn,
    withdraw,
)

_SHORTEST = 8
"""Characters of the beginning of an id: with fewer it may begin another one than was meant."""


def taken_out(
    opened: Project | None, session: str, files: Sequence[Path], *, dry_run: bool
) -> dict[str, Any]:
    """{session, datasets[], programs[], unsure[], benchmarks[], answers[]}."""
    approved = _approved(opened)
    session = _whole_id(session, [*files, *(path for path, _ in approved.values())])
    known = {digest for path in files for digest in digests_of(path)}
    found = [_withdraw(path, session, dry_run=dry_run) for path in files]
    digests = {digest for _, _, used in found for digest in used}
    return {
        "session": session,
        "datasets": [
            {"path": str(one.path), "rows": one.rows, "of": one.of, "sha256": after}
            for one, after, _ in found
        ],
        "programs": trained_on(opened, digests) if opened is not None else [],
        "unsure": _changed_since(opened, files, known),
        "benchmarks": _benchmarks(approved, files, session, digests),
        "answers": [str(kept) for path in files if (kept := answers_beside(path)) is not None],
    }


def _changed_since(opened: Project | None, files: Sequence[Path], digests: set[str]) -> list[str]:
    """Programs that trained on other content than one of `files` has or had: nobody can tell
    whether the session was in it."""
    if opened is None:
        return []
    root, here = opened.layout.root, {path.resolve() for path in files}
    return [
        program.experiment
        for program in opened.ledger.programs()
        if (root / program.spec["dataset"]["path"]).resolve() in here
        and program.spec["dataset"]["sha256"] not in digests
    ]


def _whole_id(session: str, files: Sequence[Path]) -> str:
    """The one that begins so; as it is what a file holds or held, and what begins none."""
    known = {name for path in files for name in sessions_in(path)}
    begins = sorted(name for name in known if name.startswith(session))
    if session in known or any(was_withdrawn(path, session) for path in files):
        return session
    if not session or (len(begins) == 1 and len(session) < _SHORTEST):
        raise UsageError(
            f"{session!r} is no session's id, and too short for the beginning of one.",
            hint=f"Give the whole id, or its first {_SHORTEST} characters or more.",
        )
    if not begins:
        return session
    if len(begins) > 1:
        raise UsageError(
            f"{session} begins the ids of {len(begins)} sessions: {', '.join(begins[:5])}.",
            hint="Give more of the id.",
        )
    return begins[0]


def _benchmarks(
    approved: Mapping[str, tuple[Path, set[str]]],
    files: Sequence[Path],
    session: str,
    digests: set[str],
) -> list[dict[str, Any]]:
    """Approved ones that hold the session: {path, named, in_vault}."""
    found, here = [], {path.resolve() for path in files}
    for name, (path, frozen) in approved.items():
        named, in_vault = path.resolve() in here, bool(frozen & digests)
        if in_vault or (not named and held(path, session).rows):
            found.append({"path": name, "named": named, "in_vault": in_vault})
    return found


def _approved(opened: Project | None) -> dict[str, tuple[Path, set[str]]]:
    """Benchmark -> its file, where that is there, and the SHA-256 of what was approved."""
    found: dict[str, tuple[Path, set[str]]] = {}
    if opened is not None:
        for one in opened.ledger.approved_benchmarks():
            path = opened.layout.root / one.benchmark["path"]
            if path.is_file():
                found.setdefault(one.benchmark["path"], (path, set()))[1].add(
                    one.benchmark["sha256"]
                )
    return found


def _withdraw(path: Path, session: str, *, dry_run: bool) -> tuple[Held, str, set[str]]:
    """What it held, its SHA-256 afterwards, and those under which it ever held the session."""
    one, digests = held(path, session), digests_with(path, session)
    if dry_run or not one.rows:
        return one, one.sha256, digests
    return one, withdraw(path, session, at=iso(SystemClock().now())), digests


def told(document: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    verb, session = "holds" if dry_run else "lost", document["session"]
    lines = [
        f"{one['path']} {verb} {some(one['rows'], 'row')} of {one['of']}"
        if one["rows"]
        else f"{one['path']} holds no row of {session}"
        for one in document["datasets"]
    ]
    for program in document["programs"]:
        for model in program["models"]:
            served = ", is served" if model["served"] else ""
            lines.append(
                f"model {model['id'][:12]} of {program['experiment']} used it:"
                f" {model['state']}{served}"
            )
        if not program["models"]:
            lines.append(f"{program['experiment']} used it; it has no model")
    lines += [
        f"{name} trained on an earlier content of its dataset; whether it held the session is"
        " unknown"
        for name in document["unsure"]
    ]
    for one in document["benchmarks"]:
        lines.append(
            f"the benchmark {one['path']} is approved with it; the vault keeps the rows: approve it"
            " anew"
            if one["named"]
            else f"the benchmark {one['path']} holds rows of it too, and was left: name the file"
        )
    lines += [
        f"{path} keeps a teacher's answers about sessions, without their ids: remove it, too"
        for path in document["answers"]
    ]
    return lines or ["nothing found"]
