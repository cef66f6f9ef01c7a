"""What runs have in common stands in the facts once; later facts name it by its hash."""

import sqlite3

import pytest
from ledger_samples import full_ledger, open_ledger, place, register

from harness.errors import LedgerDamagedError
from harness.files import canonical_json, sha256_bytes
from harness.ledger.chain import FIRST_PREV, seal
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.replay import facts_in_order
from harness.ledger.verify import verify
from tests.memory_state import replay

ENVIRONMENT = {"packages": {f"package-{number}": "1.0" for number in range(40)}, "cpus": 2}
EXPERIMENT = "exp-0004"
DATA = {name: name[0] * 64 for name in ("train", "validation", "held_out")}
SAME = {"same": sha256_bytes(canonical_json(ENVIRONMENT))}


def register_bulky(ledger, seed, environment=ENVIRONMENT):
    return ledger.register_run(
        experiment=EXPERIMENT,
        seed=seed,
        argv=["python", "train.py"],
        code="c" * 64,
        data=DATA,
        environment=environment,
        sandbox="bwrap",
        caller="person",
        token="e" * 64,
    )


def registered(ledger):
    with ledger.connection() as connection:
        bodies = [
            fact.body() for fact in facts_in_order(connection) if fact.kind == "run_registered"
        ]
    return [body for body in bodies if body["experiment"] == EXPERIMENT]


@pytest.fixture
def ledger(tmp_path):
    with full_ledger(tmp_path) as opened:
        made = opened.open_experiment(hypothesis="wider", parent=None, by="me")
        assert made.id == EXPERIMENT
        yield opened


def test_the_first_fact_says_it_and_the_next_ones_name_it(ledger, tmp_path):
    other = {**ENVIRONMENT, "cpus": 4}
    runs = [register_bulky(ledger, seed) for seed in (1, 2)]
    runs += [register_bulky(ledger, 3, other), register_bulky(ledger, 4)]
    assert [run.environment for run in runs] == [ENVIRONMENT, ENVIRONMENT, other, ENVIRONMENT]
    assert [run.environment for run in ledger.runs(EXPERIMENT)][-4:] == [
        run.environment for run in runs
    ]
    assert all(run.data == DATA for run in runs)
    facts = registered(ledger)[-4:]
    assert [fact["environment"] for fact in facts] == [ENVIRONMENT, SAME, other, SAME]
    assert [len(fact["data"]) for fact in facts] == [3, 1, 1, 1]
    # What is short stays as it is.
    register(ledger, EXPERIMENT, seed=9)
    assert registered(ledger)[-1]["environment"] == {"python": "3.11"}
    assert verify(place(tmp_path), tmp_path / "anchors") == []


def test_a_clone_and_a_rebuild_have_the_whole_of_it(ledger, tmp_path):
    for seed in (1, 2):
        register_bulky(ledger, seed)
    export_facts(ledger, tmp_path / "facts")
    with open_ledger(tmp_path / "clone", writer=None) as clone:
        import_facts(clone, tmp_path / "facts")
        assert [run.environment for run in clone.runs(EXPERIMENT)][-2:] == [ENVIRONMENT] * 2


@pytest.mark.of_a_file
def test_a_ledger_from_before_is_read_and_goes_on_in_the_new_form(ledger, tmp_path):
    """State version 18 knew no such part; its facts say everything in full."""
    register_bulky(ledger, 1)
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("DROP TABLE parts")
        connection.execute("PRAGMA user_version = 18")
    connection.close()
    with open_ledger(tmp_path, writer=None) as again:
        assert register_bulky(again, 2).environment == ENVIRONMENT
        assert registered(again)[-1]["environment"] == SAME
    assert verify(place(tmp_path), tmp_path / "anchors") == []


def test_a_hash_of_nothing_that_was_said_is_damage(ledger):
    register_bulky(ledger, 1)
    with ledger.connection() as connection:
        facts = list(facts_in_order(connection))
    last = next(fact for fact in reversed(facts) if fact.kind == "run_registered")
    unknown = {**last.body(), "run": "run-09", "environment": {"same": "0" * 64}}
    facts.append(
        seal(
            writer="bob",
            seq=1,
            prev=FIRST_PREV,
            at=facts[-1].at,
            kind=last.kind,
            body=unknown,
        )
    )
    with pytest.raises(LedgerDamagedError, match=f"about {'0' * 64} in parts"):
        replay(facts)
