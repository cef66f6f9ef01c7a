"""The libraries that a training runs with, as a digest in its run's environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.libraries import environments, read_libraries
from harness.artifacts.locate import Layout
from harness.artifacts.objects import store_bytes
from harness.domain.commands import found
from harness.files import canonical_json


def training_libraries(layout: Layout, programs: Sequence[str], python: Mapping[str, Any]) -> str:
    """Hash of {name: digest} in the vault: of the files of the Python environment below the project
    by which the first of `programs` that has one starts. Elsewhere no agent writes: there, of the
    packages' versions, as `ask_python` gave them."""
    for program in programs:
        path = Path(found(program) or program)
        if path.is_absolute() and (prefixes := environments(layout.root, path)):
            names = read_libraries(layout.root, prefixes, layout.libraries_seen).digests
            break
    else:
        names = {"python": python["python"], **python["packages"]}
    return store_bytes(canonical_json(names), layout.objects)
