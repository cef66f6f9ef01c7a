"""The hooks as they are copied into a project: programs, and the library that they import."""

from functools import cache
from pathlib import Path

import harness
from harness.guard.hooks.projects import FILTER
from harness.guard.hooks.self_check import library_digest

PROGRAMS = Path(__file__).with_name("hooks")
"""A link to `hooks/` in a checkout; a folder in an installed package."""
LIBRARY = "lib/harness"
_ROOMS = ("guard/policy", "guard/hooks")


def vendored_files() -> dict[str, bytes]:
    """Path relative to the folder of vendored hooks -> content; the same for every project."""
    package = _package()
    files = {path.name: path.read_bytes() for path in sorted(PROGRAMS.glob("*.py"))}
    for room in ("", "guard/", "domain/"):
        files[f"{LIBRARY}/{room}__init__.py"] = (package / f"{room}__init__.py").read_bytes()
    for room in _ROOMS:
        files |= {
            f"{LIBRARY}/{room}/{path.name}": path.read_bytes()
            for path in sorted((package / room).glob("*.py"))
        }
    files[f"{LIBRARY}/{FILTER}"] = (package / FILTER).read_bytes()
    return files


@cache
def policy_digest() -> str:
    """SHA-256 over the rules and handlers of this installation; hooks compare their own with it."""
    return library_digest(str(_package()))


def _package() -> Path:
    return Path(harness.__file__).parent
