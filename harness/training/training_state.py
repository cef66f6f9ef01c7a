"""The state of a training as tensors and plain types, for `torch.load(weights_only=True)`."""

import gc
import pickle
import random
import re
from collections import (
    Counter,
    OrderedDict,
)
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.errors import UsageError

_UNREADABLE = (
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)
_AVERAGE = re.compile(r"^EMA(Model)?$|ModelEm[aA]|ExponentialMovingAverage|^AveragedModel$")
_PLAIN = (str, int, float, bool, bytes, type(None))


def plain(value: Any, where: str) -> Any:
    """`value` as tensors, numbers, texts, lists and mappings; NumPy's scalars and arrays become
    Python's and torch's. Raises UsageError naming the first other type and its place."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        # torch's unsigned types are partial. int64 has the same bits; `_arrays` turns them back.
        return torch.from_numpy(
            value.astype(np.int64) if value.dtype.kind == "u" else value.copy()
        )
    if type(value) in (list, tuple):
        return type(value)(plain(part, f"{where}[{index}]") for index, part in enumerate(value))
    if isinstance(value, Mapping) and type(value) in (dict, OrderedDict, Counter):
        parts = {
            plain(key, f"a key of {where}"): plain(part, f"{where}.{key}")
            for key, part in value.items()
        }
        return Counter(parts) if isinstance(value, Counter) else parts
    raise UsageError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}; a checkpoint holds"
        " tensors, numbers, texts, lists and dicts only.",
        hint=(
            "Save its numbers and texts, e.g. str(path) or vars(namespace), and build the object"
            " from them again."
        ),
        code="checkpoint_not_plain",
    )


def load(path: Path) -> Any:
    """Read on the CPU what `torch.save` wrote; no code in the file is run. Raises UsageError for
    other than tensors and plain types."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise UsageError(
            f"{path.name} does not load as tensors and plain types: {_first_line(error)}",
            hint=(
                "Save it again with the program that wrote it, with state_dict() and plain values"
                " only."
            ),
            code="checkpoint_not_plain",
        ) from error


def _first_line(error: BaseException) -> str:
    lines = [
        line.strip()
        for line in str(error).splitlines()
        if "GLOBAL" in line or "unsupported" in line.lower()
    ]
    return f"{type(error).__name__}: {(lines or [str(error).strip()])[0]}"[:400]


def random_state() -> dict[str, Any]:
    """State of the global random generators of Python, NumPy, torch and each GPU."""
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    cuda = torch.cuda.get_rng_state_all() if _gpus_in_use() else []
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [name, [int(key) for key in keys], int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
        "cuda": list(cuda),
    }


def _gpus_in_use() -> bool:
    # is_initialized: the random state of a GPU that nobody uses is not worth starting CUDA for.
    cuda = torch.cuda
    return bool(cuda.is_available() and cuda.is_initialized())  # type: ignore[no-untyped-call]


def restore_random(state: Mapping[str, Any]) -> list[str]:
    """The inverse; names what is not in `state` or does not fit this machine."""
    missing = [
        f"random numbers of {name}"
        for name in ("python", "numpy", "torch")
        if not _has(state, name)
    ]
    if _has(state, "python"):
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers), gauss))
    if _has(state, "numpy"):
        name, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    if _has(state, "torch"):
        torch.set_rng_state(state["torch"])
    cuda = state.get("cuda") or []
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if cuda and len(cuda) == here:
        torch.cuda.set_rng_state_all(cuda)
    elif cuda or _gpus_in_use():
        missing.append(f"random numbers of the GPUs ({len(cuda)} saved, {here} here)")
    return missing


def _has(state: Mapping[str, Any], name: str) -> bool:
    return state.get(name) is not None


def averages(*saved: Any) -> list[str]:
    """Averages of weights (EMA, SWA) that live beside the model and are not among `saved`."""
    known = {id(part) for whole in saved for part in (whole, *_parts_of(whole))}
    left = {
        type(found).__name__
        for found in gc.get_objects()
        if _AVERAGE.search(type(found).__name__)
        and id(found) not in known
        and callable(getattr(type(found), "state_dict", None))
    }
    return [f"the average of the weights, {name} (pass it in `more`)" for name in sorted(left)]


def _parts_of(part: Any) -> Iterable[Any]:
    return part.modules() if isinstance(part, torch.nn.Module) else ()


def capture(part: Any, name: str) -> Any:
    """State of one part: module, optimizer, scheduler, scaler, sampler, or random generator."""
    if isinstance(part, torch.Generator):
        return part.get_state()
    if isinstance(part, np.random.Generator):
        return plain(part.bit_generator.state, name)
    return plain(part.state_dict(), name)


def put_back(part: Any, state: Any) -> None:
    """The inverse of `capture`, in place."""
    if isinstance(part, torch.Generator):
        part.set_state(state)
    elif isinstance(part, np.random.Generator):
        part.bit_generator.state = _arrays(state)
    else:
        part.load_state_dict(state)


def _arrays(state: Any) -> Any:
    # NumPy's bit generators take arrays, of which `plain` made tensors.
    if isinstance(state, torch.Tensor):
        return state.numpy().astype(np.uint64)
    return (
        {key: _arrays(part) for key, part in state.items()} if isinstance(state, dict) else state
    )
