"""Rows to train on, made of states: pairs by outcome, hints, completions, labels.

A pair has one context and two actions, of which what happened says which was better:

- "correction": a person refused, interrupted or corrected the action; what the agent did then is
  better, and the person's words are the hint;
- "mended call": a tool's call failed, and the next call of the same tool did not; the tool's
  message is the hint;
- "sibling": two states with the same context, of which the ledger kept one's experiment and not
  the other's; what the kept one did is the hint.

The better action was made with more knowledge than the context shows: that is what a student is to
learn, and what a teacher gets as the hint.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.traces.contexts import (
    Message,
    Row,
    StateFile,
    acted,
    as_text,
    said,
    sessions_of,
    spoken,
)

_CORRECTS = re.compile(
    r"(?i)\s*(?:no\b|nope\b|wrong\b|stop\b|don'?t\b|do not\b|not (?:what|that|like)\b|instead\b"
    r"|actually\b|undo\b|revert\b|that(?:'s| is) (?:not|wrong)\b|you (?:forgot|broke|missed)\b)"
)
_PASSED, _FAILED = re.compile(r"\b\d+ passed\b"), re.compile(r"\b[1-9]\d* (?:failed|errors?)\b")
WORK = ("main", "task")
"""Kinds of threads: what Claude Code starts by itself is nobody's work."""
_LONGEST_HINT = 2_000


class Kind(StrEnum):
    PAIRS = "pairs"  # prompt, chosen, rejected, hint: DPO, ORPO, and the composed trainer
    SFT = "sft"  # prompt, completion: of states that nothing speaks against
    KTO = "kto"  # prompt, completion, label
    HINTS = "hints"  # prompt, hint, completion: contexts of a teacher that knows more


@dataclass(frozen=True, kw_only=True)
class Settings:
    kind: Kind
    text: bool
    """One text in place of messages: for templates without tools, and trainers that generate."""
    budget: int
    """Characters of a context."""


@dataclass
class Made:
    """What came of the states."""

    reasons: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    """Contexts that lost their oldest messages."""


def training_rows(states: StateFile, settings: Settings, made: Made) -> Iterator[Row]:
    """Rows of `settings.kind`, in the order of the file; each at most once."""
    makers: dict[Kind, Callable[[StateFile, Row], Iterator[_Found]]] = {
        Kind.PAIRS: _pairs,
        Kind.SFT: _completions,
        Kind.KTO: _labels,
        Kind.HINTS: _hints,
    }
    for row in states.rows():
        if row["kind"] not in WORK:
            made.skipped[row["kind"]] += 1
            continue
        for found in makers[settings.kind](states, row):
            if (written := _written(states, row, found, settings, made)) is not None:
                made.reasons[found.reason] += 1
                yield written


@dataclass(frozen=True, kw_only=True)
class _Found:
    reason: str
    actions: dict[str, Row]
    """Name of a column -> the state whose action stands in it."""
    more: dict[str, Any] = field(default_factory=dict)
    told_by: list[Row] = field(default_factory=list)
    """States that the hint is made of."""


def _pairs(states: StateFile, row: Row) -> Iterator[_Found]:
    then = states.following(row)
    if then is not None:
        for reason, hint in _corrected(row, then):
            yield _Found(
                reason=reason,
                actions={"chosen": then, "rejected": row},
                more={"hint": hint[:_LONGEST_HINT]},
                told_by=[then],
            )
    if judged(row) is False:
        for other in states.siblings(row):
            if judged(other):
                hint = f"An attempt that was kept did this:\n{_action(other)}"
                yield _Found(
                    reason="sibling",
                    actions={"chosen": other, "rejected": row},
                    more={"hint": hint[:_LONGEST_HINT]},
                    told_by=[other],
                )
                return


def _corrected(row: Row, then: Row) -> Iterator[tuple[str, str]]:
    """(reason, hint), at most one."""
    outcome = row["outcome"]
    feedback = outcome.get("feedback")
    feedback = spoken(feedback) if feedback else ""
    if outcome.get("refused") or outcome.get("interrupted") or _CORRECTS.match(feedback):
        if feedback:
            yield "correction", feedback
        return
    failed = [result for result in row["results"] if result["is_error"]]
    if failed and not then["outcome"].get("errors"):
        named = {block["id"]: block["name"] for block in row["action"] if _is_call(block)}
        again = {block["name"] for block in then["action"] if _is_call(block)}
        if again & {named.get(result["call"], "") for result in failed}:
            yield "mended call", spoken(failed[0]["content"])


def _hints(states: StateFile, row: Row) -> Iterator[_Found]:
    for found in _pairs(states, row):
        yield replace(found, actions={"completion": row})
        return
    if told := _verdict_text(row):
        more = {"hint": told[:_LONGEST_HINT]}
        yield _Found(reason="verdict", actions={"completion": row}, more=more)


def hint_of(states: StateFile, row: Row) -> tuple[str, list[Row]]:
    """What was found out after the action and speaks against it, empty for nothing; and the states
    that tell it."""
    found = next(_hints(states, row), None)
    return ("", []) if found is None else (str(found.more["hint"]), found.told_by)


def _verdict_text(row: Row) -> str:
    """What the gates found against the experiments of the session."""
    if judged(row) is not False:
        return ""
    lines = []
    for experiment in row["outcome"].get("experiments", ()):
        for verdict in experiment["verdicts"]:
            found = ", ".join(verdict["findings"])
            lines.append(f"The gate {verdict['gate']} said {verdict['verdict']}: {found}.")
        lines += [f"{one['kind']}: {one['reason']}" for one in experiment["decisions"]]
    return "\n".join(lines)


def _completions(states: StateFile, row: Row) -> Iterator[_Found]:
    if judged(row) is not False and not _against(row) and _has_text_or_call(row):
        reason = "kept" if judged(row) else "nothing against it"
        yield _Found(reason=reason, actions={"completion": row})


def _labels(states: StateFile, row: Row) -> Iterator[_Found]:
    if (labelled := label_of(row)) is not None:
        reason, label = labelled
        yield _Found(reason=reason, actions={"completion": row}, more={"label": label})


def label_of(row: Row) -> tuple[str, bool] | None:
    """(what speaks for an action or against it, whether it was good); None where nothing does."""
    against = _against(row)
    texts = [spoken(result["content"]) for result in row["results"]]
    passed = any(_PASSED.search(text) and not _FAILED.search(text) for text in texts)
    good = judged(row)
    if against or good is False:
        return against or "discarded", False
    if good or passed:
        return "kept" if good else "tests passed", True
    return None


def _against(row: Row) -> str:
    """What speaks against an action; empty when nothing does."""
    outcome = row["outcome"]
    for name in ("refused", "interrupted", "errors", "blocked_by_hook"):
        if outcome.get(name):
            return name
    feedback = outcome.get("feedback")
    if feedback and _CORRECTS.match(spoken(feedback)):
        return "correction"
    texts = (spoken(result["content"]) for result in row["results"])
    return "tests failed" if any(_FAILED.search(text) for text in texts) else ""


def judged(row: Row) -> bool | None:
    """Whether an experiment of the session was kept; None where nothing was decided."""
    statuses = {each["status"] for each in row["outcome"].get("experiments", ())}
    if "kept" in statuses:
        return True
    return False if "discarded" in statuses else None


def _written(
    states: StateFile, row: Row, found: _Found, settings: Settings, made: Made
) -> Row | None:
    context, cut, told_by = states.context(row, budget=settings.budget)
    if not any(message["role"] == "user" for message in context):
        made.skipped["no question in the context"] += 1
        return None
    answers = {
        name: acted(state, thinking=True, results=False)[0]
        for name, state in found.actions.items()
    }
    texts = [said(answer) for answer in answers.values()]
    if not all(text.strip() for text in texts) or len(set(texts)) < len(texts):
        made.skipped["empty or equal actions"] += 1
        return None
    made.cut += cut
    used = [*told_by, *found.told_by, row, *found.actions.values()]
    columns: Row = {name: [answer] for name, answer in answers.items()}
    prompt: str | list[Message] = context
    if settings.text:
        prompt = as_text(context)
        columns = {name: said(answer) for name, answer in answers.items()}
    return {
        "id": f"{row['id']}-{found.reason.replace(' ', '-')}",
        "prompt": prompt,
        **columns,
        **found.more,
        **origins(used, found.reason),
    }


def origins(used: list[Row], reason: str) -> Row:
    """Provenance, licence and consent of a row that all of `used` tell; the last one's author made
    the answer."""
    provenance = {
        "sessions": sorted(set().union(*map(sessions_of, used))),
        "states": sorted({each["id"] for each in used}),
        "sources": sorted({each["provenance"]["source"] for each in used}),
        "generator": used[-1]["model"],
        "reason": reason,
    }
    return {
        "provenance": provenance,
        "licence": " AND ".join(sorted({str(each["licence"]) for each in used})),
        "consent": all(each["consent"] is True for each in used),
    }


def _action(row: Row) -> str:
    return said(acted(row, thinking=False, results=False)[0])


def _is_call(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_use")


def _has_text_or_call(row: Row) -> bool:
    return any(block["type"] in ("text", "tool_use") for block in row["action"])
