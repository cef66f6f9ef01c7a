"""Results that the ledger could not take in time are kept in files and recorded at the next write.

Only facts about what has happened anyway and cannot be observed again are spooled: a run's end must
not be lost because another process held the ledger for too long.
"""

import contextlib
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from harness.domain.facts import Fact, fact_from
from harness.errors import LedgerError, UsageError
from harness.files import atomic_write, canonical_json
from harness.ledger.schema import spooled

SPOOLED_KINDS = frozenset(
    {
        "run_started",
        "run_ended",
        "alarm_raised",
        "checkpoint_recorded",
        "evaluation_recorded",
        "session_ended",
        "tampering_noticed",
        "hand_off_written",
    }
)


def keep(folder: Path, fact: Fact, at: str, error: LedgerError) -> LedgerError:
    """Write `fact` to a file; the error to raise says where. `error` itself when the fact is not of
    a kind to keep or the file cannot be written either."""
    if fact.KIND not in SPOOLED_KINDS:
        return error
    path = folder / f"{at.replace(':', '')}-{secrets.token_hex(4)}.json"
    with contextlib.suppress(OSError):
        atomic_write(path, canonical_json({"kind": fact.KIND, "body": fact.body()}) + b"\n")
        return type(error)(
            f"{error.message} The fact ({fact.KIND}) was kept in {path}.",
            hint="It is recorded at the next write to the ledger; nothing is lost.",
            code=error.code,
        )
    return error


def drain(folder: Path, connection: sa.Connection, append: Callable[[Fact], Any]) -> list[Path]:
    """Append what was kept, oldest first, inside the open transaction; the files to remove after
    its commit.

    A file that is no fact, or one that the rules refuse by now, is renamed to `*.refused`, never
    dropped.
    """
    if not folder.is_dir():
        return []
    done: list[Path] = []
    for path in sorted(folder.glob("*.json")):
        if (
            connection.execute(sa.select(spooled).where(spooled.c.name == path.name)).first()
            is None
        ):
            try:
                value = json.loads(path.read_bytes())
                with connection.begin_nested():
                    append(fact_from(value["kind"], value["body"]))
            except FileNotFoundError:
                continue  # another process drained it
            except (ValueError, KeyError, TypeError, UsageError, LedgerError):
                path.rename(path.with_suffix(".refused"))
                continue
            connection.execute(spooled.insert(), {"name": path.name})
        done.append(path)
    return done
