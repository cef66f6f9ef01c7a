"""Whether an artifact is what its format says: every tensor is read as far as numpy can, none of
torch."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from harness.files import irregular_file

_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_SIZES = {"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
_LARGEST_HEADER = 100 * 1024 * 1024


def artifact_fault(folder: Path) -> str | None:
    """Why the folder is no PEFT adapter; None when it is one."""
    config = folder / "adapter_config.json"
    if not folder.is_dir():
        return "it is no folder"
    if (odd := irregular_file(folder)) is not None:
        return f"it holds a link or a pipe: {odd.relative_to(folder)}"
    try:
        values = json.loads(config.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"{config.name} cannot be read: {error}"
    if not isinstance(values, dict) or not isinstance(values.get("peft_type"), str):
        return f"{config.name} is no object with the format's keys"
    name = "adapter_model.safetensors"
    return f"{name}: {fault}" if (fault := tensors_fault(folder / name)) else None


def tensors_fault(path: Path) -> str | None:
    """Why a safetensors file is none, or holds a number that is not finite."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = struct.unpack("<Q", stream.read(8))[0]
            if length > min(size - 8, _LARGEST_HEADER):
                return "its header is longer than the file"
            header = json.loads(stream.read(length))
        tensors = {name: item for name, item in header.items() if name != "__metadata__"}
        if not tensors:
            return "it has no tensors"
        end = max(item["data_offsets"][1] for item in tensors.values())
        if 8 + length + end != size:
            return f"it has {size} bytes, its header says {8 + length + end}"
        return next(
            (
                f"{name} {fault}"
                for name, item in tensors.items()
                if (fault := _fault(path, length, item))
            ),
            None,
        )
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        struct.error,
        RecursionError,
    ) as error:
        return f"it is no safetensors file: {type(error).__name__}: {error}"


def _fault(path: Path, length: int, item: dict[str, Any]) -> str | None:
    kind, (begin, end) = item["dtype"], item["data_offsets"]
    count = int(np.prod(item["shape"], dtype=np.int64)) if item["shape"] else 1
    width = np.dtype(_KINDS[kind]).itemsize if kind in _KINDS else _SIZES[kind]
    if count * width != end - begin or begin < 0:
        return f"has {end - begin} bytes for {count} numbers of {kind}"
    if kind not in _KINDS or count == 0:
        return None
    values = np.memmap(
        path, dtype=_KINDS[kind], mode="r", offset=8 + length + begin, shape=(count,)
    )
    finite = (
        bool(((values & 0x7F80) != 0x7F80).all())
        if kind == "BF16"
        else bool(np.isfinite(values).all())
    )
    return None if finite else "holds a number that is not finite"
