"""Reading one artifact as evidence: what is wrong with a file is a finding, never an exception."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from harness.artifacts.content import hash_path, linked
from harness.artifacts.locate import Layout
from harness.errors import HarnessError
from harness.files import sha256_file
from harness.gates.evidence import FileEvidence
from harness.gates.findings import finding

Parsed = TypeVar("Parsed")


def read_evidence(
    layout: Layout, name: str, path: Path, parse: Callable[[Path], Parsed]
) -> tuple[FileEvidence, Parsed | None]:
    """The file as evidence, and what `parse` made of it; None when it is absent or `parse` refused
    it.

    A link is never followed, a pipe never opened.
    """
    shown = layout.relative(path)
    link = linked(layout.root, path)
    if link is not None:
        found = finding(
            "artifact_linked",
            f"{layout.relative(link)} is a symbolic link, so {shown} is no evidence.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(found,)), None
    try:
        status = os.lstat(path)
    except OSError:
        return FileEvidence(name=name, path=shown, sha256=None), None
    if not stat.S_ISREG(status.st_mode):
        found = finding(
            "artifact_unreadable",
            f"{shown} is not a regular file.",
            "Put a regular file in its place.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(found,)), None
    return _regular(name, shown, path, parse, status.st_size)


def _regular(
    name: str, shown: str, path: Path, parse: Callable[[Path], Parsed], size: int
) -> tuple[FileEvidence, Parsed | None]:
    try:
        digest = sha256_file(path)
        if not size:
            found = finding("artifact_empty", f"{shown} is empty.")
            return FileEvidence(name=name, path=shown, sha256=digest, problems=(found,)), None
        return FileEvidence(name=name, path=shown, sha256=digest), parse(path)
    except OSError as error:
        found = finding(
            "artifact_unreadable",
            f"{shown} cannot be read: {error.strerror}.",
            "Check its permissions.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(found,)), None
    except HarnessError as error:
        found = finding("artifact_unreadable", f"{shown}: {error.message}", error.hint)
        return FileEvidence(name=name, path=shown, sha256=digest, problems=(found,)), None


def content_hash(layout: Layout, relative: str) -> str | None:
    """Hash of a checkpoint as it lies there now; None when it is absent, a link, outside, or cannot
    be read."""
    path = layout.root / relative
    if (
        ".." in Path(relative).parts
        or Path(relative).is_absolute()
        or linked(layout.root, path) is not None
    ):
        return None
    try:
        return hash_path(path)
    except (HarnessError, OSError):
        return None
