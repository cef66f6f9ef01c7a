"""Preference pairs by a teacher: it is asked what it would have done where an agent stood, and what
it answers is better than what it disagrees with.

- "teacher with a hint": the teacher also sees what happened afterwards (a person's correction, a
  tool's message, a kept sibling, a verdict); the student's prompt is without it;
- "teacher disagreement": it sees what the agent saw. Actions that something speaks for are left.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.teachers.asking import Asking, Question
from harness.traces.contexts import Row, StateFile, acted, as_text, said
from harness.traces.redaction import Redactor
from harness.traces.training_rows import (
    WORK,
    Made,
    Settings,
    hint_of,
    label_of,
    provenance,
)

ASKED = (
    "Below is the work of a programming agent. Write its next message and nothing else. A tool call"
    " stands on a line of its own, NAME({...JSON...}), as above.\n\n"
)
HINTED = "\n\nWhat was found out afterwards:\n\n"


@dataclass(kw_only=True)
class Taught:
    """Rows of one teacher; passed to `write_dataset` in place of `training_rows`."""

    asking: Asking
    longest: int
    most: int | None
    """Questions."""
    redactor: Redactor

    def rows(self, states: StateFile, settings: Settings, made: Made) -> Iterator[Row]:
        number = 0
        for row in states.rows():
            reason, question, prompt = self._question(states, row, settings, made)
            if question is None:
                continue
            if self.asking.stopped or (self.most is not None and number >= self.most):
                made.skipped["not asked"] += 1
                continue
            answer = self.asking.answer(question)
            if answer is None:
                made.skipped["not asked"] += 1
                continue
            number += 1
            text = self.redactor.text(answer.text).strip()
            rejected = said(acted(row, thinking=False, results=False)[0])
            if answer.cut or not text:
                made.skipped["answer cut" if answer.cut else "answer empty"] += 1
            elif _plain(text) == _plain(rejected):
                made.skipped["teacher agrees"] += 1
            else:
                made.reasons[reason] += 1
                yield self._row(row, reason, prompt, text, rejected)

    def _question(
        self, states: StateFile, row: Row, settings: Settings, made: Made
    ) -> tuple[str, Question | None, str]:
        """(reason, what is asked, the student's prompt); nothing is asked where nothing is
        learned."""
        if row["kind"] not in WORK:
            made.skipped[row["kind"]] += 1
            return "", None, ""
        context, cut = states.context(row, budget=settings.budget)
        if not any(message["role"] == "user" for message in context):
            made.skipped["no question in the context"] += 1
            return "", None, ""
        if not said(acted(row, thinking=False, results=False)[0]).strip():
            made.skipped["empty or equal actions"] += 1
            return "", None, ""
        hint = hint_of(states, row)
        if not hint and (label_of(row) or ("", False))[1]:
            made.skipped["something speaks for the action"] += 1
            return "", None, ""
        made.cut += cut
        prompt = as_text(context)
        asked = ASKED + prompt + (HINTED + hint if hint else "")
        reason = "teacher with a hint" if hint else "teacher disagreement"
        return reason, Question(text=asked, longest=self.longest), prompt

    def _row(self, row: Row, reason: str, prompt: str, text: str, rejected: str) -> Row:
        told: dict[str, Any] = provenance([row], reason)
        return {
            "id": f"{row['id']}-{reason.replace(' ', '-')}",
            "prompt": prompt,
            "chosen": text,
            "rejected": rejected,
            "provenance": told | {"teacher": self.asking.teacher.model},
            "licence": str(row["licence"]),
            "consent": row["consent"] is True,
        }


def _plain(text: str) -> str:
    return " ".join(text.split())
