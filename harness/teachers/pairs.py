"""Preference pairs by a teacher: it is asked what it would have done where an agent stood, and what
it answers is better than what it disagrees with.

- "teacher with a hint": the teacher also sees what happened afterwards (a person's correction, a
  tool's message, a kept sibling, a verdict); the student's prompt is without it;
- "teacher disagreement": it sees what the agent saw. Actions that something speaks for are left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.teachers.asking import Asking, Question
from harness.traces.contexts import Row, StateFile, acted, as_text, said
from harness.traces.redaction import Redactor
from harness.traces.training_rows import (
    WORK,
    Made,
    Settings,
    hint_of,
    label_of,
    origins,
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
            asked = self._question(states, row, settings, made)
            if asked is None:
                continue
            if self.asking.stopped or (self.most is not None and number >= self.most):
                made.skipped["not asked"] += 1
                continue
            answer = self.asking.answer(asked.question)
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
                made.reasons[asked.reason] += 1
                yield self._row(row, asked, text, rejected)

    def _question(
        self, states: StateFile, row: Row, settings: Settings, made: Made
    ) -> "_Asked | None":
        """Nothing is asked where nothing is learned."""
        if row["kind"] not in WORK:
            made.skipped[row["kind"]] += 1
            return None
        context, cut, told_by = states.context(row, budget=settings.budget)
        if not any(message["role"] == "user" for message in context):
            made.skipped["no question in the context"] += 1
            return None
        if not said(acted(row, thinking=False, results=False)[0]).strip():
            made.skipped["empty or equal actions"] += 1
            return None
        hint, hinted_by = hint_of(states, row)
        if not hint and (label_of(row) or ("", False))[1]:
            made.skipped["something speaks for the action"] += 1
            return None
        made.cut += cut
        prompt = as_text(context)
        asked = ASKED + prompt + (HINTED + hint if hint else "")
        return _Asked(
            reason="teacher with a hint" if hint else "teacher disagreement",
            question=Question(text=asked, longest=self.longest),
            prompt=prompt,
            told_by=[*told_by, *hinted_by],
        )

    def _row(self, row: Row, asked: "_Asked", text: str, rejected: str) -> Row:
        told = origins([*asked.told_by, row], asked.reason)
        told["provenance"]["teacher"] = self.asking.teacher.model
        return {
            "id": f"{row['id']}-{asked.reason.replace(' ', '-')}",
            "prompt": asked.prompt,
            "chosen": text,
            "rejected": rejected,
            **told,
        }


@dataclass(frozen=True, kw_only=True)
class _Asked:
    reason: str
    question: Question
    prompt: str
    """The student's."""
    told_by: list[Row]


def _plain(text: str) -> str:
    return " ".join(text.split())
