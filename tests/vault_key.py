"""One vault key for several projects, which are to draw the same seeds."""

from pathlib import Path

from harness.artifacts.vault_key import NAME
from harness.files import private_folder


def give_key(vault: Path) -> None:
    """Before anything lies in `vault`. Seeds are drawn of the plan and of the secret tables'
    hashes, keyed by the vault: with one key they are the same in every project."""
    private_folder(vault)
    (vault / NAME).write_bytes(bytes(range(32)))
    (vault / NAME).chmod(0o600)
