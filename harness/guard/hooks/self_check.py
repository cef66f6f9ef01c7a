"""What a running hook can see of its own health, cheaply: the
quick form of `harness doctor`.

A dead guard cannot speak for itself, so this is told at the
start of each session by a hook that still runs.
"""

from __future__ import annotations

import os

from harness.guard.policy.receipt import sha256_hex

from .projects import FILTER, LOCAL_SETTINGS, MANIFEST, SETTINGS, read_json
from .settings_guard import fault_and_cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .hook_scene import HookScene

_CODE = (".py", ".pyc", ".so")
_AGAIN = "A person runs `harness init` in their own terminal, which installs the hooks again."
_MEND = (
    "A person takes that out of the file in their own terminal, and `harness doctor` says whether"
    " all guards work again."
)
_EDITED = (
    "A person decides in their own terminal: for the harness's own again they delete the file and"
    " run `harness init`, which leaves an edited file as it is; `harness audit --accept` keeps the"
    " edit, and this is said all the same."
)
_STRANGE = (
    "A person looks at it and deletes it, or keeps it with `harness audit --accept`; `harness init`"
    " leaves it."
)


class DeadGuard:
    """What leaves a guard dead or doubtful: a line for the model
    with its hint; for the person a few words and the command
    that mends it."""

    __slots__ = ("command", "line", "words")

    def __init__(self, line: str, words: str, command: str = "harness init") -> None:
        self.line = line
        self.words = words
        self.command = command


def dead_guards(scene: HookScene) -> list[DeadGuard]:
    """What denies everything first; empty when all is well."""
    home = scene.home
    if home is None:
        return []
    found = _files(scene.installed.folder) + _settings(scene)
    if home.trouble:
        line = f"{home.trouble[1]} Every tool call is denied until then. {home.trouble[2]}"
        words = "every tool call is denied, for .harness/policy.json cannot be used"
        return [DeadGuard(line, words, home.mend), *found]
    written = home.snapshot.get("policy")
    if isinstance(written, str) and written != library_digest(scene.installed.library):
        line = (
            f"The hooks at {scene.installed.folder} are of another version than the `harness` that"
            f" wrote {os.path.join(home.source, '.harness', 'policy.json')}. {_AGAIN} Where they"
            " are the repository's own, `harness render` does."
        )
        found.append(DeadGuard(line, "the hooks are of another version than `harness`"))
    return found


def library_digest(library: str) -> str:
    """SHA-256 over the sources that hooks run: names and bytes
    of guard/policy/*.py, guard/hooks/*.py and the filter in
    `library`."""
    whole = b""
    for room in ("guard/hooks", "guard/policy"):
        for name in sorted(os.listdir(os.path.join(library, room))):
            if name.endswith(".py"):
                whole += (
                    f"{room}/{name}\n".encode() + _bytes(os.path.join(library, room, name)) + b"\n"
                )
    return sha256_hex(whole + _bytes(os.path.join(library, FILTER)))


def vendored_files(folder: str) -> dict[str, list[str]] | None:
    """Which of the installed files in `folder` are missing,
    edited, or strange (code that was not installed), by their
    names in it; None when no manifest says what was
    installed."""
    manifest, _ = read_json(os.path.join(folder, MANIFEST))
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not files:
        return None
    missing = [name for name in files if not os.path.isfile(os.path.join(folder, name))]
    return {
        "missing": missing,
        "edited": [
            name
            for name in files
            if name not in missing and _digest(os.path.join(folder, name)) != files[name]
        ],
        "strange": sorted(_code_below(folder) - set(files)),
    }


def _files(folder: str) -> list[DeadGuard]:
    """Whether the vendored files are those that were installed.
    Without a manifest nothing is vendored."""
    path = os.path.join(folder, MANIFEST)
    files = vendored_files(folder)
    if (
        files is None
        and not os.path.exists(path)
        and not os.path.isdir(os.path.join(folder, "lib"))
    ):
        return []
    if files is None:
        line = f"{path} is missing or damaged, so it is unknown whether the hooks were edited."
        return [DeadGuard(f"{line} {_AGAIN}", "the list of installed hooks is gone")]
    says = (
        ("missing", "hook not found", _AGAIN, "harness init"),
        ("edited", "hook edited", _EDITED, "harness doctor"),
        ("strange", "not installed by the harness", _STRANGE, "harness doctor"),
    )
    return [
        DeadGuard(
            f"{words}: {', '.join(files[kind])} in {folder}. {hint}",
            f"{words}: {files[kind][0]}",
            command,
        )
        for kind, words, hint, command in says
        if files[kind]
    ]


def _settings(scene: HookScene) -> list[DeadGuard]:
    """What the settings of the project and of this machine
    switch off."""
    home = scene.home
    if home is None:
        return []
    found = []
    for name in (SETTINGS, LOCAL_SETTINGS):
        path = os.path.join(home.root, name)
        text, missing = fault_and_cause(path, home, scene)
        hint, command = (_AGAIN, "harness init") if missing else (_MEND, "harness doctor")
        if text:
            words = text.replace(path, name).rstrip(".")
            found.append(DeadGuard(f"{text} {hint}", words, command))
    return found


def _code_below(folder: str) -> set[str]:
    names_below = set()
    for place, _, names in os.walk(folder):
        names_below |= {
            os.path.relpath(os.path.join(place, name), folder)
            for name in names
            if name.endswith(_CODE)
        }
    return {name for name in names_below if "__pycache__" not in name.split(os.sep)}


def _digest(path: str) -> str:
    """SHA-256 of a file; empty for one that cannot be read,
    which is none that was installed."""
    try:
        return sha256_hex(_bytes(path))
    except OSError:
        return ""


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
