"""Bulky parts of facts, each said once: a later fact names one by the hash of its content.

A run's environment lists all installed packages, some kilobytes that are the same for every run.
"""

from typing import Any

from harness.files import canonical_json, sha256_bytes
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import State, existing
from harness.ledger.schema import JSON, TEXT, Table, keys, required

SAME = "same"
_BULKY = 200
"""Bytes from which on a part is not said twice: its hash alone takes 75."""

Table("parts", *keys(TEXT, "sha256"), *required(JSON, "value"))


def named(state: State, value: dict[str, Any]) -> dict[str, Any]:
    """How a new fact says `value`: {same: its hash} where an earlier fact says it, else in full."""
    digest = _digest(value)
    return value if digest is None or state.get("parts", digest) is None else {SAME: digest}


def said(state: State, fact: StoredFact, value: dict[str, Any]) -> dict[str, Any]:
    """What the fact means, and remember it. Raises LedgerDamagedError for a hash of nothing that
    an earlier fact said."""
    if value.keys() == {SAME}:
        known: dict[str, Any] = existing(state, fact, "parts", value[SAME])["value"]
        return known
    digest = _digest(value)
    if digest is not None and state.get("parts", digest) is None:
        state.insert("parts", {"sha256": digest, "value": value})
    return value


def _digest(value: dict[str, Any]) -> str | None:
    data = canonical_json(value)
    return sha256_bytes(data) if len(data) > _BULKY else None
