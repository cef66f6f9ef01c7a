"""What leaves no trace: secrets, e-mail addresses, home folders, names, a person's own patterns.

Each is replaced by a word in brackets before anything is written, and counted by its kind.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from harness.errors import UsageError
from harness.traces.secrets import SECRET, is_secret_name, secrets_in

EMAIL, USER = "[EMAIL]", "[USER]"
NAME, OWN = "[NAME]", "[REDACTED]"
_EMAIL = re.compile(r"(?<![\w.%+-])(?!git@)[\w.%+-]+(?:@|%40)[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
_HOME = re.compile(
    r"(/home/|/Users/|[A-Za-z]:(?:\\\\?|/)Users(?:\\\\?|/))([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)"
)
_DASHED = re.compile(r"((?<![A-Za-z0-9])-(?:home|Users)-)([A-Za-z0-9_.]+)")
"""As Claude Code names the folder of a project after its path."""
_NOBODY = frozenset(
    {
        *("user", "users", "root", "admin", "runner", "ubuntu", "debian", "vscode", "app", "node"),
        *("home", "test", "tests", "shared", "public", "default", "guest", "claude", "dev"),
        *("code", "work", "data", "project", "projects", "src", "you", "me", "name", "username"),
    }
)
"""Logins that name nobody: the words themselves stay."""
_SHORTEST_NAME = 3


class Redactor:
    """Counts what it replaces; learns the logins that home folders show, and replaces them
    elsewhere too, from there on."""

    def __init__(
        self,
        *,
        names: Iterable[str] = (),
        patterns: Sequence[str] = (),
        scan: bool = True,
    ) -> None:
        """`scan`: by detect-secrets too. Raises UsageError for a pattern that is none."""
        self._scan = scan
        self.counts: Counter[str] = Counter()
        self._names = {name.strip() for name in names if name.strip()}
        self._logins: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._compile()

    def learn(self, text: str) -> None:
        """Logins in home folders, before the first text that may hold them is redacted."""
        found = {match[2] for match in _HOME.finditer(text)}
        fresh = {
            name
            for name in found - self._logins
            if len(name) >= _SHORTEST_NAME and name.lower() not in _NOBODY
        }
        if fresh:
            self._logins |= fresh
            self._compile()

    def value(self, value: Any) -> Any:
        """`value` with every text in it redacted, keys of objects too."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return {self.text(key): self._field(key, inner) for key, inner in value.items()}
        if type(value) is list:
            return [self.value(inner) for inner in value]
        return value

    def _field(self, name: str, value: Any) -> Any:
        if type(value) is str and is_secret_name(name, value):
            self.counts["secret: named field"] += 1
            return SECRET
        return self.value(value)

    def text(self, text: str) -> str:
        if len(text) < _SHORTEST_NAME:
            return text
        self.learn(text)
        found: dict[str, str] = {}
        for kind, value in secrets_in(text, scan=self._scan):
            found.setdefault(value, kind)
        # The longest first: one secret may be a part of another.
        for value in sorted(found, key=len, reverse=True):
            if count := text.count(value):
                text = text.replace(value, SECRET)
                self.counts[f"secret: {found[value]}"] += count
        for pattern in self._patterns:
            text = self._replaced(pattern, OWN, text, "pattern")
        if "@" in text or "%40" in text:
            text = self._replaced(_EMAIL, EMAIL, text, "e-mail address")
        if "ome" in text or "sers" in text:
            for pattern in (_HOME, _DASHED):
                text = self._replaced(pattern, rf"\g<1>{USER}", text, "home folder")
        if self._known is not None:
            text = self._replaced(self._known, NAME, text, "name")
        return text

    def _replaced(self, pattern: re.Pattern[str], by: str, text: str, kind: str) -> str:
        text, count = pattern.subn(by, text)
        if count:
            self.counts[kind] += count
        return text

    def _compile(self) -> None:
        words = sorted(self._names | self._logins, key=len, reverse=True)
        joined = "|".join(map(re.escape, words))
        pattern = rf"(?i)(?<![^\W_])(?:{joined})(?![^\W_])"
        self._known = re.compile(pattern) if words else None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--pattern {pattern!r} is no regular expression: {error}.",
            hint="E.g. `--pattern 'CUST-[0-9]+'`.",
        ) from error
