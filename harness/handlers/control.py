"""The control files of a project and a digest of each: what decides what is enforced."""

from __future__ import annotations

import os

from harness.policy.receipt import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .scene import Scene

SETTINGS = (os.path.join(".claude", "settings.json"), os.path.join(".claude", "settings.local.json"))
CONFIG = os.path.join(".harness", "config.toml")
MISSING = "missing"
_DIGITS = 16


def control_digests(scene: Scene) -> dict[str, str]:
    """Path -> the first digits of its SHA-256, "missing" where there is none; the programs of the hooks, with their
    library, count as one."""
    home = scene.home
    if home is None:
        return {}
    plans = [artifact["glob"] for artifact in home.snapshot.get("artifacts", ()) if artifact["writer"] == "human"]
    names = dict.fromkeys([*SETTINGS, CONFIG, *plans, *(["plan.md"] if not plans else [])])
    found = {name: _digest(os.path.join(home.root, name)) for name in names}
    folder = scene.installed.folder
    library = (os.path.join(scene.installed.library, room) for room in ("policy", "handlers"))
    together = "".join(f"{name} {_digest(name)}\n" for place in (folder, *library) for name in _sources(place))
    shown = os.path.relpath(folder, home.root) if folder.startswith(home.root + "/") else folder
    return {**found, shown: sha256_hex(together.encode("utf-8", "surrogateescape"))[:_DIGITS]}


def _sources(folder: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name.endswith((".py", ".json")))


def _digest(path: str) -> str:
    """Of a file; of a folder's plans, of all of them."""
    if os.path.isdir(path):
        text = "".join(f"{name} {_digest(os.path.join(path, name))}\n" for name in sorted(os.listdir(path)))
        return sha256_hex(text.encode("utf-8", "surrogateescape"))[:_DIGITS]
    try:
        with open(path, "rb") as file:
            return sha256_hex(file.read())[:_DIGITS]
    except OSError:
        return MISSING
