"""Folders of experiments whose ids a merge changed, and pages that name them."""

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.artifacts.content import read_text, write_below
from harness.artifacts.locate import Layout
from harness.contract.artifacts import ARTIFACTS, RUNS, Form, Scope
from harness.errors import UsageError
from harness.files import atomic_write

_EXACT = {"code", "spec"}
"""Runs were made with them, and facts hold their hashes; so with configurations and logs, and with
all that training wrote into `checkpoints`."""
_NAMING = {
    scope: [
        artifact.path
        for artifact in ARTIFACTS
        if artifact.scope is scope
        and artifact.form in (Form.MARKDOWN, Form.JSON)
        and artifact.name not in _EXACT
    ]
    for scope in (Scope.EXPERIMENT, Scope.RUN)
}
"""What may name an experiment: the texts of roles, and what the harness writes."""


class Renaming(NamedTuple):
    """What one merge renamed."""

    seq: int
    """Number of its fact in the chain of this ledger's writer."""
    names: Mapping[str, str]
    """Old id -> new id."""
    experiments: Sequence[str]
    """All that this writer had opened until then, by their ids of today."""


def move_experiments(
    layout: Layout, renamings: Sequence[Renaming], here: Collection[str]
) -> list[str]:
    """Give folders of experiments `here`, which this tree opened, their new names, and the pages
    in them the new ids; returns the new folders. What was done in this tree once is not done again:
    pages that were written since may mean the other clone's. Cut, the next call goes on."""
    moved = []
    done = _done(layout)
    for one in (one for one in renamings if one.seq > done):
        own = [name for name in one.experiments if name in here]
        for old, new in one.names.items():
            if new in own and _is_moved(layout.experiment(old), layout.experiment(new)):
                moved.append(layout.relative(layout.experiment(new)))
        words = "|".join(map(re.escape, one.names))
        pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
        # No new id is an old one, so a page that was rewritten before the cut stays as it is.
        for path in (path for name in own for path in _pages(layout.experiment(name))):
            # Bytes that are no text name nothing.
            with contextlib.suppress(UsageError):
                _rename_in(layout.root, path, pattern, one.names)
        atomic_write(layout.renamed, json.dumps(one.seq))
    return moved


def _done(layout: Layout) -> int:
    try:
        return int(layout.renamed.read_bytes())
    except (OSError, ValueError):
        return 0


def _is_moved(source: Path, target: Path) -> bool:
    if not source.is_dir() or source.is_symlink() or target.exists():
        return False
    source.rename(target)
    return True


def _pages(folder: Path) -> Iterator[Path]:
    places = [(folder, Scope.EXPERIMENT)]
    places += [(run, Scope.RUN) for run in sorted(folder.glob(f"{RUNS}/*"))]
    for place, scope in places:
        for path in (place / name for name in _NAMING[scope]):
            if path.is_file() and not path.is_symlink():
                yield path


def _rename_in(root: Path, path: Path, pattern: re.Pattern[str], names: Mapping[str, str]) -> None:
    before = read_text(path)
    after = pattern.sub(lambda found: names[found[0]], before)
    if after != before:
        write_below(root, path, after)
