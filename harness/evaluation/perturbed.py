"""A copy of a checkpoint with other weights, so that a predict that uses them answers otherwise.

Nothing of the checkpoint runs: arrays are read as data, a torch zip and safetensors are changed by
their bytes, text by its numbers. What cannot be changed so, such as a pickle, is named.
"""

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts.npz import Array, BadFileError, hostile, read_npy, read_npz
from harness.files import walk_files

MOST_BYTES = 2 << 30
"""Of a file whose weights are changed; a larger one is left alone, and said."""
_MOST_TEXT = 16 << 20
_MOST_HEADER = 32 << 20
_BLOCK = 1 << 20
_PATTERN = b"\x80\x44\x80\x44\x80\x44\x80\x44"
"""A large positive number as bfloat16, float16, float32 and float64 alike."""
_STORAGE = re.compile(r"[^/]+/data/\d+\Z")
"""A member of a torch zip that holds the raw numbers of one tensor's storage."""
_FRACTION = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])"
)
_WHOLE = re.compile(r"(?<![\w.])[-+]?\d+(?![\w.])")


class Change(StrEnum):
    """What becomes of the weights, the mildest first."""

    SHUFFLED = "shuffled and with the other sign"
    RAISED = "all one large number"
    LOWERED = "all one large negative number"


@dataclass(frozen=True, kw_only=True)
class Perturbed:
    path: Path
    """The copy."""
    changed: int
    """Files in it with other weights; 0 when nothing could be changed."""
    opaque: tuple[str, ...]
    """Files that may hold weights and cannot be changed."""


def perturbed(source: Path, target: Path, change: Change) -> Perturbed:
    """Copy the file or folder `source` to `target`, with `change`. `target` is not there yet.
    Raises OSError when the copy cannot be written."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copyfile(source, target)
    files = [path for path in _files(target) if not path.is_symlink()]
    for path in (target, *(files if target.is_dir() else ())):
        path.chmod(0o755 if path.is_dir() else 0o644)
    texts = {path for path in files if _is_text(path)}
    changed, opaque = 0, []
    for path in files:
        if path in texts:
            continue
        if _changed(path, change):
            changed += 1
        else:
            alone = f"a {source.suffix} file" if source.suffix else "a file"
            opaque.append(path.name if source.is_dir() else alone)
    # Beside arrays, text is settings and vocabulary; alone, it is the model.
    if not changed and not opaque:
        changed = sum(_change_text(path, change) for path in texts)
    return Perturbed(path=target, changed=changed, opaque=tuple(opaque))


def _files(path: Path) -> Iterator[Path]:
    yield from walk_files(path) if path.is_dir() else (path,)


def _is_text(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(4096)
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and b"\0" not in head
    return b"\0" not in head


def _changed(path: Path, change: Change) -> bool:
    """Whether it is of a known form and has other weights now."""
    if path.stat().st_size > MOST_BYTES:
        return False
    with path.open("rb") as stream:
        head = stream.read(8)
    form: Callable[[Path, Change], bool] = _safetensors
    if head.startswith(b"\x93NUMPY"):
        form = _npy
    elif head.startswith(b"PK\x03\x04"):
        form = _archive
    try:
        with hostile("is damaged"):
            return form(path, change)
    except BadFileError:
        return False


def _npy(path: Path, change: Change) -> bool:
    with path.open("rb") as stream:
        array = read_npy(stream, size=path.stat().st_size, most_bytes=MOST_BYTES)
    other = _array(array, change)
    if other is None:
        return False
    with path.open("wb") as stream:
        np.save(stream, other, allow_pickle=False)
    return True


def _archive(path: Path, change: Change) -> bool:
    with zipfile.ZipFile(path) as archive:
        is_torch = any(_STORAGE.match(name) for name in archive.namelist())
    return _torch(path, change) if is_torch else _npz(path, change)


def _npz(path: Path, change: Change) -> bool:
    with path.open("rb") as stream:
        arrays = read_npz(stream, most_bytes=MOST_BYTES)
    others = {name: _array(array, change) for name, array in arrays.items()}
    if all(other is None for other in others.values()):
        return False
    with path.open("wb") as stream:
        kept = {name: arrays[name] if other is None else other for name, other in others.items()}
        np.savez(stream, allow_pickle=False, **kept)  # type: ignore[arg-type]
    return True


def _torch(path: Path, change: Change) -> bool:
    # Its data.pkl says the types; it is never unpickled. Raw bytes change well enough without.
    new = path.with_name(f"{path.name}.new")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as other:
        members = old.infolist()
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise BadFileError("unpacks to too much")
        for member in members:
            data = bytearray(old.read(member))
            if _STORAGE.match(member.filename):
                _change_bytes(np.frombuffer(data, np.uint8), change)
            other.writestr(member.filename, bytes(data))
    new.replace(path)
    return True


def _safetensors(path: Path, change: Change) -> bool:
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= min(_MOST_HEADER, size - 8):
            return False
        tensors = json.loads(stream.read(length))
    whole = np.memmap(path, dtype=np.uint8, mode="r+")
    done = False
    for name, tensor in tensors.items():
        if name == "__metadata__":
            continue
        begin, end = (int(place) + 8 + length for place in tensor["data_offsets"])
        if not 8 + length <= begin <= end <= size:
            raise BadFileError("has tensors outside of it")
        _change_bytes(whole[begin:end], change)
        done |= end > begin
    whole.flush()
    return done


def _change_bytes(raw: Any, change: Change) -> None:
    """Change numbers of an unknown type in place."""
    if change is not Change.SHUFFLED:
        pattern = np.frombuffer(_PATTERN, np.uint8).copy()
        if change is Change.LOWERED:
            pattern[1::2] |= 0x80
        whole = raw[: len(raw) // 2 * 2]
        whole[:] = np.resize(pattern, len(whole))
        return
    for begin in range(0, len(raw), _BLOCK):
        block = raw[begin : begin + _BLOCK]
        words = block[: len(block) // 8 * 8].reshape(-1, 8)
        words[:] = words[_order(len(words))]
        # The sign of float32, of float64, and of every other one of the half types.
        block[3::4] ^= 0x80
        if len(block) < 4:
            block[1::2] ^= 0x80


def _array(array: Array, change: Change) -> Array | None:
    """With other values of the same type; None for text, and where there is nothing to change."""
    if array.size == 0 or array.dtype.kind not in "biuf":
        return None
    flat = array.reshape(-1).copy()
    if change is Change.SHUFFLED:
        flat = flat[_order(len(flat))]
        flat = -flat if array.dtype.kind == "f" else flat
    elif array.dtype.kind == "f":
        flat[:] = 1026.0 if change is Change.RAISED else -1026.0
    elif change is Change.RAISED:
        flat ^= flat.dtype.type(1)
    else:
        flat[:] = 0
    return flat.reshape(array.shape)


def _order(n: int) -> Any:
    return np.random.default_rng(n).permutation(n)


def _change_text(path: Path, change: Change) -> bool:
    if path.stat().st_size > _MOST_TEXT:
        return False
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return False
    number = _FRACTION if _FRACTION.search(text) else _WHOLE
    other = number.sub(lambda found: _spelled(found.group(), change), text)
    path.write_text(other, "utf-8")
    return other != text


def _spelled(number: str, change: Change) -> str:
    if change is Change.SHUFFLED:
        return number[1:] if number.startswith("-") else f"-{number.lstrip('+')}"
    large = "1026" if number.lstrip("-+").isdigit() else "1026.0"
    return large if change is Change.RAISED else f"-{large}"
