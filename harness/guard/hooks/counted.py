"""What of a control file counts: Claude Code and git write a part of two of them in ordinary work,
and it decides nothing here: the permissions that a person gave at a prompt, and which branch
follows which."""

from __future__ import annotations

import re

from harness.guard.policy.jsontext import dumps, loads

from .place import LOCAL_SETTINGS

WORKTREES = ".claude/worktrees"
"""Where Claude Code puts whole copies of the repository for its agents; none of them is what a
session obeys."""
_GIT_CONFIG = ".git/config"
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]\s*(?:[#;].*)?')
_REMOTE_KEYS = re.compile(r"(?:url|pushurl|fetch|push|tagopt|prune)\s*=", re.IGNORECASE)


def counted(name: str, data: bytes) -> bytes:
    """Of the control file `name`, relative to its project; nothing when none of it counts, all when
    it is not plain."""
    if name == LOCAL_SETTINGS:
        return _settings(data)
    return _git(data) if name == _GIT_CONFIG else data


def _settings(data: bytes) -> bytes:
    try:
        value = loads(data.decode("utf-8"))
        if not isinstance(value, dict):
            return data
        value.pop("permissions", None)
        return dumps(value, sort_keys=True).encode("ascii") if value else b""
    except (ValueError, RecursionError):
        return data


def _git(data: bytes) -> bytes:
    """Git's configuration without its branches and the addresses of remotes."""
    try:
        lines = [line.strip() for line in data.decode("utf-8").split("\n")]
    except UnicodeDecodeError:
        return data
    section, kept = "", []
    for line in lines:
        if line.endswith("\\"):
            return data
        if line.startswith("["):
            match = _SECTION.fullmatch(line)
            if match is None:
                return data
            section = match[1].casefold()
        if section != "branch" and not (
            section == "remote" and (line.startswith("[") or _REMOTE_KEYS.match(line))
        ):
            kept.append(line)
    return "\n".join(line for line in kept if line).encode("utf-8")
