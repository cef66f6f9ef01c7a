"""Writing the projections that are out of date or gone. Files are functions of the facts, byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.files import atomic_write, set_aside
from harness.ledger import Ledger
from harness.ledger.exchange import export_facts
from harness.ledger.text_form import text_path
from harness.projections import checklist
from harness.projections.briefing import briefing
from harness.projections.decision_log import HEAD, entry
from harness.projections.hand_offs import hand_off_page
from harness.projections.priors_page import priors_page
from harness.projections.state_page import state_page
from harness.projections.text import BANNER

Note = dict[str, Any] | None


def refresh(ledger: Ledger, layout: Layout, *, everything: bool = False) -> list[Path]:
    """Bring every stale or missing projection up to date; the files that were written.

    With `everything` all of them are made anew. Nothing is synced: what a power cut takes is made again.
    """
    if not everything and not _due(ledger, layout):
        return []
    written: list[Path] = []
    notes: dict[str, Any] = {}
    with ledger.refreshing():
        names = set(_PROJECTIONS) if everything else _due(ledger, layout)
        before = ledger.projection_notes()
        for name, project in _PROJECTIONS.items():
            if name in names:
                paths, note = project(ledger, layout, None if everything else before.get(name), everything)
                written += paths
                if note is not None:
                    notes[name] = note
        ledger.projections_written(names, notes=notes)
    return written


def pages(ledger: Ledger, layout: Layout) -> dict[Path, str]:
    """Path -> text, of every page for people that is written and up to date, as the facts say it: what stands in such a
    file and is something else was put there. Nothing is written.

    Pages that are due are left out: the next refresh writes them. Nothing is known of a clone whose facts wait.
    """
    due = _due(ledger, layout)
    found: dict[Path, str] = {}
    if "checklist" not in due:
        found |= _checklist_pages(ledger, layout)
    if "decision_log" not in due:
        found[layout.decision_log] = HEAD + "".join(entry(decision) for _, decision in ledger.decisions_after(0))
    singles: dict[str, tuple[Path, Callable[[], str]]] = {
        "state": (layout.state_md, lambda: state_page(ledger)),
        "briefing": (layout.briefing, lambda: briefing(ledger)),
        "priors": (layout.project("priors"), lambda: priors_page(ledger.priors())),
    }
    found |= {path: text() for name, (path, text) in singles.items() if name not in due}
    if "hand_offs" not in due:
        found |= {layout.hand_off(item.at, item.hash): hand_off_page(item) for item in ledger.hand_offs()}
    return found


def _checklist_pages(ledger: Ledger, layout: Layout) -> dict[Path, str]:
    last = ledger.last_number()
    edge = checklist.boundary(last)
    found = {}
    for first, path in _older_pages(layout, edge).items():
        texts = ledger.checklist_texts(first, min(first + checklist.PAGE - 1, edge))
        found[path] = checklist.older_page(first, texts, edge)
    return found | {layout.project("checklist"): _first_page(ledger, layout, edge, last)}


def _first_page(ledger: Ledger, layout: Layout, edge: int, last: int) -> str:
    unfinished, total = ledger.open_checklist_texts(edge, checklist.OPEN_SHOWN)
    return checklist.first_page(ledger.checklist_texts(edge + 1), unfinished, total, last, layout)


def _due(ledger: Ledger, layout: Layout) -> set[str]:
    missing = {name for name, path in _FILES.items() if not path(layout).exists()}
    if any(not text_path(layout.facts_dir, writer).exists() for writer in ledger.writers()):
        missing.add("facts")
    if any(not layout.hand_off(*key).exists() for key in ledger.hand_off_keys()):
        missing.add("hand_offs")
    edge = checklist.boundary(ledger.last_number())
    if any(not path.exists() for path in _older_pages(layout, edge).values()):
        missing.add("checklist")
    return ledger.stale_projections() | missing


def _older_pages(layout: Layout, edge: int) -> dict[int, Path]:
    """First number -> path of each page that must exist."""
    return {
        first: layout.checklist_page(first, first + checklist.PAGE - 1) for first in range(1, edge + 1, checklist.PAGE)
    }


def _checklist(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    plans = {(plan.name, plan.version): plan.content for plan in ledger.plans()}
    inputs = ledger.checklist_inputs(dirty_only=not everything)
    rows = {
        item["number"]: checklist.checklist_row(item, plans.get((item["plan"], item["plan_version"])))
        for item in inputs
    }
    ledger.store_checklist_rows(rows)
    last = ledger.last_number()
    edge = checklist.boundary(last)
    before = int((note or {}).get("boundary", 0))
    touched = {checklist.page_of(number)[0] for number in rows if number <= edge}
    touched |= {checklist.page_of(number)[0] for number in range(before + 1, edge + 1, checklist.BATCH)}
    written: list[Path] = []
    for first, path in _older_pages(layout, edge).items():
        if first in touched or not path.exists():
            texts = ledger.checklist_texts(first, min(first + checklist.PAGE - 1, edge))
            atomic_write(path, checklist.older_page(first, texts, edge), durable=False)
            written.append(path)
    front = layout.project("checklist")
    atomic_write(front, _first_page(ledger, layout, edge, last), durable=False)
    return [front, *written], {"boundary": edge}


def _decision_log(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    """Appended to when the file is as it was left; written anew when it is not."""
    path = layout.decision_log
    continues = note is not None and path.exists() and path.stat().st_size == note["size"]
    after = int(note["number"]) if continues and note is not None else 0
    added = ledger.decisions_after(after)
    data = "".join(entry(decision) for _, decision in added).encode("utf-8")
    if continues:
        with path.open("ab") as stream:
            stream.write(data)
    else:
        atomic_write(path, HEAD.encode("utf-8") + data, durable=False)
    return [path], {"number": added[-1][0] if added else after, "size": path.stat().st_size}


def _state(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    atomic_write(layout.state_md, state_page(ledger), durable=False)
    return [layout.state_md], None


def _briefing(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    atomic_write(layout.briefing, briefing(ledger), durable=False)
    return [layout.briefing], None


def _hand_offs(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    """A page is written once; what is there stays, unless everything is made anew."""
    written = []
    for item in ledger.hand_offs():
        path = layout.hand_off(item.at, item.hash)
        if everything or not path.exists():
            atomic_write(path, hand_off_page(item), durable=False)
            written.append(path)
    return written, None


def _priors(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
    """A page of that name that a person wrote, at the top of a repository, is set aside."""
    path = layout.project("priors")
    if path.is_file() and not path.read_bytes().startswith(BANNER.encode("utf-8")):
        set_aside(path, "not-ours")
    atomic_write(path, priors_page(ledger.priors()), durable=False)
    return [path], None


def _facts(ledger: Ledger, layout: Layout, note: Note, everything: bool) -> tuple[list[Path], Note]:
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
_FILES: dict[str, Callable[[Layout], Path]] = {
    "checklist": lambda layout: layout.project("checklist"),
    "decision_log": lambda layout: layout.decision_log,
    "state": lambda layout: layout.state_md,
    "briefing": lambda layout: layout.briefing,
    "priors": lambda layout: layout.project("priors"),
}
