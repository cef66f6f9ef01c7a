"""Writes the files that derive from the contract, or compares them with it."""

import json
from pathlib import Path
from typing import Any

from harness.contract.artifacts import PLUGIN_MANIFEST
from harness.contract.installation import (
    AGENTS,
    COMMANDS,
    MANIFEST,
    MCP_SERVERS,
    OWN_HOOKS,
    SETTINGS,
    VENDORED,
)
from harness.contract.roles import ROLES
from harness.contract.slash_commands import SLASH_COMMANDS
from harness.errors import RefusedError
from harness.files import atomic_write, pretty_json, sha256_bytes
from harness.guard.agent_files import has_own_hooks
from harness.rendering import prompts
from harness.rendering.claude_files import (
    own_servers,
    own_settings,
    plugin_hooks,
    plugin_manifest,
    plugin_market,
)
from harness.rendering.prompts import agent_file, command_file

BANNERS = (prompts.AGENT_BANNER, prompts.COMMAND_BANNER)
PLUGIN_AGENTS, PLUGIN_COMMANDS = "agents", "commands"
"""Where a plugin has them; only the harness's own repository is one."""


def render(root: Path, check: bool = False) -> list[Path]:
    """Write the rendered files of `root`; with `check` only compare.

    Returns the paths that differed: changed, missing, or no longer wanted (removed). Raises
    RefusedError for a file that is a person's: without our banner, or edited since we wrote it.
    """
    wanted = expected(root)
    differing = [path for path, text in wanted.items() if _read(root / path) != text]
    stale = [
        path
        for folder in _folders(wanted)
        for path in _rendered(root, folder)
        if path not in wanted
    ]
    if not check:
        known = _written(root)
        for path in differing:
            _require_ours(root / path, known.get(str(path)))
        for path in differing:
            atomic_write(root / path, wanted[path])
        for path in stale:
            (root / path).unlink()
        _note(root, wanted)
    return sorted(differing + stale)


def expected(root: Path) -> dict[Path, str]:
    """Path relative to `root` -> text, of every rendered file that belongs there."""
    if has_own_hooks(root):
        return {**_own_files(), **installed_texts()}
    return installed_texts() if (root / VENDORED / MANIFEST).is_file() else {}


def installed_texts() -> dict[Path, str]:
    """The agents and slash commands of every project."""
    agents = {Path(AGENTS, f"{role.name}.md"): agent_file(role) for role in ROLES}
    return agents | {
        Path(COMMANDS, f"{command.name}.md"): command_file(command) for command in SLASH_COMMANDS
    }


def is_rendered(text: str) -> bool:
    return any(banner in text for banner in BANNERS)


def _own_files() -> dict[Path, str]:
    """The files of the plugin and of this repository, besides agents and commands."""
    documents: dict[str, dict[str, Any]] = {
        f"{OWN_HOOKS}/hooks.json": plugin_hooks(),
        PLUGIN_MANIFEST: plugin_manifest(),
        ".claude-plugin/marketplace.json": plugin_market(),
        SETTINGS: own_settings(),
        MCP_SERVERS: own_servers(),
    }
    agents = {
        Path(PLUGIN_AGENTS, f"{role.name}.md"): agent_file(role, plugin=True) for role in ROLES
    }
    texts = {
        Path(PLUGIN_COMMANDS, f"{command.name}.md"): command_file(command)
        for command in SLASH_COMMANDS
    }
    return {
        **{Path(name): pretty_json(value) for name, value in documents.items()},
        **agents,
        **texts,
    }


def _manifest(root: Path) -> dict[str, Any] | None:
    """The manifest of vendored hooks; None if missing or damaged, as the doctor reports."""
    path = root / VENDORED / MANIFEST
    if has_own_hooks(root) or not path.is_file():
        return None
    try:
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return {**value, "rendered": dict(value["rendered"])}
    except (ValueError, KeyError, TypeError):
        return None


def _written(root: Path) -> dict[str, str]:
    """Path -> SHA-256 of what we wrote there last, where that is known."""
    value = _manifest(root)
    return {} if value is None else value["rendered"]


def _note(root: Path, wanted: dict[Path, str]) -> None:
    """Record the new hashes, so that our own change is not taken for an edit."""
    path, value = root / VENDORED / MANIFEST, _manifest(root)
    if value is None:
        return
    before = value["rendered"]
    value["rendered"] = {
        str(name): sha256_bytes(text.encode("utf-8")) for name, text in wanted.items()
    }
    if value["rendered"] != before:
        atomic_write(path, pretty_json(value))


def _folders(wanted: dict[Path, str]) -> list[Path]:
    return sorted({path.parent for path in wanted})


def _rendered(root: Path, folder: Path) -> list[Path]:
    pages = sorted((root / folder).glob("*.md"))
    return [path.relative_to(root) for path in pages if is_rendered(_read(path) or "")]


def _require_ours(path: Path, written: str | None) -> None:
    text = _read(path)
    if text is not None and written is not None and sha256_bytes(text.encode("utf-8")) != written:
        raise RefusedError(
            f"{path} was edited since the harness wrote it; your edit is kept, and nothing was"
            " rendered.",
            hint=(
                "For the harness's version, delete that file (or move your edit away), then run"
                " `harness render` again."
            ),
            code="rendered_file_edited",
        )
    if text is not None and path.suffix == ".md" and not is_rendered(text):
        raise RefusedError(
            f"{path} exists, but the harness did not render it and has a file of that name.",
            hint="Rename that file, then run `harness render` again.",
            code="rendered_file_taken",
        )


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        return ""
