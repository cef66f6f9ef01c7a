"""A base model that no table knows: what its own folder says of it."""

import json
import math
import re
import struct
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from harness.domain.plain_text import one_line
from harness.errors import UsageError

_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?\Z")
_LARGEST_HEADER = 100 << 20
_LONGEST = 100
"""Characters of a word that a folder says of itself: it enters the facts."""
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
_HINT = "Give a folder as `save_pretrained` of transformers writes it, tokenizer included."


def local_model(identifier: str, folder: Path) -> dict[str, Any]:
    """{id, family, parameters, licence} of a transformers model in `folder`: its `model_type`, the
    numbers in its safetensors files, the licence that its README's front matter names.

    Raises UsageError when it is none, is an adapter, or has its weights as pickles.
    """
    if _ID.match(identifier) is None:
        raise UsageError(
            f"{identifier!r} is no id of a model.", hint="E.g. `my-org/my-model` or `my-model`."
        )
    if (folder / "adapter_config.json").exists():
        raise UsageError(
            f"{folder} is an adapter, not a model.", hint="Merge it into its base model first."
        )
    config = _config(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UsageError(
            f"{folder} has no safetensors; weights as pickles could run code.",
            hint="Save it again with `safe_serialization=True`.",
        )
    if not any((folder / name).exists() for name in _TOKENIZERS):
        raise UsageError(f"{folder} has no tokenizer.", hint=_HINT)
    return {
        "id": identifier,
        "family": one_line(config["model_type"], _LONGEST),
        "parameters": sum(map(_numbers, files)),
        "licence": _licence(folder / "README.md"),
    }


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", hint=_HINT) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise UsageError(f"{path} names no model_type.", hint=_HINT)
    return config


def _numbers(path: Path) -> int:
    """Of all tensors of a safetensors file, by its header."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _LARGEST_HEADER:
                raise ValueError(f"a header of {length:,} bytes")
            header = json.loads(stream.read(length))
        shapes = [each["shape"] for name, each in header.items() if name != "__metadata__"]
        return sum(math.prod(shape) for shape in shapes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UsageError(f"{path} is no safetensors file: {error}.", hint=_HINT) from error


def _licence(readme: Path) -> str:
    try:
        _, front, _ = readme.read_text("utf-8").split("---\n", 2)
        values = yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError):
        return "unknown"
    licence = values.get("license") if isinstance(values, dict) else None
    return one_line(str(licence or "unknown"), _LONGEST)
