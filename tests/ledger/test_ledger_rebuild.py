"""The state tables are what the facts add up to: replayed they come out equal."""

import pytest
from ledger_samples import (
    benchmark_approved,
    ended,
    evaluated,
    full_ledger,
    gate_mode_set,
    ids_renamed,
    judge_recorded,
    phase_facts,
    prior,
    prior_told,
    program,
    read_state,
    register,
    released,
    reproduced,
    started,
)

from harness.errors import LedgerDamagedError
from harness.ledger.facts import KINDS, ControlAccepted, Fact, SessionBegan, SessionSeen
from harness.ledger.replay import facts_in_order
from harness.ledger.schema import PROJECTIONS
from harness.ledger.state import state_tables
from tests.memory_state import replay


def state_of(ledger):
    with ledger.connection() as connection:
        return read_state(connection)


def test_every_kind_of_fact_has_a_handler():
    assert "" not in KINDS
    for kind in KINDS.values():
        assert kind.apply.__func__ is not Fact.apply.__func__, kind


def test_replay_in_memory_equals_the_live_tables(tmp_path):
    with full_ledger(tmp_path) as ledger:
        register(ledger, ledger.open_experiment(hypothesis="h", parent=None, by="me").id)
        program(ledger)
        assert ledger.accepted_list(ledger.writer) is None
        ledger.append(ControlAccepted(sha256="a", files=3, by="ada"))
        ledger.append(ControlAccepted(sha256="b", files=4, by="ada"))
        assert (ledger.accepted_list(ledger.writer), ledger.accepted_list("another")) == (
            "b",
            None,
        )
        ledger.append(SessionSeen(experiment="exp-0001", session="5b0c", trace="receipt"))
        for name in "ab":
            ledger.append(SessionBegan(session=name, process={}))
        assert [began.session for began, _ in ledger.sessions_began()] == ["b", "a"]
        assert ledger.recorded_judge(ledger.writer) is None
        ledger.append(judge_recorded("a"))
        ledger.append(judge_recorded("b"))
        ledger.append(released("exp-0001"))
        ledger.append(ids_renamed())
        newest = ledger.recorded_judge(ledger.writer)
        assert newest is not None
        assert (newest.sha256, ledger.recorded_judge("another")) == ("b" * 64, None)
        ledger.append(gate_mode_set("supervised"))
        approved = ledger.plan()
        assert approved is not None
        assert ledger.gate_mode(approved) == ("supervised", gate_mode_set("supervised"))
        ledger.append(reproduced("exp-0001", "exp-0002"))
        assert [made.outcome for made, _ in ledger.reproductions("exp-0001")] == ["reproduced"]
        ledger.append(benchmark_approved())
        assert ledger.approved_benchmarks() == [benchmark_approved()]
        for fact in phase_facts():
            ledger.append(fact)
        rule = prior(ledger, enforces="config lr below 0.1", answers="non_finite")
        assert ledger.prior(rule).status == "candidate"
        for fact in prior_told(rule):
            ledger.append(fact)
        told = ledger.prior(rule)
        assert (told.status, [one["status"] for one in told.moves]) == (
            "retired",
            ["active", "retired"],
        )
        with ledger.connection() as connection:
            assert {fact.kind for fact in facts_in_order(connection)} == set(KINDS)
            replayed = replay(facts_in_order(connection)).tables
        live = state_of(ledger)
        assert set(live) == {table.name for table in state_tables()}
        assert all(live.values())
        assert replayed == live


def test_rebuild_restores_changed_rows(tmp_path):
    with full_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(hypothesis="h", parent="exp-0001", by="me").id
        run = register(ledger, name)
        ledger.append(started(name, run))
        ledger.append(ended(name, run, "failed", seconds=float("inf")))
        ledger.append(evaluated(name, run, float("nan"), baseline=float("nan")))
        before = state_of(ledger)
        with ledger.exclusive() as connection:
            connection.run("UPDATE experiments SET status = 'kept', hypothesis = 'forged'")
            connection.run("DELETE FROM runs")
        assert state_of(ledger) != before
        ledger.rebuild()
        assert state_of(ledger) == before
        assert ledger.stale_projections() == set(PROJECTIONS)
        with ledger.connection() as connection:
            assert connection.value("SELECT count(*) FROM projections") == len(PROJECTIONS)


def test_rebuild_of_facts_that_do_not_fit_changes_nothing(tmp_path):
    with full_ledger(tmp_path) as ledger:
        before = state_of(ledger)
        with ledger.exclusive() as connection:
            connection.run("DELETE FROM facts WHERE kind = 'experiment_opened'")
        with pytest.raises(LedgerDamagedError, match="no earlier fact"):
            ledger.rebuild()
        assert state_of(ledger) == before
