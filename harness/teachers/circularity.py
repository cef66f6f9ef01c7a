"""Whether a teacher, a judge and the authors of the traces are one: what a student then learns, or
is scored by, is a model's own opinion of itself."""

import re
from collections.abc import Mapping
from typing import Any

_FAMILY = re.compile(r"[a-z]+")
_SAME = {"chatgpt": "gpt", "o": "gpt", "codex": "gpt", "opus": "claude", "sonnet": "claude"}
_UNKNOWN = "unknown"


def family_of(model: str) -> str:
    """By its name: `claude` of claude-opus-5, `llama` of meta-llama/Llama-3.2-1B. Of a name that
    says nothing "unknown", which equals no other."""
    bare = model.lower().rpartition("/")[2]
    found = _FAMILY.search(bare.removeprefix("anthropic.").removeprefix("us.anthropic."))
    return _SAME.get(found[0], found[0]) if found else _UNKNOWN


def circularity(
    authors: Mapping[str, int], *, teacher: str | None, judge: str | None
) -> dict[str, Any]:
    """`authors`: model that acted in the traces -> rows. Each finding names who is whom, and how
    many of the rows it is of."""
    total = sum(authors.values())
    findings = []
    pairs = (("teacher", teacher), ("judge", judge))
    for role, model in pairs:
        for same, rows in _shared(authors, model).items():
            findings.append(_found(role, same, "an author of the traces", rows, total))
    if teacher and judge and (alike := _compared(judge, teacher)):
        findings.append(_found("judge", alike, "the teacher", total, total))
    return {
        **{role: _named(model) for role, model in pairs},
        "authors": dict(authors),
        "families": sorted({family_of(model) for model in authors}),
        "findings": findings,
    }


def _shared(authors: Mapping[str, int], model: str | None) -> dict[str, int]:
    """How -> rows."""
    found: dict[str, int] = {}
    for author, rows in authors.items():
        same = _compared(model, author) if model else ""
        if same:
            found[same] = found.get(same, 0) + rows
    return found


def _compared(one: str, other: str) -> str:
    """How they are alike; empty where they are not."""
    if one == other:
        return "is"
    family = family_of(one)
    return "is of the family of" if family == family_of(other) != _UNKNOWN else ""


def _found(role: str, same: str, whom: str, rows: int, total: int) -> dict[str, Any]:
    share = round(rows / max(1, total), 4)
    return {"kind": f"{role} {same} {whom}", "rows": rows, "share": share}


def _named(model: str | None) -> dict[str, str] | None:
    return None if model is None else {"model": model, "family": family_of(model)}
