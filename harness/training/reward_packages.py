"""Reward functions of installed packages: entry points of the group `harness.rewards`.

    python -m harness.training.reward_packages DISTRIBUTION NAME

prints {"version", "sha256"} of the package that has the entry point, in this interpreter: what a
specification freezes. A training refuses a package with another hash.
"""

import json
import sys
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
)
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, NotFoundError
from harness.files import canonical_json, sha256_bytes, sha256_file

GROUP = "harness.rewards"
_NO_CODE = ("__pycache__", ".pyc", "RECORD", "direct_url.json", "INSTALLER", "REQUESTED")
"""Files that differ from one installation to the next."""


def entry_point(package: str, name: str) -> tuple[EntryPoint, Distribution]:
    """Raises NotFoundError for a package that is not installed, or has no such entry point."""
    try:
        found = distribution(package)
    except PackageNotFoundError:
        raise _none(f"The package {package} is not installed in {sys.executable}.") from None
    for one in found.entry_points:
        if (one.group, one.name) == (GROUP, name):
            return one, found
    raise _none(f"The package {package} has no entry point {name} of the group {GROUP}.")


def _none(message: str) -> NotFoundError:
    hint = f'Install it, or declare `[project.entry-points."{GROUP}"]` in it.'
    return NotFoundError(message, hint=hint, code="reward_missing")


def package_sha256(found: Distribution) -> str:
    """Of the names and bytes of all its files. Raises NotFoundError where it lists none, as an
    editable installation does."""
    files = {
        str(one): sha256_file(Path(str(one.locate())))
        for one in found.files or ()
        if not any(word in str(one) for word in _NO_CODE) and Path(str(one.locate())).is_file()
    }
    if not any(name.endswith((".py", ".so")) for name in files):
        raise _none(f"{found.name} lists no code that could be frozen; an editable installation?")
    return sha256_bytes(canonical_json(files))


def described(package: str, name: str) -> dict[str, Any]:
    _, found = entry_point(package, name)
    return {"version": found.version, "sha256": package_sha256(found)}


def main() -> int:
    try:
        print(json.dumps(described(*sys.argv[1:3])))  # noqa: T201  its answer
    except HarnessError as error:
        print(json.dumps({"error": error.message}))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
