"""Plugins of others whose hooks may change a call after the guards
judged it, or answer in the person's place: named at a session's start
and by `harness doctor`, and nothing more, for a person chose them."""

from __future__ import annotations

import os

from .projects import LOCAL_SETTINGS, SETTINGS, read_json
from .settings_keys import CHANGES_CALLS, HOOKS, PLUGINS, of_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

INSTALLED = os.path.join("plugins", "installed_plugins.json")
"""In Claude Code's own folder: where each plugin lies."""
_OWN_HOOKS = os.path.join("hooks", "hooks.json")
_MANIFEST = os.path.join(".claude-plugin", "plugin.json")


def changing_plugins(root: str, folder: str) -> dict[str, str]:
    """Plugin -> its events that count, e.g. "PreToolUse", of those that are switched on in the
    project at `root`; `folder`: Claude Code's own. One that does not lie where it was installed is
    not loaded."""
    value, _ = read_json(os.path.join(folder, INSTALLED))
    known = value.get("plugins") if isinstance(value, dict) else None
    found = {}
    for name in _switched_on(root, folder):
        entries = known.get(name) if isinstance(known, dict) else None
        events = {event for place in _places(entries) for event in _events(place)}
        if events:
            found[name] = ", ".join(event for event in CHANGES_CALLS if event in events)
    return found


def said(plugins: dict[str, str]) -> str:
    """The sentence about them; empty without any."""
    if not plugins:
        return ""
    named = "; ".join(f"{name} ({events})" for name, events in plugins.items())
    return (
        f"Plugins of others have hooks that may change a call after the guards judged it: {named}."
    )


def _switched_on(root: str, folder: str) -> list[str]:
    """The nearer settings win, plugin by plugin."""
    on: dict[str, Any] = {}
    for path in (
        os.path.join(folder, "settings.json"),
        os.path.join(root, SETTINGS),
        os.path.join(root, LOCAL_SETTINGS),
    ):
        value, _ = read_json(path)
        plugins = value.get(PLUGINS) if isinstance(value, dict) else None
        on.update(plugins if isinstance(plugins, dict) else {})
    return sorted(name for name, value in on.items() if value and not of_ours(name))


def _places(entries: Any) -> Iterator[str]:
    """One for each scope in which it is installed."""
    for entry in entries if isinstance(entries, list) else [entries]:
        place = entry.get("installPath") if isinstance(entry, dict) else None
        if isinstance(place, str) and os.path.isabs(place) and "\0" not in place:
            yield place


def _events(place: str) -> Iterator[str]:
    manifest, _ = read_json(os.path.join(place, _MANIFEST))
    named = manifest.get(HOOKS) if isinstance(manifest, dict) else None
    every = named if isinstance(named, list) else [named]
    paths = [_OWN_HOOKS, *(one for one in every if isinstance(one, str) and "\0" not in one)]
    sections = [one for one in every if isinstance(one, dict)]
    sections += [read_json(os.path.join(place, path))[0] for path in paths]
    for section in sections:
        inner = section.get(HOOKS, section) if isinstance(section, dict) else None
        yield from (
            event for event in CHANGES_CALLS if isinstance(inner, dict) and inner.get(event)
        )
