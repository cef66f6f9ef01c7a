"""Folders of experiments whose ids a merge changed."""

import re
from collections.abc import Mapping
from pathlib import Path

from harness.artifacts.content import read_text, write_below
from harness.artifacts.locate import Layout
from harness.domain.ids import is_experiment_id
from harness.files import walk_files

_NAMING = {".md", ".json"}
"""What names its own experiment: the texts of roles, and what the harness writes. Configurations,
code and logs stay, byte for byte: runs were made with them."""


def move_experiments(layout: Layout, names: Mapping[str, str]) -> list[str]:
    """Give the folders in this tree their new names, and the texts in them the new ids; returns
    the new folders. Where the folder is not there, or the new one is, nothing is moved."""
    moved = []
    words = "|".join(map(re.escape, names))
    pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
    for old, new in names.items():
        if not is_experiment_id(old):
            continue
        source, target = layout.experiment(old), layout.experiment(new)
        if source.is_dir() and not source.is_symlink() and not target.exists():
            source.rename(target)
            moved.append(layout.relative(target))
            for path in walk_files(target):
                if path.suffix in _NAMING and path.is_file() and not path.is_symlink():
                    _rename_in(layout.root, path, pattern, names)
    return moved


def _rename_in(root: Path, path: Path, pattern: re.Pattern[str], names: Mapping[str, str]) -> None:
    before = read_text(path)
    after = pattern.sub(lambda found: names[found[0]], before)
    if after != before:
        write_below(root, path, after)
