"""Write the projections that are out of date or missing; each is a pure function of the facts, and
of the next step, which files of the open experiment decide too."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness.artifacts.content import read_bytes
from harness.artifacts.locate import Layout
from harness.errors import UsageError
from harness.files import (
    atomic_write,
    set_aside,
    sha256_bytes,
)
from harness.ledger import Ledger
from harness.ledger.exchange import export_facts
from harness.ledger.project import Project
from harness.ledger.text_form import is_whole
from harness.projections import checklist
from harness.projections.briefing import briefing
from harness.projections.memory_pages import (
    HEAD,
    entry,
    hand_off_page,
    priors_page,
)
from harness.projections.state_page import state_page
from harness.projections.text import BANNER

Note = dict[str, Any] | None
_TREE = "tree"
"""The key of a note for the root of the tree whose page it is about."""
_NEXT = "next"
"""The key of a note for the next step that the page says."""


def refresh(
    ledger: Ledger, layout: Layout, next_steps: str, *, everything: bool = False
) -> list[Path]:
    """Write every stale or missing projection, or with `everything` all; returns the files written.
    `next_steps`: what two of them say is due.

    Nothing is synced to disk: a projection that a power cut loses is written again.
    """
    if not everything and not _due(ledger, layout, next_steps):
        return []
    written: list[Path] = []
    notes: dict[str, Any] = {}
    with ledger.refreshing():
        names = set(_PROJECTIONS) if everything else _due(ledger, layout, next_steps)
        before = _own_notes(ledger, layout)
        for name, project in _PROJECTIONS.items():
            if name in names:
                note = None if everything else before.get(name)
                if name in _SAYING_NEXT:
                    note = {_NEXT: next_steps}
                paths, note = project(ledger, layout, note, everything)
                written += paths
                notes[name] = {**(note or {}), _TREE: _here(layout)}
        ledger.projections_written(names, notes=notes)
    return written


class EditedPage(NamedTuple):
    """A page for people that is not as the harness wrote it."""

    path: str
    """Relative to the project's root."""
    expected: str
    """SHA-256 of what was written."""
    actual: str | None
    """SHA-256 of what is there; None when the page is gone."""


def edited_pages(project: Project) -> list[EditedPage]:
    """The pages for people that changed since they were written, by path.

    Pages that are due are left out: the next refresh writes them. A clone whose facts wait has no
    edited pages: nothing is known of them.
    """
    ledger, layout = project.ledger, project.layout
    if ledger.facts_wait():
        return []
    due, notes = _due(ledger, layout), _own_notes(ledger, layout)
    written: dict[str, str] = {}
    for name in _PROJECTIONS:
        if name not in due:
            written |= _digests(notes.get(name))
    pages = [
        EditedPage(path, expected, _digest(layout.root / path))
        for path, expected in sorted(written.items())
    ]
    return [page for page in pages if page.actual != page.expected]


def _own_notes(ledger: Ledger, layout: Layout) -> dict[str, Note]:
    """The notes of pages that were written last in this working tree: trees that share a ledger
    have pages of their own, and what was written elsewhere says nothing about these."""
    here = _here(layout)
    notes = ledger.projection_notes()
    return {name: note for name, note in notes.items() if note and note.get(_TREE) == here}


def _here(layout: Layout) -> str:
    """This working tree among all that share the ledger; on a server's also of other machines."""
    root = str(layout.root)
    return root if isinstance(layout.ledger, Path) else f"{platform.node()}:{root}"


def _digest(path: Path) -> str | None:
    try:
        return sha256_bytes(read_bytes(path))
    except UsageError:
        return None


def _digests(note: Note) -> dict[str, str]:
    return dict((note or {}).get("digests", {}))


def _put(path: Path, text: str, layout: Layout) -> dict[str, str]:
    """Write a page; returns its entry for the digests of the note."""
    data = text.encode("utf-8")
    atomic_write(path, data, durable=False)
    return {layout.relative(path): sha256_bytes(data)}


def _first_page(ledger: Ledger, layout: Layout, edge: int, last: int) -> str:
    unfinished, total = ledger.open_checklist_texts(edge, checklist.OPEN_SHOWN)
    return checklist.first_page(ledger.checklist_texts(edge + 1), unfinished, total, last, layout)


def _due(ledger: Ledger, layout: Layout, next_steps: str | None = None) -> set[str]:
    """`next_steps`: None for what facts and files alone make due."""
    missing = {name for name, path in _FILES.items() if not path(layout).exists()}
    if not all(is_whole(layout.facts_dir, writer) for writer in ledger.writers()):
        missing.add("facts")
    if any(not layout.hand_off(*key).exists() for key in ledger.hand_off_keys()):
        missing.add("hand_offs")
    edge = checklist.boundary(ledger.last_number())
    if any(not path.exists() for path in _older_pages(layout, edge).values()):
        missing.add("checklist")
    notes = _own_notes(ledger, layout)
    elsewhere = set(_PROJECTIONS) - set(notes)
    other = {
        name
        for name in _SAYING_NEXT & set(notes)
        if next_steps is not None and (notes[name] or {}).get(_NEXT) != next_steps
    }
    return ledger.stale_projections() | missing | elsewhere | other


def _older_pages(layout: Layout, edge: int) -> dict[int, Path]:
    """First number -> path, of each page that must exist."""
    return {
        first: layout.checklist_page(first, first + checklist.PAGE - 1)
        for first in range(1, edge + 1, checklist.PAGE)
    }


def _checklist(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    plans = {(plan.name, plan.version): plan.content for plan in ledger.plans()}
    inputs = ledger.checklist_inputs(dirty_only=not everything)
    rows = {
        one["number"]: checklist.checklist_row(one, plans.get((one["plan"], one["plan_version"])))
        for one in inputs
    }
    ledger.store_checklist_rows(rows)
    last = ledger.last_number()
    edge = checklist.boundary(last)
    before, digests = int((note or {}).get("boundary", 0)), _digests(note)
    touched = {checklist.page_of(number)[0] for number in rows if number <= edge}
    touched |= {
        checklist.page_of(number)[0] for number in range(before + 1, edge + 1, checklist.BATCH)
    }
    written: list[Path] = []
    for first, path in _older_pages(layout, edge).items():
        if first in touched or not path.exists() or layout.relative(path) not in digests:
            texts = ledger.checklist_texts(first, min(first + checklist.PAGE - 1, edge))
            digests |= _put(path, checklist.older_page(first, texts, edge), layout)
            written.append(path)
    front = layout.project("checklist")
    digests |= _put(front, _first_page(ledger, layout, edge, last), layout)
    return [front, *written], {"boundary": edge, "digests": digests}


def _decision_log(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    """Append the new decisions, or rewrite the file if it was edited."""
    path = layout.decision_log
    before = path.read_bytes() if note is not None and path.exists() else None
    continues = before is not None and sha256_bytes(before) == _digests(note).get(
        layout.relative(path)
    )
    after = int(note["number"]) if continues and note is not None else 0
    added = ledger.decisions_after(after)
    data = "".join(entry(decision) for _, decision in added).encode("utf-8")
    if continues and before is not None:
        with path.open("ab") as stream:
            stream.write(data)
        digests = {layout.relative(path): sha256_bytes(before + data)}
    else:
        digests = _put(path, HEAD + data.decode("utf-8"), layout)
    return [path], {"number": added[-1][0] if added else after, "digests": digests}


def _state(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    said = (note or {})[_NEXT]
    digests = _put(layout.state_md, state_page(ledger, said), layout)
    return [layout.state_md], {_NEXT: said, "digests": digests}


def _briefing(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    said = (note or {})[_NEXT]
    digests = _put(layout.briefing, briefing(ledger, said), layout)
    return [layout.briefing], {_NEXT: said, "digests": digests}


def _hand_offs(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    """A page is written once and stays, unless everything is rewritten."""
    written, digests = [], _digests(note)
    for hand_off in ledger.hand_offs():
        path = layout.hand_off(hand_off.at, hand_off.hash)
        if everything or not path.exists() or layout.relative(path) not in digests:
            digests |= _put(path, hand_off_page(hand_off), layout)
            written.append(path)
    return written, {"digests": digests}


def _priors(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    """A PRIORS.md that a person wrote, at the top of a repository, is set aside."""
    path = layout.project("priors")
    if path.is_file() and not path.read_bytes().startswith(BANNER.encode("utf-8")):
        set_aside(path, "not-ours")
    return [path], {"digests": _put(path, priors_page(ledger.priors()), layout)}


def _facts(
    ledger: Ledger, layout: Layout, note: Note, everything: bool
) -> tuple[list[Path], Note]:
    return export_facts(ledger, layout.facts_dir, check=everything), None


_PROJECTIONS: dict[str, Callable[[Ledger, Layout, Note, bool], tuple[list[Path], Note]]] = {
    "checklist": _checklist,
    "decision_log": _decision_log,
    "state": _state,
    "briefing": _briefing,
    "hand_offs": _hand_offs,
    "priors": _priors,
    "facts": _facts,
}
_SAYING_NEXT = {"state", "briefing"}
_FILES: dict[str, Callable[[Layout], Path]] = {
    "checklist": lambda layout: layout.project("checklist"),
    "decision_log": lambda layout: layout.decision_log,
    "state": lambda layout: layout.state_md,
    "briefing": lambda layout: layout.briefing,
    "priors": lambda layout: layout.project("priors"),
}
