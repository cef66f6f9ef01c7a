"""What is asked of the system does not grow with sessions times experiments."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.audit import open_sessions
from harness.audit.open_sessions import see_sessions
from harness.domain.grade import PERSON
from harness.ledger.facts import SessionBegan

EARLIER, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    asked: list[float] = []

    def ask(process: dict[str, Any], at: float) -> bool:
        asked.append(at)
        return process["pid"] == 0

    monkeypatch.setattr(open_sessions, "is_same_alive", lambda process: False)
    monkeypatch.setattr(open_sessions, "may_come_from", ask)
    return asked


def project(folder: Path, known: set[str], facts: list[Any]) -> Any:
    began = [(SessionBegan(session=f"s{n}", process={"pid": n}), EARLIER) for n in range(3)]
    ledger = SimpleNamespace(
        experiments=lambda statuses: [
            SimpleNamespace(id=f"exp-000{n}", opened_at=LATER) for n in range(1, 5)
        ],
        sessions_seen=lambda experiment: set(known),
        sessions_began=lambda: began,
        append=facts.append,
    )
    layout = SimpleNamespace(shared=lambda name: folder / name, root=folder)
    return SimpleNamespace(ledger=ledger, layout=layout, caller=PERSON)


def test_each_session_is_looked_for_once(tmp_path: Path, asked: list[float]) -> None:
    facts: list[Any] = []
    see_sessions(project(tmp_path, set(), facts), {"HOME": str(tmp_path)})
    assert len(asked) == 3
    assert [(fact.session, fact.trace) for fact in facts] == [("s0", "detached")] * 4


def test_one_that_was_seen_is_not_looked_for(tmp_path: Path, asked: list[float]) -> None:
    facts: list[Any] = []
    see_sessions(project(tmp_path, {"s0", "s1"}, facts), {"HOME": str(tmp_path)})
    assert (len(asked), facts) == (1, [])
