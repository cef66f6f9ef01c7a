"""What a user installs may be used and passed on freely: every direct dependency has a permissive
licence."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, files, metadata

import pytest
from source_tree import ROOT

PERMISSIVE = {
    "MIT",
    "MIT License",
    "0BSD",
    "BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD 3-Clause License",
    "Zlib",
    "CC0-1.0",
    "BSL-1.0",
    "Apache-2.0",
    "Apache Software License",
    "Apache 2.0 License",
    "Apache-2.0 WITH LLVM-exception",
    "PSF-2.0",
    "Python Software Foundation License",
    "ISC",
    "ISC License (ISCL)",
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
}
"""SPDX names and the names of trove classifiers. MPL covers its own files only, and we change none
of them."""


def direct() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["loop"], *extras["train"], *extras["traces"]]
    return [name.group() for text in wanted if (name := re.match(r"[\w.-]+", text))]


def licences(package: str) -> list[str]:
    """The parts of its SPDX expression, else of its classifiers, else of its old-style licence
    text, else the title of its licence file."""
    said = metadata(package)
    if said["License-Expression"]:
        return [
            part.strip("() ") for part in re.split(r" (?:AND|OR) ", said["License-Expression"])
        ]
    lines = said.get_all("Classifier") or []
    named = [line.rpartition(" :: ")[2] for line in lines if line.startswith("License ::")]
    return named or [said["License"] or title(package)]


def title(package: str) -> str:
    own = [path for path in files(package) or () if path.name == "LICENSE"]
    return own[0].read_text().splitlines()[0] if own else ""


@pytest.mark.parametrize("package", direct())
def test_direct_dependency_has_a_permissive_licence(package: str):
    try:
        found = licences(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    assert found
    assert set(found) <= PERMISSIVE
