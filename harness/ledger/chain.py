"""A fact's exact bytes and its place in its writer's chain. Pure: no database, no files."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.domain.late import Late, dataclass
from harness.errors import LedgerDamagedError, UsageError
from harness.files import canonical_json, sha256_bytes

VERSION, WITH_ORIGIN = 1, 2
FIRST_PREV = "0" * 64
UNLINKED = "it does not link to the hash of the fact before it"
"""The answer of `link_problem` for which either of the two may be at fault."""
_FIELDS = {"v", "writer", "seq", "prev", "at", "kind", "body"}
_ORIGIN = "from"
"""In version 2 of a fact: who added it, on which host, in what role; so did who added the next ones
of its chain, until a fact says otherwise."""


@dataclass(frozen=True, kw_only=True)
class StoredFact(Late):
    """A row of the table `facts`. `data` is what is hashed; the other fields repeat parts of it."""

    writer: str
    seq: int  # 1, 2, 3, ... per writer
    prev: str  # hash of the writer's fact before; 64 zeros for the first
    hash: str  # SHA-256 of `data`
    kind: str
    at: str
    data: bytes
    position: int = 0  # in this database only
    renamed: Callable[[Any], Any] | None = None
    """What gives the ids in it their names of today, where a merge renamed them."""

    def columns(self) -> dict[str, Any]:
        """Without the position, which the database allots."""
        here = ("position", "renamed")
        return {name: value for name, value in vars(self).items() if name not in here}

    def body(self) -> dict[str, Any]:
        """The fact's fields as its bytes say them, with ids as they are called today; non-finite
        numbers are strings there."""
        body: dict[str, Any] = json.loads(self.data)["body"]
        return body if self.renamed is None else dict(self.renamed(body))

    @property
    def origin(self) -> str | None:
        """E.g. "ada@desk person"; None: as of the fact before."""
        said: str | None = json.loads(self.data).get(_ORIGIN)
        return said


def seal(
    *,
    writer: str,
    seq: int,
    prev: str,
    at: str,
    kind: str,
    body: Mapping[str, Any],
    origin: str | None = None,
) -> StoredFact:
    """The bytes and the hash of a new fact. Raises UsageError for what JSON in UTF-8 cannot
    hold."""
    whole = {
        "v": VERSION,
        "writer": writer,
        "seq": seq,
        "prev": prev,
        "at": at,
        "kind": kind,
        "body": dict(body),
    }
    if origin is not None:
        whole |= {"v": WITH_ORIGIN, _ORIGIN: origin}
    try:
        data = canonical_json(whole)
    except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
        raise UsageError(
            f"A fact of kind {kind} holds a value that cannot be written: {error}.",
            hint="Pass plain text (valid Unicode), numbers, lists and dictionaries only.",
        ) from error
    return StoredFact(
        writer=writer, seq=seq, prev=prev, hash=sha256_bytes(data), kind=kind, at=at, data=data
    )


def unseal(data: bytes, where: str) -> StoredFact:
    """The fact that one line of the text form holds. Raises LedgerDamagedError naming `where`."""
    try:
        whole = json.loads(data)
        _require_fields(whole)
        # Other spacing or key order would be another hash for the same content.
        if canonical_json(whole) != data:
            raise ValueError("the bytes are not in the canonical form")
        head = {name: whole[name] for name in ("writer", "prev", "kind", "at")}
        if (
            not all(isinstance(value, str) for value in head.values())
            or type(whole["seq"]) is not int
        ):
            raise ValueError("writer, prev, kind and at must be text and seq a whole number")
        if not isinstance(whole["body"], dict):
            raise ValueError("body must be an object")
    except (ValueError, RecursionError) as error:
        raise LedgerDamagedError(
            f"{where} is not a fact: {error}.",
            hint="Restore it from git or from the ledger that it was exported from.",
        ) from error
    return StoredFact(**head, seq=whole["seq"], hash=sha256_bytes(data), data=data)


def _require_fields(whole: Any) -> None:
    """Raises ValueError."""
    said = isinstance(whole, dict) and _ORIGIN in whole
    version, names = (WITH_ORIGIN, {*_FIELDS, _ORIGIN}) if said else (VERSION, _FIELDS)
    if not isinstance(whole, dict) or set(whole) != names or whole["v"] != version:
        raise ValueError(f"expected the fields {', '.join(sorted(names))} with v = {version}")
    if said and not isinstance(whole[_ORIGIN], str):
        raise ValueError(f"{_ORIGIN} must be text")


def link_problem(fact: StoredFact, before: StoredFact | None) -> str | None:
    """What is wrong with `fact` or its link to the writer's fact before it; None when nothing."""
    if sha256_bytes(fact.data) != fact.hash:
        return "its bytes do not have the recorded hash"
    try:
        sealed = unseal(fact.data, "it")
    except LedgerDamagedError as error:
        return error.message
    for name in ("writer", "seq", "prev", "kind", "at"):
        if getattr(sealed, name) != getattr(fact, name):
            return (
                f"its column {name} says {getattr(fact, name)!r}, its bytes say"
                f" {getattr(sealed, name)!r}"
            )
    if fact.seq != (before.seq if before else 0) + 1:
        return f"it follows seq {before.seq if before else 0}: facts between are missing"
    if fact.prev != (before.hash if before else FIRST_PREV):
        return UNLINKED
    if before is not None and fact.at < before.at:
        return f"its time {fact.at} lies before that of the fact before it ({before.at})"
    return None
