"""Wheels of distributions that are installed here: a local index without a network."""

import shutil
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def copied_source(folder: Path) -> None:
    """What a wheel is built from: a build writes beside it."""
    folder.mkdir()
    for name in ("harness", "templates", "hooks", "examples"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)


def needed(requirements: Iterable[str]) -> Iterator[Distribution]:
    """What they need and what that needs, with the extras that are asked for, each once."""
    waiting, asked, told = [Requirement(text) for text in requirements], set(), set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key in asked:
            continue
        asked.add(key)
        found = distribution(name)
        for one in map(Requirement, found.requires or ()):
            extras = ["", *wanted.extras]
            if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in extras):
                waiting.append(one)
        if name not in told:
            told.add(name)
            yield found


def packed(found: Distribution, folder: Path) -> Path:
    """The wheel again, as it was installed; no byte code, and none of its scripts."""
    folder.mkdir(parents=True, exist_ok=True)
    text = found.read_text("WHEEL") or ""
    tags = [line.split()[1] for line in text.splitlines() if line.startswith("Tag:")]
    interpreters, abis, platforms = (
        sorted(set(part)) for part in zip(*(tag.split("-") for tag in tags), strict=True)
    )
    tag = "-".join(".".join(part) for part in (interpreters, abis, platforms))
    name = canonicalize_name(found.metadata["Name"]).replace("-", "_")
    path = folder / f"{name}-{found.version}-{tag}.whl"
    inside = f"{name}-{found.version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        records = []
        for file in found.files or ():
            parts = list(file.parts)
            own = file.parts[0].endswith(".dist-info")
            left_out = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}
            if ".." in parts or "__pycache__" in parts or (own and file.name in left_out):
                continue
            place = Path(found.locate_file(file))
            if not place.is_file():
                continue
            written = "/".join([inside, *parts[1:]] if own else parts)
            archive.write(place, written)
            records.append(f"{written},,\n")
        archive.writestr(f"{inside}/RECORD", "".join([*records, f"{inside}/RECORD,,\n"]))
    return path


def uv_takes(home: Path, folder: Path) -> None:
    """uv's own settings, of a user: wheels from `folder` alone."""
    place = home / ".config/uv"
    place.mkdir(parents=True, exist_ok=True)
    (place / "uv.toml").write_text(f'no-index = true\nfind-links = ["{folder}"]\n')
