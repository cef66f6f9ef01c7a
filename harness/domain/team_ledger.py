"""Where a ledger is: a file, or a team's server. Standard library only: every command asks."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

SCHEME = "postgresql"
_LONGEST = 63
"""Characters of a name in PostgreSQL."""
_SECRETS = {"password", "passfile", "sslpassword", "sslkey", "options", "service"}


class TeamLedger(NamedTuple):
    """A schema of a PostgreSQL database; it holds no secret."""

    url: str
    """postgresql://[user@]host[:port]/database, without a password."""
    schema: str
    """One a project."""
    folder: Path
    """The state directory on this machine."""

    def __str__(self) -> str:
        return f"{self.url} (schema {self.schema})"


Place = Path | TeamLedger


def url_problem(url: str) -> str | None:
    """What is wrong with the setting `ledger`; it never repeats the URL, which may hold a
    secret."""
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
        given = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        return "it is no URL"
    if parts.scheme != SCHEME:
        return f"it does not begin with {SCHEME}://"
    if secret or "password" in given:
        return "it holds a password: that belongs into ~/.pgpass or PGPASSWORD"
    if closed := sorted(given & _SECRETS):
        return f"it sets {closed[0]}, which belongs into the environment"
    if not parts.path.strip("/"):
        return "it names no database"
    return None


def schema_of(project_id: str) -> str:
    """A project's schema: its id in letters that need no quotes."""
    name = re.sub(r"[^a-z0-9]", "_", f"h_{project_id}")
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9]}_{hashlib.sha256(project_id.encode()).hexdigest()[:8]}"
