"""A PEFT adapter, read by hand: its form, the base that it is for, whether it changes a weight."""

import json
import struct
from collections.abc import (
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.files import irregular_file

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_SIZES = {"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
_LARGEST_CONFIG = 1024 * 1024
_LARGEST_HEADER = 100 * 1024 * 1024
_BLOCK = 1 << 22
"""Numbers that are held at once."""
# The header is JSON of somebody else's making: any key, type or number in it can be wrong.
_MALFORMED = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError),
    *(OverflowError, struct.error, RecursionError),
)
_PREFIX = "base_model.model."
"""Before the base's own name of a weight that an adapter holds whole."""


def adapter_fault(folder: Path, base: Mapping[str, Any]) -> str | None:
    """Why the folder is no PEFT adapter of the base model `base` (id, path), or one that changes
    nothing; None when it is one."""
    config = folder / _CONFIG
    if not folder.is_dir():
        return "it is not a folder"
    if (odd := irregular_file(folder)) is not None:
        return f"it holds a link or a pipe: {odd.relative_to(folder)}"
    try:
        if config.stat().st_size > _LARGEST_CONFIG:
            return f"{_CONFIG} has more than {_LARGEST_CONFIG:,} bytes"
        values = json.loads(config.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"{_CONFIG} cannot be read: {error}"
    if not isinstance(values, dict) or not isinstance(values.get("peft_type"), str):
        return f"{_CONFIG} is not an object with the format's keys"
    if (named := values.get("base_model_name_or_path")) not in (None, base["id"], base["path"]):
        return f"{_CONFIG} names the base model {named!r}; specified is {base['id']}"
    if (fault := tensors_fault(folder / _WEIGHTS)) is not None:
        return f"{_WEIGHTS}: {fault}"
    try:
        return _idle(folder / _WEIGHTS, values["peft_type"], base["path"])
    except _MALFORMED as error:
        return f"{_WEIGHTS} or the base model cannot be read: {type(error).__name__}: {error}"


def tensors_fault(path: Path) -> str | None:
    """Why the file is not a safetensors file, or holds a number that is not finite."""
    try:
        size, tensors = path.stat().st_size, _read_tensors(path)
        if not tensors:
            return "it has no tensors"
        end = max(tensor.end for tensor in tensors.values())
        # Exactly: bytes behind the last tensor could hold anything, and change the hash.
        if end != size:
            return f"it has {size} bytes, its header says {end}"
        return next(
            (f"{name} {fault}" for name, one in tensors.items() if (fault := _fault(one))),
            None,
        )
    except _MALFORMED as error:
        return f"it is not a safetensors file: {type(error).__name__}: {error}"


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    path: Path
    kind: str
    shape: tuple[int, ...]
    begin: int
    """In the file."""
    end: int

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) if self.shape else 1

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Its numbers, some at a time; of bfloat16 the bits, since numpy has no such numbers."""
        for first in range(0, self.count, _BLOCK):
            width = np.dtype(_KINDS[self.kind]).itemsize
            count = min(_BLOCK, self.count - first)
            with self.path.open("rb") as stream:
                stream.seek(self.begin + first * width)
                yield np.frombuffer(stream.read(count * width), dtype=_KINDS[self.kind])


def _read_tensors(path: Path) -> dict[str, _Tensor]:
    """Name -> tensor, by the header. Raises one of `_MALFORMED`."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = struct.unpack("<Q", stream.read(8))[0]
        # Before it is read: the first 8 bytes could claim a header of any size.
        if length > min(size - 8, _LARGEST_HEADER):
            raise ValueError("its header is longer than the file")
        header = json.loads(stream.read(length))
    return {
        name: _Tensor(
            path=path,
            kind=entry["dtype"],
            shape=tuple(entry["shape"]),
            begin=8 + length + entry["data_offsets"][0],
            end=8 + length + entry["data_offsets"][1],
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _fault(tensor: _Tensor) -> str | None:
    kind, held = tensor.kind, tensor.end - tensor.begin
    width = np.dtype(_KINDS[kind]).itemsize if kind in _KINDS else _SIZES[kind]
    if tensor.count * width != held or tensor.begin < 8:
        return f"has {held} bytes for {tensor.count} numbers of {kind}"
    if kind not in _KINDS:
        return None
    # With all exponent bits set, a bfloat16 is infinity or NaN.
    finite = all(
        bool(((block & 0x7F80) != 0x7F80).all())
        if kind == "BF16"
        else bool(np.isfinite(block).all())
        for block in tensor.blocks()
    )
    return None if finite else "holds a number that is not finite"


def _idle(path: Path, kind: str, base: str | None) -> str | None:
    """Why no weight of the model differs from the base's; None when one does."""
    tensors = _read_tensors(path)
    used = {name for name, tensor in tensors.items() if not _is_constant(tensor, 0)}
    if not used:
        return "all its numbers are 0"
    # A product: what LoRA adds is B A, which is 0 before the first step, when B is.
    used -= {name for name in used if "lora_" in name and _partner(name) not in used}
    # What IA3 multiplies by is 1 before the first step.
    if kind == "IA3":
        used -= {name for name in used if _is_constant(tensors[name], 1)}
    used -= set(_as_in_base(tensors, used, base))
    return None if used else "no weight differs from the base model's"


def _partner(name: str) -> str | None:
    """The other factor; None for what belongs to both, as a magnitude does."""
    for mine, other in (("_A", "_B"), ("_B", "_A")):
        for kind in ("lora", "lora_embedding"):
            if f"{kind}{mine}" in name:
                return name.replace(f"{kind}{mine}", f"{kind}{other}")
    return None


def _is_constant(tensor: _Tensor, number: int) -> bool:
    """Whether all its numbers are `number`; False for whole numbers, which are not looked at."""
    if tensor.kind not in _KINDS:
        return tensor.count == 0
    if tensor.kind == "BF16":
        # By the bits; the sign of a zero is not looked at.
        wanted, mask = (0, 0x7FFF) if number == 0 else (0x3F80, 0xFFFF)
        return all(bool(((block & mask) == wanted).all()) for block in tensor.blocks())
    return all(bool((block == number).all()) for block in tensor.blocks())


def _as_in_base(
    tensors: Mapping[str, _Tensor], names: Iterable[str], base: str | None
) -> Iterator[str]:
    """Those of `names` that the base model has with the same bytes."""
    whole = {name: name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)}
    files = sorted(Path(base).glob("*.safetensors")) if base is not None and whole else []
    known: dict[str, _Tensor] = {}
    for file in files:
        known |= _read_tensors(file)
    for name, plain in whole.items():
        mine, theirs = tensors[name], known.get(plain)
        if theirs is not None and (mine.kind, mine.shape) == (theirs.kind, theirs.shape):
            pairs = zip(_bytes(mine), _bytes(theirs), strict=True)
            if all(one == other for one, other in pairs):
                yield name


def _bytes(tensor: _Tensor) -> Iterator[bytes]:
    with tensor.path.open("rb") as stream:
        stream.seek(tensor.begin)
        left = tensor.end - tensor.begin
        while left > 0 and (block := stream.read(min(_BLOCK, left))):
            left -= len(block)
            yield block
