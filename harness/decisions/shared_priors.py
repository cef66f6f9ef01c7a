"""Priors that leave a project and come to another: a file of JSON with where each is from.

A prior that holds a private word never leaves: the words stand in a file of the project, one a
line, and are looked for folded, also within longer words and identifiers.
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.domain.plain_text import one_line
from harness.domain.rules import read_rule
from harness.errors import UsageError
from harness.ledger.facts import Prior
from harness.ledger.facts.decision import LONGEST_HAND_OFF
from harness.ledger.project import Project

FORM = "experiment-harness priors 1"
PRIVATE_WORDS = ".harness/private-words.txt"
_TEXTS = ("lesson", "evidence", "rule", "project", "id", "at", "by")


UNNAMED = "a project"
"""Of one whose own name holds a private word."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    text: str
    """The file."""
    taken: tuple[str, ...]
    left_out: tuple[str, ...]
    """Priors with a private word."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    recorded: tuple[Prior, ...]
    known: tuple[str, ...]
    """Lessons that stand here already."""


def export_priors(project: Project, private: Iterable[str]) -> Exported:
    """The priors in force, without those that hold a private word."""
    words = [word.strip() for word in private if word.strip()]
    name = project.settings.project_id
    if _holds(words, name):
        name = UNNAMED
    taken, left_out = [], []
    for prior in project.ledger.priors(standing=True):
        texts = [prior.lesson, prior.evidence, prior.rule, prior.by, *(prior.check or ())]
        texts += filter(None, (prior.enforces, prior.answers))
        if _holds(words, " ".join(texts)):
            left_out.append(prior.id)
        else:
            taken.append(prior)
    document = {"form": FORM, "priors": [_plain(name, prior) for prior in taken]}
    return Exported(
        text=json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        taken=tuple(prior.id for prior in taken),
        left_out=tuple(left_out),
    )


def _plain(project: str, prior: Prior) -> dict[str, Any]:
    return {
        "project": project,
        "id": prior.id,
        "lesson": prior.lesson,
        "evidence": prior.evidence,
        "rule": prior.rule,
        "check": None if prior.check is None else list(prior.check),
        "enforces": prior.enforces,
        "answers": prior.answers,
        "by": prior.by,
        "at": prior.at,
    }


def _holds(words: Iterable[str], text: str) -> bool:
    """Whether a private word is in it; one without letters and digits as it stands."""
    folded = _folded(text)
    return any(_folded(word) in folded if _folded(word) else word in text for word in words)


def _folded(text: str) -> str:
    """Letters and digits alone: "ACME Corp." is in "acme_corp_rows"."""
    spread = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in spread if character.isalnum())


def import_priors(project: Project, text: str, *, by: str, checks: bool) -> Imported:
    """Record the priors of the file that do not stand here yet, with where they are from; their
    checks, which others will run, only with `checks`. A rule as data is a candidate here, whatever
    it was there. Raises UsageError; nothing is recorded then."""
    entries = _read(text)
    before = [one for one in project.ledger.priors() if one.superseded_by is None]
    here = {_key(one.lesson, one.rule) for one in before}
    recorded, known = [], []
    # A prior that the ledger refuses takes back those before it.
    with project.ledger.transaction():
        for one in entries:
            if _key(one["lesson"], one["rule"]) in here:
                known.append(one["lesson"])
                continue
            here.add(_key(one["lesson"], one["rule"]))
            recorded.append(
                project.ledger.record_prior(
                    lesson=one["lesson"],
                    evidence=_evidence(one),
                    rule=one["rule"],
                    check=one["check"] if checks else None,
                    enforces=one.get("enforces"),
                    answers=one.get("answers"),
                    by=by,
                )
            )
    return Imported(recorded=tuple(recorded), known=tuple(known))


def _evidence(one: Mapping[str, Any]) -> str:
    """Where it is from, then what it rests on, as far as that fits."""
    origin = f"From {one['project']}, {one['id']}, recorded {one['at']} by {one['by']}."
    return f"{origin}\n{one['evidence']}"[:LONGEST_HAND_OFF]


def _key(lesson: str, rule: str) -> tuple[str, str]:
    return _folded(lesson), _folded(rule)


def _read(text: str) -> Sequence[Mapping[str, Any]]:
    hint = "Write it with `harness priors export --out FILE`."
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The file is not JSON: {error}.", hint=hint) from error
    if not isinstance(document, dict) or document.get("form") != FORM:
        raise UsageError(f"The file is no list of priors; expected the form {FORM!r}.", hint=hint)
    entries = document.get("priors")
    if not isinstance(entries, list):
        raise UsageError("The file has no list `priors`.", hint=hint)
    return [_entry(place, one, hint) for place, one in enumerate(entries, start=1)]


def _entry(place: int, one: Any, hint: str) -> dict[str, Any]:
    lacking = [
        name for name in _TEXTS if not isinstance(one, dict) or not isinstance(one.get(name), str)
    ]
    check = one.get("check") if isinstance(one, dict) else None
    sound = check is None or (
        isinstance(check, list) and check and all(isinstance(word, str) for word in check)
    )
    if lacking or not sound:
        wrong = ", ".join(lacking) or "check"
        raise UsageError(f"Prior {place} of the file lacks a text of {wrong}.", hint=hint)
    for name in ("enforces", "answers"):
        if not isinstance(one.get(name), str | None):
            raise UsageError(f"Prior {place}: {name} is no text.", hint=hint)
    if one.get("enforces") is not None:
        read_rule(one["enforces"])
    lines = {name: one_line(one[name]) for name in ("lesson", "project", "id", "at", "by")}
    return {**one, **lines, "check": check}
