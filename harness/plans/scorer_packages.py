"""Packages of a script that scores: an environment of their own in the vault, where neither an
agent nor a training writes. It is made when a person approves the plan, from the index that the
person's pip (or uv) knows, and recorded by all of its files.

Wheels alone are installed: they run nothing while they are. What is compiled is compiled then, and
counts like a source; nothing is written there later.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.artifacts.looked import seen
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.errors import PlanError
from harness.files import atomic_write, canonical_json, make_folder, sha256_bytes
from harness.process import module_command

WHOLE = "installed.txt"
"""Written last: an environment without it was not finished."""
_MINUTES = 30
_NEEDED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_OF_INSTALLERS = ("PIP_", "UV_")
_WIDEST = 300


@dataclass(frozen=True, kw_only=True)
class ScorerEnvironment(Late):
    folder: Path
    text: str
    """Names and versions of all that is installed, a line each, then the digest of all files."""

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.text.encode())

    def plain(self) -> dict[str, str]:
        return {"folder": self.folder.name, "sha256": self.sha256}


def place_of(scorers: Path, packages: Sequence[str]) -> Path:
    """Of these packages, for the Python that runs this."""
    key = [sorted(packages), sys.version, sysconfig.get_platform(), sys.base_prefix]
    return scorers / sha256_bytes(canonical_json(key))[:16]


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def standing(folder: Path) -> ScorerEnvironment | None:
    """The environment as it is now; None where it is not there, or not whole."""
    if not (folder / WHOLE).is_file():
        return None
    lines = [*_installed(folder), f"files: {_digest(folder)}"]
    return ScorerEnvironment(folder=folder, text="\n".join(lines) + "\n")


def require_environment(
    scorers: Path, packages: Sequence[str], environment: Mapping[str, str]
) -> ScorerEnvironment:
    """The environment of `packages`, made unless it is there. `environment`: a person's, of which
    pip and uv get what names an index. Raises PlanError (scorer_packages)."""
    folder = place_of(scorers, packages)
    if (there := standing(folder)) is not None:
        return there
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(scorers)
    try:
        _run(module_command("venv", "--without-pip", str(folder)), packages, environment)
        _run([*_installer(folder, packages, environment), *packages], packages, environment)
        # By hash and unchecked: the same sources give the same files, whenever they are compiled.
        words = ("-q", "--invalidation-mode", "unchecked-hash", str(_site(folder)))
        _run(module_command("compileall", *words), packages, environment, strict=False)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    atomic_write(folder / WHOLE, "".join(f"{line}\n" for line in _installed(folder)))
    made = standing(folder)
    assert made is not None  # its last file was just written
    return made


def _installer(folder: Path, packages: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    python, wheels = str(python_of(folder)), ("--only-binary", ":all:", "--quiet")
    if importlib.util.find_spec("pip") is not None:
        more = ("--no-input", "--disable-pip-version-check", "--no-compile")
        return [*module_command("pip", "--python", python), "install", *wheels, *more]
    uv = shutil.which("uv", path=environment.get("PATH"))
    if uv is None:
        raise _refused(
            packages,
            f"the harness's own Python {sys.executable} has no pip, and there is no uv on PATH",
            "Install one of them",
        )
    return [uv, "pip", "install", "--python", python, *wheels]


def _run(
    words: Sequence[str],
    packages: Sequence[str],
    environment: Mapping[str, str],
    *,
    strict: bool = True,
) -> None:
    try:
        done = subprocess.run(
            list(words),
            env=_passed(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_MINUTES * 60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(packages, one_line(str(error), _WIDEST), "Look at what it says") from error
    if strict and done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        told = [line for line in said if line.lower().startswith("error")] or said
        raise _refused(
            packages,
            one_line(told[-1], _WIDEST).removeprefix("ERROR: ").rstrip("."),
            "Correct oracle.packages or the connection; without a network name a folder of wheels"
            " (`PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER`, of uv `UV_OFFLINE=1 UV_FIND_LINKS=FOLDER`)",
        )


def _passed(environment: Mapping[str, str]) -> dict[str, str]:
    """No variable PYTHON*, and no key but those of an index."""
    names = {*_NEEDED, *_NETWORK, *(name.lower() for name in _NETWORK)}
    return {
        name: value
        for name, value in environment.items()
        if name in names or name.startswith(_OF_INSTALLERS)
    }


def _refused(packages: Sequence[str], why: str, way: str) -> PlanError:
    return PlanError(
        f"oracle.packages: {', '.join(packages)} could not be installed for the scorer: {why};"
        " expected wheels of these versions for this Python.",
        hint=f"{way}; then `harness plan approve` again.",
        code="scorer_packages",
    )


def _site(folder: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"


def _installed(folder: Path) -> list[str]:
    found = distributions(path=[str(_site(folder))])
    return sorted(f"{one.metadata['Name']}=={one.version}" for one in found)


def _digest(folder: Path) -> str:
    """Of every file, by its path; of a link by where it leads."""
    looks = []
    for place, folders, names in os.walk(folder):
        for name in [*names, *(one for one in folders if Path(place, one).is_symlink())]:
            path = Path(place, name)
            link = os.readlink(path) if path.is_symlink() else ""
            looks.append((str(path.relative_to(folder)), link, *seen(path.lstat())))
    return _contents(folder, tuple(sorted(looks)))


@functools.lru_cache(maxsize=8)
def _contents(folder: Path, looks: tuple[tuple[str | int, ...], ...]) -> str:
    """One command looks several times: what has size, times and inode as before is not read."""
    parts = [[name, link or hash_file(folder / str(name))] for name, link, *_ in looks]
    return sha256_bytes(canonical_json(parts))
