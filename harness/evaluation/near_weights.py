"""Are the weights of two checkpoints the same but for noise? Read as data, as `perturbed` does:
npy, npz, safetensors, torch zip, text; nothing of them runs.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from harness.artifacts.content import open_regular
from harness.artifacts.npz import Array, BadFileError, hostile, read_npy, read_npz
from harness.errors import HarnessError
from harness.files import walk_files

NEAR = 1e-6
"""Of the largest number of an array: what seeds change in training is thousands of times that."""
_MOST_BYTES = 1 << 30
_MOST_TEXT = 16 << 20
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_STORAGE = re.compile(r"[^/]+/data/\d+\Z")
_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def near(
    one: Path,
    other: Path,
) -> bool | None:
    """None when there is nothing in them that can be compared: files of another form."""
    if one.is_symlink() or other.is_symlink() or one.is_dir() != other.is_dir():
        return None
    names = [Path(path).relative_to(one) for path in walk_files(one)] if one.is_dir() else [Path()]
    pairs = [(one / name, other / name) for name in names]
    for read in (_arrays, _texts):
        told = []
        for first, second in pairs:
            a = _read(read, first)
            b = _read(read, second) if a else None
            if a and b:
                told.append(_alike(a, b))
        if told:
            return all(told)
    return None


def _read(
    read: object,
    path: Path,
) -> Mapping[str, Array] | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        with hostile("is damaged"):
            return read(path)  # type: ignore[operator, no-any-return]
    except (BadFileError, HarnessError, OSError):
        return None


def _alike(
    one: Mapping[str, Array],
    other: Mapping[str, Array],
) -> bool:
    if {name: values.shape for name, values in one.items()} != {
        name: values.shape for name, values in other.items()
    }:
        return False
    # A number by itself may be the seed, or a count of steps.
    wide = [name for name, values in one.items() if values.size > 1] or list(one)
    return all(_close(one[name], other[name]) for name in wide)


def _close(
    one: Array,
    other: Array,
) -> bool:
    if one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    a, b = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return False
    a, b = a[finite], b[finite]
    scale = float(np.abs(a).max(initial=0.0))
    return float(np.abs(a - b).max(initial=0.0)) <= NEAR * scale


def _arrays(path: Path) -> dict[str, Array]:
    with open_regular(path, follow=False) as stream:
        head, size = stream.read(8), path.stat().st_size
        stream.seek(0)
        if head.startswith(b"\x93NUMPY"):
            return _numbers({"": read_npy(stream, size=size, most_bytes=_MOST_BYTES)})
        if not head.startswith(b"PK\x03\x04"):
            return _safetensors(stream.read(), int.from_bytes(head, "little"))
        with zipfile.ZipFile(stream) as archive:
            members = [one for one in archive.infolist() if _STORAGE.match(one.filename)]
            if sum(member.file_size for member in members) > _MOST_BYTES:
                return {}
            # Without the folder, which has the file's name. Single precision, as nearly all
            # weights are: doubles differ in their low halves.
            storages = {
                one.filename.partition("/")[2]: _singles(archive.read(one)) for one in members
            }
        if storages:
            return storages
        stream.seek(0)
        return _numbers(read_npz(stream, most_bytes=_MOST_BYTES))


def _singles(data: bytes) -> Array:
    return np.frombuffer(data[: len(data) // 4 * 4], "<f4")


def _numbers(
    arrays: Mapping[str, Array],
) -> dict[str, Array]:
    return {
        name: values
        for name, values in arrays.items()
        if values.size and values.dtype.kind in "biuf"
    }


def _safetensors(
    data: bytes,
    length: int,
) -> dict[str, Array]:
    if not 2 <= length <= len(data) - 8:
        return {}
    found: dict[str, Array] = {}
    for name, tensor in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (int(place) + 8 + length for place in tensor["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], _TYPES.get(tensor["dtype"], "u1"))
    return found


def _texts(path: Path) -> dict[str, Array]:
    with open_regular(path, follow=False) as stream:
        text = stream.read(_MOST_TEXT + 1).decode("utf-8")
    if len(text) > _MOST_TEXT or "\0" in text:
        return {}
    numbers = [float(found) for found in _NUMBER.findall(text)]
    # The words between them are part of the name: other words are another model.
    return {_NUMBER.sub("#", text): np.array(numbers)} if numbers else {}
