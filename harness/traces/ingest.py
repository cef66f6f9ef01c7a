"""Files of sessions as one file of states: read, redacted, written, counted."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from harness.artifacts.content import open_regular
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.files import atomic_write, pretty_json, remove_leftovers, replacing, sha256_file
from harness.traces.book import Book
from harness.traces.forms.table import form_of
from harness.traces.redaction import Redactor
from harness.traces.states import State
from harness.traces.tally import Tally
from harness.traces.transcripts import AGENT_FILE, agent_files

MANIFEST = ".manifest.json"
SUFFIXES = (".jsonl", ".json", ".traj")
_META = ".meta.json"
_ROOM = 20
"""Levels that a value may stand deeper in a training row."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Under what the rows may be used."""

    licence: str | None = None
    consent: bool = False


@dataclass(frozen=True, kw_only=True)
class Source:
    path: Path
    name: str
    """As it is written: below the folder that was named."""


def sources(paths: Sequence[Path]) -> list[Source]:
    """The files of trajectories at and below `paths`, each once, a session before its subagents and
    the older before the newer: what a fork holds of another session is that session's.

    Raises NotFoundError.
    """
    found: dict[Path, str] = {}
    for path in paths:
        if path.is_dir():
            below = [each for each in path.rglob("*") if _is_source(each)]
            named = {each: each.relative_to(path.parent).as_posix() for each in below}
        elif path.exists():
            named = {path: path.name}
            named |= {
                each: each.relative_to(path.parent).as_posix()
                for each in agent_files(path, path.stem)
            }
        else:
            raise NotFoundError(f"{path} does not exist.", hint="Check the path.")
        for each, name in named.items():
            found.setdefault(each.resolve(), name)
    listed = [Source(path=path, name=name) for path, name in found.items()]
    return sorted(listed, key=_order)


def _order(source: Source) -> tuple[bool, str, bool, str]:
    """By the first time in a file's first 64 KiB, such times sort as texts; a fork begins with the
    rows of the other."""
    with open_regular(source.path) as stream:
        head = stream.read(1 << 16)
    _, key, rest = head.partition(b'"timestamp":')
    begun = rest.lstrip(b' "')[:24].decode("ascii", "replace") if key else ""
    is_agent = source.path.name.startswith(AGENT_FILE)
    return is_agent, begun, b'"forkedFrom"' in head, source.name


def _is_source(path: Path) -> bool:
    name = path.name
    return path.is_file() and name.endswith(SUFFIXES) and not name.endswith((_META, MANIFEST))


class Reading:
    """The states of several files, with what was counted in each."""

    def __init__(self, listed: Sequence[Source]) -> None:
        self.sources = listed
        self.tallies: list[Tally] = []
        self.book = Book(files=len(listed))

    def states(self, redactor: Redactor | None = None) -> Iterator[tuple[Source, Tally, State]]:
        for source in self.sources:
            tally = Tally(source.name)
            self.tallies.append(tally)
            try:
                form, head = form_of(source.path)
                if redactor is not None:
                    with suppress(TypeError):  # nested too deeply
                        redactor.learn(orjson.dumps(head).decode())
                if form is None:
                    tally.lines = bool(source.path.stat().st_size)
                else:
                    tally.form = form.name
                    for state in form.read(source.path, tally, self.book):
                        tally.states += 1
                        yield source, tally, state
            except UsageError as error:
                tally.problem(error.message)
            self.book.before.next_file()


def ingest(
    listed: Sequence[Source],
    target: Path,
    *,
    redactor: Redactor,
    terms: Terms,
    outcomes: Mapping[str, Any],
    strict: bool = False,
) -> dict[str, Any]:
    """Write the states of `listed` to `target`, and `<target>.manifest.json`; return the manifest.

    `outcomes`: session -> what is recorded of its experiments. With `strict`, nothing is written
    where anything would have to be redacted: RefusedError. Raises UsageError.
    """
    require_new(target)
    reading = Reading(listed)
    written = 0
    with ExitStack() as opened:
        stream: BinaryIO | None = None
        if not strict:
            stream = opened.enter_context(replacing(target, mode=0o600)).stream
        for source, tally, state in reading.states(redactor):
            row = _row(state, source, tally, terms, outcomes)
            try:
                line = _line(redactor.value(row))
            except (TypeError, RecursionError):
                tally.left_out(f"line {state.line}: nested too deeply, its state is left out")
                continue
            written += 1
            if stream is not None:
                stream.write(line + b"\n")
        if not written:
            raise UsageError(
                f"No state of an agent in {len(listed)} files: {_verdicts(reading.tallies)}.",
                hint="Name transcripts, or a folder with some: docs/traces.md lists the forms.",
            )
        if strict and redactor.counts:
            raise _refusal(redactor.counts)
        require_new(target)  # another command may have made it meanwhile
    if strict:
        return ingest(listed, target, redactor=redactor, terms=terms, outcomes=outcomes)
    manifest = {
        "rows": written,
        "sha256": sha256_file(target),
        "licence": terms.licence,
        "consent": terms.consent,
        "redacted": dict(sorted(redactor.counts.items())),
        "sessions": sorted(reading.book.sessions),
        "files": [
            {"sha256": sha256_file(source.path), **tally.plain()}
            for source, tally in zip(listed, reading.tallies, strict=True)
        ],
    }
    manifest = {name: redactor.value(value) for name, value in manifest.items()}
    atomic_write(manifest_of(target), pretty_json(manifest), mode=0o600)
    return manifest


def _line(row: Any) -> bytes:
    """Raises TypeError for what nests so deep that no training row of it could be written."""
    for _ in range(_ROOM):
        row = [row]
    return orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS)[_ROOM:-_ROOM]


def require_new(*targets: Path) -> None:
    """Remove what killed commands left of them. Raises UsageError where one is there."""
    remove_leftovers(targets)
    for path in targets:
        if os.path.lexists(path):
            raise UsageError(f"{path} exists.", hint="Name another file: nothing is overwritten.")


def manifest_of(target: Path) -> Path:
    return target.with_name(target.name + MANIFEST)


def _row(
    state: State, source: Source, tally: Tally, terms: Terms, outcomes: Mapping[str, Any]
) -> dict[str, Any]:
    row = state.row()
    session = state.thread.session
    if session in outcomes:
        row["outcome"] = {**row["outcome"], "experiments": outcomes[session]}
    row["provenance"] = {
        "source": source.name,
        "form": tally.form,
        "session": session,
        "lines": [state.line, state.last_line],
    }
    if state.forked_from is not None:
        row["provenance"]["sessions"] = [session, state.forked_from]
    return row | {"licence": terms.licence, "consent": terms.consent}


def _refusal(counts: Counter[str]) -> RefusedError:
    found = ", ".join(f"{kind} ({count})" for kind, count in counts.most_common())
    return RefusedError(
        f"--strict: nothing was written; to be redacted are: {found}.",
        hint="Without --strict each is replaced by a word in brackets.",
        code="not_clean",
    )


def _verdicts(tallies: Sequence[Tally]) -> str:
    return ", ".join(f"{tally.file} is {tally.verdict}" for tally in tallies[:5])
