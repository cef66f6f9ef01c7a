"""Appending: ids, chains, transition tables, groups of facts, and what is refused."""

import json

import pytest
from ledger_samples import (
    TickingClock,
    decided,
    ended,
    evaluated,
    full_ledger,
    judged,
    late_clock,
    open_ledger,
    plan,
    register,
    started,
)

from harness.clock import ManualClock
from harness.domain.statuses import Direction, ExperimentStatus, RunStatus, Split, Verdict
from harness.errors import (
    LedgerBusyError,
    NotFoundError,
    RefusedError,
    TransitionError,
    UsageError,
)
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import (
    ExperimentMoved,
    HeldOutQueried,
    LoopEnded,
    SessionEnded,
    SessionStarted,
    TrainingSpecified,
    fact_from,
)


def test_facts_are_stored_as_the_bytes_that_are_hashed(tmp_path):
    with full_ledger(tmp_path) as ledger:
        prev = "0" * 64
        for seq, fact in enumerate(ledger.facts(), 1):
            whole = json.loads(fact.data)
            assert canonical_json(whole) == fact.data
            assert (whole["writer"], whole["seq"], whole["prev"], whole["v"]) == (
                "alice",
                seq,
                prev,
                1,
            )
            assert sha256_bytes(fact.data) == fact.hash
            again = fact_from(fact.kind, whole["body"])
            assert canonical_json(again.body()) == canonical_json(whole["body"])
            prev = fact.hash
        anchor = json.loads((tmp_path / "anchors" / "alice.json").read_text())
        assert anchor == {"seq": seq, "hash": prev}


def test_reads_give_back_what_was_recorded(tmp_path):
    with full_ledger(tmp_path, lives=2) as ledger:
        assert [item.id for item in ledger.experiments()] == ["exp-0001", "exp-0002"]
        assert [item.id for item in ledger.experiments(newest=1)] == ["exp-0002"]
        assert [item.id for item in ledger.experiments(statuses=[ExperimentStatus.KEPT])] == [
            "exp-0002"
        ]
        second = ledger.experiment("exp-0002")
        assert (second.parent, second.plan, second.plan_version, second.status) == (
            "exp-0001",
            "digits",
            1,
            "kept",
        )
        run = ledger.run("exp-0002", "run-01")
        assert (run.status, run.argv, run.rows, run.pid) == (
            RunStatus.COMPLETED,
            ("python", "train.py"),
            5,
            2,
        )
        assert ledger.runs("exp-0002") == [run]
        assert ledger.open_runs() == []
        assert [item.final for item in ledger.checkpoints("exp-0002", "run-01")] == [True]
        assert [item.value for item in ledger.evaluations("exp-0002", Split.VALIDATION)] == [0.6]
        assert ledger.evaluations("exp-0002", Split.HELD_OUT) == []
        verdict = ledger.latest_verdict("exp-0002", "validation")
        assert verdict is not None
        assert (verdict.id, verdict.verdict, verdict.score["mean"]) == (
            "v-000002",
            Verdict.PASS,
            0.6,
        )
        assert ledger.latest_verdict("exp-0002", "held_out") is None
        assert [item.id for item in ledger.decisions()] == ["d-0001", "d-0002"]
        assert [item.verdict for item in ledger.decisions("exp-0002")] == ["v-000002"]
        assert ledger.sessions(open_only=True) == []
        assert [item.outcome for item in ledger.sessions()] == ["finished", "finished"]
        assert ledger.plan() == ledger.plans()[-1]
        assert ledger.tampering()[0].what == "scorer_changed"
        assert ledger.loop_end() == LoopEnded(
            plan="digits", reason="target", detail="must was reached"
        )
        assert ledger.counts()["experiments"] == {"kept": 1, "discarded": 1}
        assert ledger.counts("digits") == ledger.counts()
        assert ledger.counts("letters")["experiments"] == {}
        assert (
            ledger.best_experiment(
                "digits", Split.VALIDATION, Direction.MAXIMIZE, ExperimentStatus.KEPT
            )
            == second.id
        )
        ledger.open_experiment(hypothesis="again", parent=None, by="me")
        assert ledger.loop_end() is None  # something was begun after it


def test_unknown_things_are_named(tmp_path):
    with open_ledger(tmp_path) as ledger:
        for call in (
            lambda: ledger.experiment("exp-0009"),
            lambda: register(ledger, "exp-0009"),
            lambda: ledger.move_experiment("exp-0009", ExperimentStatus.JUDGED, "x"),
            lambda: ledger.append(ended("exp-0009", "run-01")),
            lambda: judged(ledger, "exp-0009", 0.5),
            lambda: decided(ledger, "exp-0009"),
            lambda: ledger.open_experiment(hypothesis="h", parent="exp-0009", by="me"),
        ):
            with pytest.raises(NotFoundError, match="exp-0009"):
                call()
        assert ledger.position() == 0


def test_transition_tables_hold(tmp_path):
    with open_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        with pytest.raises(TransitionError, match=r"exp-0001 is open and cannot become kept"):
            ledger.append(ExperimentMoved(experiment=name, status="kept", why="wish"))
        run = register(ledger, name)
        assert ledger.experiment(name).status is ExperimentStatus.RUNNING
        with pytest.raises(
            TransitionError, match=r"exp-0001/run-01 is pending and cannot become completed"
        ):
            ledger.append(ended(name, run))
        ledger.append(started(name, run))
        with pytest.raises(TransitionError, match="is running and cannot become running"):
            ledger.append(started(name, run))
        ledger.append(ended(name, run, "failed"))
        with pytest.raises(TransitionError, match=r"cannot become \w+; allowed: pending"):
            ledger.append(ended(name, run, "completed"))
        assert (
            ledger.resume_run(experiment=name, run=run, environment={}, session=None).attempt == 2
        )
        ledger.append(started(name, run))
        ledger.append(ended(name, run, "completed"))
        with pytest.raises(TransitionError, match="it is final"):
            ledger.resume_run(experiment=name, run=run, environment={}, session=None)
        with pytest.raises(UsageError, match="expected one of open, running"):
            ledger.append(ExperimentMoved(experiment=name, status="done", why="x"))
        ledger.move_experiment(name, ExperimentStatus.DISCARDED, "x")
        with pytest.raises(RefusedError, match="no further runs"):
            register(ledger, name)
        before = ledger.position()
        assert [fact.kind for fact in ledger.facts(before - 2)] == [
            "run_ended",
            "experiment_moved",
        ]


def test_run_ids_and_attempts(tmp_path):
    with open_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        for seed in (7, 8, 7):
            register(ledger, name, seed)
        assert [(run.id, run.seed, run.attempt) for run in ledger.runs(name)] == [
            ("run-01", 7, 1),
            ("run-02", 8, 1),
            ("run-03", 7, 2),
        ]
        assert len(ledger.open_runs()) == 3
        with pytest.raises(UsageError, match="64 bits"):
            register(ledger, name, 2**70)


def test_query_budget_counts_looks_at_held_out_of_one_plan(tmp_path):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        names = [ledger.open_experiment(hypothesis="h", parent=None, by="me").id for _ in range(2)]
        ledger.append(
            HeldOutQueried(experiment=names[0], split="validation", query=1)
        )  # is no look at held-out
        assert ledger.query_held_out(names[0], 2) == 1
        assert ledger.query_held_out(names[1], 2) == 2
        with pytest.raises(RefusedError, match="all 2 held-out evaluations") as refused:
            ledger.query_held_out(names[0], 2)
        assert refused.value.code == "query_budget_spent"
        assert ledger.queries("digits", Split.HELD_OUT) == 2


def test_plan_versions_follow(tmp_path):
    with open_ledger(tmp_path) as ledger:
        ledger.append(plan())
        for version in (1, 3):
            with pytest.raises(RefusedError):
                ledger.append(plan(version))
        ledger.append(plan(2))
        assert ledger.open_experiment(hypothesis="h", parent=None, by="me").plan_version == 2


def _open_two_with_a_bad_parent(ledger, writer):
    ledger.open_experiment(hypothesis="h", parent=None, by="me")  # joins the open transaction
    assert writer.appended[0].seq == 1
    ledger.open_experiment(hypothesis="h", parent="exp-0009", by="me")


def test_a_group_of_facts_is_one_step(tmp_path):
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(NotFoundError), ledger.transaction() as writer:
            _open_two_with_a_bad_parent(ledger, writer)
        assert ledger.position() == 0
        assert not (tmp_path / "anchors" / "alice.json").exists()
        with ledger.transaction():
            for _ in range(3):
                ledger.open_experiment(hypothesis="h", parent=None, by="me")
        assert [fact.seq for fact in ledger.facts()] == [1, 2, 3]


def test_an_existing_folder_is_never_given_to_a_new_experiment(tmp_path):
    taken = {"exp-0001", "exp-0002"}
    with open_ledger(tmp_path) as ledger:
        opened = ledger.open_experiment(
            hypothesis="h", parent=None, by="me", reserve=lambda name: name not in taken
        )
        assert opened.id == "exp-0003"
        assert ledger.open_experiment(hypothesis="h", parent=None, by="me").id == "exp-0004"


def test_sessions_end_once(tmp_path):
    start = SessionStarted(
        session="s1", role="oracle", experiment=None, step="judge-1", sandbox="none", driver={}
    )
    end = SessionEnded(session="s1", outcome="cut", detail="killed", turns=0, cost_usd=None)
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(NotFoundError):
            ledger.append(end)
        ledger.append(start)
        assert [item.id for item in ledger.sessions(open_only=True)] == ["s1"]
        ledger.append(end)
        for fact in (start, end):
            with pytest.raises(RefusedError):
                ledger.append(fact)


def test_texts_that_utf8_cannot_hold_and_odd_numbers(tmp_path):
    with open_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(
            hypothesis='tab\t, quote ", nul \x00, half a pair \ud800, \x1b[2J, 😀',
            parent=None,
            by="me",
        ).id
        assert ledger.experiment(name).hypothesis == 'tab\t, quote ", nul , half a pair , , 😀'
        before = ledger.position()
        spec = {"objective": "half a pair \ud800"}  # kept as it is: trainers read it
        with pytest.raises(UsageError, match="cannot be written"):
            ledger.append(TrainingSpecified(experiment=name, spec=spec, sha256="s", by="me"))
        assert ledger.position() == before
        run = register(ledger, name)
        ledger.append(evaluated(name, run, float("nan"), interval=[float("-inf"), 1.0]))
        assert ledger.evaluations(name)[0].value is None
        assert ledger.evaluations(name)[0].interval is None
        assert b'"value":"NaN"' in list(ledger.facts())[-1].data


def test_times_never_go_back(tmp_path):
    clock = ManualClock()
    with open_ledger(tmp_path, clock=clock) as ledger:
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        clock.sleep(-3600)
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
    with open_ledger(tmp_path, clock=ManualClock(), writer="bob") as ledger:
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        times = [(fact.writer, fact.at[-13:]) for fact in ledger.facts()]
        assert times == [
            ("alice", "00:00:00.000Z"),
            ("alice", "00:00:00.000Z"),
            ("bob", "00:00:00.001Z"),
        ]


def test_result_that_cannot_be_stored_is_kept_and_recorded_later(tmp_path):
    with open_ledger(tmp_path, clock=late_clock(1)) as ledger:
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        run = register(ledger, name)
        ledger.append(started(name, run))
        holder = open_ledger(tmp_path)
        with (
            holder.exclusive(),
            open_ledger(tmp_path, clock=TickingClock(), busy_seconds=0.1) as waiting,
        ):
            with pytest.raises(LedgerBusyError, match=r"run_ended\) was kept in"):
                waiting.append(ended(name, run, "completed"))
            with pytest.raises(LedgerBusyError, match=r"is being written by another"):
                waiting.open_experiment(hypothesis="h", parent=None, by="me")
        holder.close()
        assert len(list((tmp_path / "spool").iterdir())) == 1
        ledger.open_experiment(hypothesis="next", parent=None, by="me")
        assert ledger.run(name, run).status is RunStatus.COMPLETED
        assert list((tmp_path / "spool").iterdir()) == []


def test_kept_result_that_is_refused_by_now_is_set_aside(tmp_path):
    with open_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        (tmp_path / "spool").mkdir()
        fact = ended(name, "run-09")
        data = canonical_json({"kind": fact.KIND, "body": fact.body()})
        (tmp_path / "spool" / "a.json").write_bytes(data)
        (tmp_path / "spool" / "b.json").write_bytes(b"{cut")
        (tmp_path / "spool" / "c.json").write_bytes(b'["a list"]')
        register(ledger, name)
        assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == [
            "a.refused",
            "b.refused",
            "c.refused",
        ]
        assert [item.kind for item in ledger.facts()] == [
            "experiment_opened",
            "run_registered",
            "experiment_moved",
        ]


def test_writers_that_cannot_name_a_file_are_refused(tmp_path):
    for name in ("../x", "", ".hidden", "a/b"):
        with pytest.raises(UsageError):
            open_ledger(tmp_path, writer=name)


def test_w3_a_nan_result_is_read_again_after_a_restart(tmp_path):
    with open_ledger(tmp_path) as ledger:
        name = ledger.open_experiment(hypothesis="it diverges", parent=None, by="me").id
        ledger.append(evaluated(name, register(ledger, name), float("nan")))
    with open_ledger(tmp_path) as ledger:
        ledger.rebuild()
        assert [item.value for item in ledger.evaluations(name)] == [None]
        assert ledger.open_experiment(hypothesis="the next", parent=None, by="me").id == "exp-0002"


def test_w3_parents_make_no_circle_because_each_is_older(tmp_path):
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(NotFoundError, match="exp-0001"):
            ledger.open_experiment(hypothesis="its own parent", parent="exp-0001", by="me")
        first = ledger.open_experiment(hypothesis="the first", parent=None, by="me")
        with pytest.raises(NotFoundError, match="exp-0003"):
            ledger.open_experiment(hypothesis="a child of the next", parent="exp-0003", by="me")
        assert (
            ledger.open_experiment(hypothesis="a child", parent=first.id, by="me").parent
            == "exp-0001"
        )
