"""The private HOME and temporary folder of one run: outside the project, found again by the run's
token."""

import shutil
import tempfile
from pathlib import Path


def private_folder(token_sha256: str) -> Path:
    """Its path; short, because sockets below it have names of at most about 100 bytes."""
    return Path(tempfile.gettempdir()).resolve() / f"harness-run-{token_sha256[:16]}"


def make_private(token_sha256: str) -> Path:
    """Make it for this user alone. Raises FileExistsError when somebody was there first."""
    folder = private_folder(token_sha256)
    folder.mkdir(mode=0o700)
    return folder


def remove_private(token_sha256: str) -> None:
    """What cannot be removed stays in the system's temporary folder."""
    shutil.rmtree(private_folder(token_sha256), ignore_errors=True)
