"""Whom the harness tells what a person waits for: `notify` of config.toml."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import ConfigError


class Notice(StrEnum):
    GATE = "gate"  # the loop waits for a person's decision
    ALARM = "alarm"  # a run has one
    BUDGET = "budget"  # the loop ended since one is spent
    END = "end"  # the loop ended, for whatever reason


_KEYS = ("command", "webhook", "on")
_PLACES = (os.sep, f".{os.sep}", f"..{os.sep}")
"""How a word begins that is a place, whatever stands in the project."""
_EXAMPLE = 'E.g. notify = {webhook = "https://example.org/hook", on = ["gate", "end"]}.'


@dataclass(frozen=True, kw_only=True)
class Notify:
    command: tuple[str, ...] = ()
    """Gets the notice as JSON on stdin; it runs outside every sandbox."""
    webhook: str | None = None
    """Gets it as a POST."""
    on: frozenset[Notice] = frozenset(Notice)

    @property
    def words(self) -> list[str]:
        """Whom it tells, for a person; the rest of an address may be a secret."""
        told = []
        if self.command:
            told.append(f"runs {' '.join(self.command)}")
        if self.webhook is not None:
            told.append(f"posts to {host_of(self.webhook)}")
        return told


def host_of(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}"


def read_notify(value: object, *, where: str, root: Path) -> Notify | None:
    """`value` of the key `notify` in the file `where`. Raises ConfigError."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _wrong(where, f"notify is {value!r}; expected a table")
    unknown = sorted(set(value) - set(_KEYS))
    if unknown:
        known = ", ".join(_KEYS)
        raise _wrong(where, f"notify has the unknown key {unknown[0]!r}; known: {known}")
    command = _command(value.get("command"), where, root)
    webhook = _webhook(value.get("webhook"), where)
    if not command and webhook is None:
        raise _wrong(where, "notify names neither a command nor a webhook")
    on = _on(value.get("on"), where)
    return Notify(command=command, webhook=webhook, on=on)


def _command(value: object, where: str, root: Path) -> tuple[str, ...]:
    if value is None:
        return ()
    words = value if isinstance(value, list) else []
    plain = [word for word in words if isinstance(word, str) and word]
    if not plain or plain != value:
        told = f"notify.command is {value!r}; expected a list of words"
        raise _wrong(where, told)
    if os.sep in plain[0] and not os.path.isabs(plain[0]):
        told = f"notify.command begins with {plain[0]!r}; expected a program's name or whole path"
        raise _wrong(where, told)
    for word in plain:
        _require_outside(word, where, root)
    return tuple(plain)


def _require_outside(word: str, where: str, root: Path) -> None:
    # It runs outside every sandbox, and in the project agents write. What exists there does not
    # count: a file that an agent makes there would decide about a person's words.
    if not word.startswith(_PLACES):
        return
    place = Path(os.path.normpath(root / word))
    if place == root or root in place.parents:
        told = f"notify.command names {word}, which lies in the project, where agents write"
        raise _wrong(where, told, "Keep the program outside the project.")


def _webhook(value: object, where: str) -> str | None:
    if value is None:
        return None
    address = value if isinstance(value, str) else ""
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise _wrong(where, "notify.webhook is no address; expected http:// or https://")
    return address


def _on(value: object, where: str) -> frozenset[Notice]:
    if value is None:
        return frozenset(Notice)
    words = value if isinstance(value, list) else [value]
    known = ", ".join(Notice)
    for word in words:
        if word not in [*Notice]:
            raise _wrong(where, f"notify.on has {word!r}; expected some of {known}")
    if not words:
        raise _wrong(where, f"notify.on is empty; expected some of {known}")
    return frozenset(Notice(str(word)) for word in words)


def _wrong(where: str, told: str, hint: str = _EXAMPLE) -> ConfigError:
    return ConfigError(f"{where}: {told}.", hint=hint)
