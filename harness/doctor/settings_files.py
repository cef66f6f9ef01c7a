"""The settings files that decide whether hooks run, strongest first.

Measured with CLI 2.1.332: managed > local > project > user for `disableAllHooks`; a file that is
not JSON, or has one value of a wrong type, is skipped as a whole, silently in an unattended
session; a byte order mark is accepted.
"""

import json
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contract.installation import LOCAL_SETTINGS, OWN_HOOKS, SETTINGS

MANAGED, LOCAL, PROJECT, USER, PLUGIN = "managed", "local", "project", "user", "plugin"
MANAGED_FOLDER = Path(
    "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
)
"""An organisation's settings; from the binary of CLI 2.1.332."""


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    source: str
    path: Path
    problem: str = ""
    """Why it is not read, e.g. "it is not JSON: ..."; "" if it is read or missing."""
    exists: bool = True
    data: dict[str, Any] = field(default_factory=dict)


def read_settings(path: Path, source: str) -> SettingsFile:
    try:
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return SettingsFile(source=source, path=path, exists=False)
    except OSError as error:
        return SettingsFile(
            source=source, path=path, problem=f"it cannot be read: {error.strerror}"
        )
    except UnicodeDecodeError as error:
        return SettingsFile(
            source=source,
            path=path,
            problem=f"it is not UTF-8: {error.reason} at byte {error.start}",
        )
    # We may be root, who reads everything; the person who starts `claude` may not be.
    if not path.stat().st_mode & stat.S_IRUSR:
        return SettingsFile(source=source, path=path, problem="its mode lets nobody read it")
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return SettingsFile(source=source, path=path, problem=f"it is not JSON: {error}")
    if not isinstance(data, dict):
        return SettingsFile(
            source=source,
            path=path,
            problem=f"it holds {type(data).__name__}, expected one object",
        )
    return SettingsFile(source=source, path=path, data=data)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def settings_files(
    folder: Path, user_folder: Path, managed_folder: Path, plugin: Path | None = None
) -> tuple[SettingsFile, ...]:
    """The settings of `claude` started in `folder`, strongest first; the hooks of `plugin` last."""
    managed = [managed_folder / "managed-settings.json"]
    managed += sorted((managed_folder / "managed-settings.d").glob("*.json"))
    return (
        *(read_settings(path, MANAGED) for path in managed),
        read_settings(folder / LOCAL_SETTINGS, LOCAL),
        read_settings(folder / SETTINGS, PROJECT),
        read_settings(user_folder / "settings.json", USER),
        *([read_settings(plugin / OWN_HOOKS / "hooks.json", PLUGIN)] if plugin else []),
    )
