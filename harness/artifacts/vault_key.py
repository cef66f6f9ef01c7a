"""The vault's key: it keeps hashes of secret data from being the data, slowly.

Who guesses the labels of a small table finds them by a plain hash. What facts and files say of data
is therefore HMAC-SHA256 under a key that never leaves the vault.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
from dataclasses import field
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.artifacts.objects import ObjectDamagedError, damaged
from harness.domain.late import Late, dataclass
from harness.files import private_folder, sync_directory

NAME = "key"
_BYTES = 32
_KEYED = ("held_out", "sealed", "originals")
"""Folders of the vault that hold nothing before there is a key."""


@dataclass(frozen=True)
class VaultKey(Late):
    _secret: bytes = field(repr=False)

    def of(self, digest: str) -> str:
        """The keyed hash of what has the SHA-256 `digest`: equal for equal content."""
        return hmac.new(self._secret, digest.encode("ascii"), hashlib.sha256).hexdigest()

    def of_file(self, path: Path) -> str:
        """Errors as `hash_file`."""
        return self.of(hash_file(path))

    def check(self, path: Path, expected: str) -> None:
        """Raises ObjectDamagedError unless the file at `path` has the keyed hash `expected`."""
        actual = self.of_file(path) if path.is_file() else "missing"
        if actual != expected:
            raise damaged(path, expected, actual)


def vault_key(vault: Path) -> VaultKey:
    """The key of this vault, made with its first use. Raises ObjectDamagedError for a damaged one:
    a new key would call everything in the vault changed."""
    path = vault / NAME
    if not path.exists():
        _require_empty(vault)
        _make(path)
    return _read(path)


def existing_key(vault: Path) -> VaultKey | None:
    """None where there is no vault, as in a clone."""
    path = vault / NAME
    return _read(path) if path.exists() else None


def key_of(vault: Path, file: Path) -> VaultKey | None:
    """The key for a secret `file`; None where neither is there, as in a clone. Raises
    ObjectDamagedError for a file without a key: its plain hash is nothing to tell."""
    key = existing_key(vault)
    if key is None and file.exists():
        raise key_lost(file)
    return key


def _require_empty(vault: Path) -> None:
    for name in _KEYED:
        file = next((vault / name).glob("*"), None)
        # Asked last: another process may have made the key, and used it, since.
        if file is not None and not (vault / NAME).exists():
            raise key_lost(file)


def key_lost(file: Path) -> ObjectDamagedError:
    return ObjectDamagedError(
        f"The vault holds {file.name}, and its key is gone: nobody can say whether what lies there"
        " was changed.",
        hint="Restore the state directory from a backup, the key included.",
    )


def _read(path: Path) -> VaultKey:
    secret = path.read_bytes()
    if len(secret) != _BYTES:
        raise ObjectDamagedError(
            f"The vault's key {path} has {len(secret)} bytes; expected {_BYTES}.",
            hint="Restore the state directory from a backup.",
        )
    return VaultKey(secret)


def _make(path: Path) -> None:
    private_folder(path.parent)
    fresh = path.with_name(f".{NAME}.{secrets.token_hex(8)}.new")
    _write_new(fresh)
    try:
        # A link, which replaces nothing: of two processes the first one's key is the vault's.
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    except OSError:
        # A file system without links: whoever creates the file has the vault's key.
        with contextlib.suppress(FileExistsError):
            _write_new(path)
    finally:
        fresh.unlink()
    sync_directory(path.parent)


def _write_new(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(secrets.token_bytes(_BYTES))
        stream.flush()
        os.fsync(stream.fileno())
