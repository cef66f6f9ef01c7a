"""Checkpoints in a store that machines share: a folder or a bucket, over fsspec.

    files/<2 digits>/<sha256>      one file's bytes
    folders/<2 digits>/<sha256>    a folder: its sorted [path, sha256] pairs, which give its hash

What is stored is named by what it holds, so it is stored once, and what comes back is checked by
that name. fsspec is loaded only here.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.artifacts.content import hash_file, open_regular
from harness.artifacts.objects import ObjectDamagedError, copy_verified
from harness.domain.late import later
from harness.errors import FROM, MissingExtraError, NotFoundError, RefusedError, UsageError
from harness.files import canonical_json, make_folder, sha256_bytes, walk_files

if TYPE_CHECKING:
    from botocore import exceptions
    from fsspec import core
else:
    core = later("fsspec.core")
    exceptions = later("botocore.exceptions")

_BLOCK = 4 << 20
_LONGEST_LIST = 64 << 20
SCHEMES = ("file", "s3")


class Sent(NamedTuple):
    files: int
    bytes: int
    known: int
    """Files that were there."""


class RemoteStore:
    """`url`: file:///a/folder or s3://bucket/prefix; credentials come from the environment."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._fs, self._root = core.url_to_fs(url, **_options(url))
        except ImportError as error:
            raise MissingExtraError(
                f"{url} needs a package that is not installed ({error.name or error}).",
                hint=f"`pip install 'experiment-harness[s3]'`, {FROM}",
            ) from error

    def put(self, path: Path, digest: str) -> Sent:
        """Store a file or a folder of files whose hash is `digest`.

        Raises RefusedError when it has another, or links; UsageError when the store fails.
        """
        with self._answering():
            if not path.is_dir():
                return self._send(path, digest)
            return self._send_folder(path, digest)

    def get(self, digest: str, target: Path) -> None:
        """Write what is stored under `digest` to the new file or folder `target`.

        Raises NotFoundError, ObjectDamagedError for other bytes, and UsageError; nothing is left at
        `target` then.
        """
        make_folder(target.parent)
        incoming = target.with_name(f".{target.name}.{digest[:8]}.incoming")
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        try:
            with self._answering():
                entries = self._folder(digest)
                if entries is None:
                    whole = self._fetch(digest, incoming)
                else:
                    whole = incoming / "folder"
                    whole.mkdir()
                    for name, part in entries:
                        place = whole / name
                        make_folder(place.parent)
                        self._fetch(part, place.parent).rename(place)
            whole.rename(target)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)

    def _send_folder(self, path: Path, digest: str) -> Sent:
        entries = {}
        for file in walk_files(path):
            if file.is_symlink():
                raise RefusedError(
                    f"{file} is a link: what it leads to would not be stored.",
                    hint="Save regular files, then train again.",
                    code="link_in_checkpoint",
                )
            entries[file.relative_to(path).as_posix()] = hash_file(file)
        listed = canonical_json([[name, entries[name]] for name in sorted(entries)])
        if (actual := sha256_bytes(listed)) != digest:
            raise _changed(path, digest, actual)
        sent = [self._send(path / name, part) for name, part in entries.items()]
        # Last: a folder that is listed is whole.
        key = self._key("folders", digest)
        if not self._fs.exists(key):
            self._make_parent(key)
            self._fs.pipe_file(key, listed)
        return (
            Sent(*(sum(column) for column in zip(*sent, strict=True))) if sent else Sent(0, 0, 0)
        )

    def _send(self, path: Path, digest: str) -> Sent:
        key = self._key("files", digest)
        with open_regular(path, follow=False) as reading:
            size = os.fstat(reading.fileno()).st_size
            if self._fs.exists(key) and self._fs.size(key) == size:
                return Sent(0, 0, 1)
            self._make_parent(key)
            hashed = hashlib.sha256()
            # Seen by nobody before the commit, which what was sent must deserve.
            writing = self._fs.open(key, "wb", autocommit=False)
            try:
                while block := reading.read(_BLOCK):
                    hashed.update(block)
                    writing.write(block)
                writing.close()
                if hashed.hexdigest() != digest:
                    raise _changed(path, digest, hashed.hexdigest())
                writing.commit()
            except BaseException:
                with contextlib.suppress(*_errors()):
                    writing.discard()
                raise
        self._fs.invalidate_cache()
        if self._fs.size(key) != size:
            raise UsageError(
                f"{self.url} took {self._fs.size(key)} of {size} bytes of {path}.",
                hint="Push it again.",
                code="store_failed",
            )
        return Sent(1, size, 0)

    def _folder(self, digest: str) -> list[tuple[PurePosixPath, str]] | None:
        """The entries of a folder; None for what is none."""
        key = self._key("folders", digest)
        if not self._fs.exists(key):
            return None
        with self._fs.open(key, "rb") as stream:
            data = stream.read(_LONGEST_LIST)
        if (actual := sha256_bytes(data)) != digest:
            raise self._damaged(digest, actual)
        return [(_inside(name), str(part)) for name, part in json.loads(data)]

    def _fetch(self, digest: str, folder: Path) -> Path:
        """Into `folder`, under its hash."""
        key = self._key("files", digest)
        if not self._fs.exists(key):
            raise NotFoundError(
                f"{self.url} does not hold {digest[:12]}.",
                hint="`harness artifacts push` where the checkpoint is.",
                code="not_stored",
            )
        with self._fs.open(key, "rb") as stream:
            try:
                copy_verified(stream, folder, digest)
            except ObjectDamagedError as error:
                raise self._damaged(digest, "other bytes") from error
        path = folder / digest
        path.chmod(0o644)
        return path

    def _damaged(self, digest: str, actual: str) -> ObjectDamagedError:
        return ObjectDamagedError(
            f"{self.url} holds other bytes under {digest[:12]}: {actual[:12]}.",
            hint="Remove that object from the store and push the checkpoint again.",
        )

    def _key(self, kind: str, digest: str) -> str:
        return f"{self._root.rstrip('/')}/{kind}/{digest[:2]}/{digest}"

    def _make_parent(self, key: str) -> None:
        if self.url.startswith("file:"):  # a bucket has no folders
            self._fs.makedirs(key.rpartition("/")[0], exist_ok=True)

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except _errors() as error:
            raise UsageError(
                f"{self.url} cannot be used: {error}.",
                hint="Does it exist, and does the environment hold what opens it (AWS_PROFILE, or"
                " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS_ENDPOINT_URL)?",
                code="store_failed",
            ) from error


def _options(url: str) -> dict[str, Any]:
    return {"use_listings_cache": False} if url.startswith("s3:") else {"auto_mkdir": True}


def _errors() -> tuple[type[BaseException], ...]:
    try:
        return (OSError, exceptions.BotoCoreError)
    except ImportError:
        return (OSError,)


def _changed(path: Path, digest: str, actual: str) -> RefusedError:
    return RefusedError(
        f"{path} has changed since its run: expected SHA-256 {digest[:12]}, found {actual[:12]}.",
        hint="Restore it, or train again: nothing of it was stored.",
        code="checkpoint_changed",
    )


def _inside(name: object) -> PurePosixPath:
    """Raises UsageError for a path that leads out of the folder."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in str(name):
        raise UsageError(
            f"A stored folder names {name!r}, which leads out of it.",
            hint="Find out who wrote to the store; push the checkpoint again.",
            code="store_failed",
        )
    return path
