"""The version of the state: a ledger of older code is copied aside and its facts are replayed into
the tables of this code."""

import json
import sqlite3
from pathlib import Path

import pytest
from ledger_samples import (
    IDENTITY,
    benchmark_approved,
    evaluated,
    full_ledger,
    gate_mode_set,
    ids_renamed,
    judge_recorded,
    judged,
    open_ledger,
    phase_facts,
    place,
    prior,
    prior_told,
    program,
    read_state,
    register,
    released,
    reproduced,
)

from harness.domain.findings import Finding
from harness.errors import LedgerDamagedError, LedgerError
from harness.files import sha256_bytes
from harness.ledger import state_version
from harness.ledger.chain import StoredFact
from harness.ledger.facts import KINDS, ControlAccepted, HandOffWritten, SessionBegan, SessionSeen
from harness.ledger.schema import TABLES
from harness.ledger.state_version import STATE_VERSION
from harness.ledger.verify import verify
from tests.memory_state import replay

FACTS = Path(__file__).with_name("state_facts.jsonl")
"""Facts as a ledger of STATE_OF's version stored them: the life of `compared_ledger`."""
STATE_OF = {21: "5ba1e3872ce25b1ae79106737f456b23f7b711399566768d7f480fc3ad6c7208"}
"""Version -> hash of what FACTS add up to."""
NEXT = STATE_VERSION + 1


def run_sql(folder, *statements):
    with sqlite3.connect(folder / "ledger.db") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def version_of(path):
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return version


def schema_of(path):
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()
    connection.close()
    return [" ".join(row[0].split()) for row in rows]


def test_a_new_file_has_exactly_the_schema_that_the_code_uses(tmp_path):
    open_ledger(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert set(TABLES) <= names
    for table in TABLES.values():
        made = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
        used = table.columns.values()
        assert [row[1:4] for row in made] == [
            (column.name, column.kind, column.required) for column in used
        ]
        assert {row[1] for row in made if row[5]} == set(table.key)
    connection.close()
    indexes = {line.split()[2] for line in schema_of(tmp_path / "ledger.db") if " INDEX " in line}
    assert {"facts_at", "experiments_parent", "notes_kind"} <= indexes


def older_ledger(folder):
    """As older code left it: tables that are not there yet, one of another form, summaries that lack
    a part, and a table that this code does not have."""
    full_ledger(folder).close()
    run_sql(
        folder,
        "DROP TABLE hand_offs",
        "DROP TABLE priors",
        "ALTER TABLE runs DROP COLUMN job",
        "ALTER TABLE runs ADD COLUMN pid INTEGER",
        "UPDATE experiments SET summary = json_remove(summary, '$.comparison', '$.evaluated')",
        "CREATE TABLE migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL)",
        "PRAGMA user_version = 1",
    )


def test_a_new_file_notes_the_version_of_its_state(tmp_path):
    open_ledger(tmp_path).close()
    assert version_of(tmp_path / "ledger.db") == STATE_VERSION


def test_hand_offs_and_priors_come_to_a_ledger_that_was_made_before_them(tmp_path):
    older_ledger(tmp_path)
    with open_ledger(tmp_path, writer=None) as ledger:
        assert [len(rows) for rows in (ledger.hand_offs(), ledger.priors())] == [1, 2]
        assert {"hand_offs", "priors"} <= ledger.stale_projections()
        ledger.append(
            HandOffWritten(by="agent", session=None, text="half done", experiment="exp-0001")
        )
        ledger.record_prior(lesson="l", evidence="e", rule="r", check=None, by="human:ada")
        assert [item.text for item in ledger.hand_offs()][1:] == ["half done"]
        assert [item.id for item in ledger.priors()][2:] == ["p-0003"]
    (copy,) = tmp_path.glob("ledger.v1-*.backup.db")
    assert not [line for line in schema_of(copy) if "hand_offs" in line]
    assert verify(place(tmp_path), tmp_path / "anchors") == []


def test_an_older_file_opens_with_all_its_facts(tmp_path):
    older_ledger(tmp_path)
    with open_ledger(tmp_path, writer=None) as ledger:
        assert ledger.writer == "alice"
        assert [item.id for item in ledger.experiments()] == ["exp-0001", "exp-0002", "exp-0003"]
        assert ledger.run("exp-0001", "run-01").pid == 2
        with ledger.connection() as connection:
            before = read_state(connection)
        ledger.rebuild()
        with ledger.connection() as connection:
            assert read_state(connection) == before
    new = tmp_path / "new"
    new.mkdir()
    full_ledger(new).close()
    assert schema_of(tmp_path / "ledger.db") == schema_of(new / "ledger.db")


def test_a_new_file_is_made_without_a_copy(tmp_path):
    open_ledger(tmp_path).close()
    open_ledger(tmp_path).close()
    assert list(tmp_path.rglob("*.backup.db")) == []


def test_a_new_state_version_copies_the_file_first_and_notes_itself(tmp_path, monkeypatch):
    full_ledger(tmp_path).close()
    monkeypatch.setattr(state_version, "STATE_VERSION", NEXT)
    words = f"state version {STATE_VERSION}; this harness reads version {NEXT}"
    with pytest.raises(LedgerError, match=words) as old:
        open_ledger(tmp_path, read_only=True)
    assert old.value.code == "ledger_too_old"
    with open_ledger(tmp_path) as ledger:
        assert len(ledger.experiments()) == 3
    assert version_of(tmp_path / "ledger.db") == NEXT
    (copy,) = tmp_path.glob("*.backup.db")
    assert copy.name.startswith(f"ledger.v{STATE_VERSION}-")
    assert version_of(copy) == STATE_VERSION
    with open_ledger(tmp_path):
        pass
    assert len(list(tmp_path.glob("*.backup.db"))) == 1  # one a version, not one an opening
    copy.replace(tmp_path / "ledger.db")
    monkeypatch.undo()
    with open_ledger(tmp_path) as ledger:
        assert len(ledger.experiments()) == 3


def test_facts_that_cannot_be_replayed_leave_everything_as_it_was(tmp_path):
    older_ledger(tmp_path)
    run_sql(tmp_path, "DELETE FROM facts WHERE kind = 'experiment_opened'")
    before = schema_of(tmp_path / "ledger.db")
    with pytest.raises(LedgerDamagedError, match="no earlier fact"):
        open_ledger(tmp_path)
    assert schema_of(tmp_path / "ledger.db") == before
    assert version_of(tmp_path / "ledger.db") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("sandbox", "cage"), "session_started has the wrong fields: unexpected fields ['cage']"),
        (("by", "from"), "plan_approved has the wrong fields: unexpected fields ['from']"),
    ],
)
def test_facts_of_another_version_are_named_with_what_to_do(tmp_path, change, words):
    full_ledger(tmp_path).close()
    data = "CAST(replace(CAST(data AS TEXT), '\"{}\":', '\"{}\":') AS BLOB)".format(*change)
    run_sql(tmp_path, f"UPDATE facts SET data = {data}", "PRAGMA user_version = 1")
    with pytest.raises(LedgerDamagedError) as error:
        open_ledger(tmp_path)
    assert words in error.value.message
    assert "another version of the harness" in error.value.hint


def test_a_newer_file_is_refused_and_left_alone(tmp_path, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(state_version, "STATE_VERSION", NEXT)
        open_ledger(tmp_path).close()
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=f"knows versions up to {STATE_VERSION}") as error:
            open_ledger(tmp_path, read_only=read_only)
        assert error.value.code == "ledger_too_new"


@pytest.mark.parametrize("mark", [state_version.MIGRATING, state_version.MOVED])
def test_a_mark_is_a_newer_version_to_a_harness_that_does_not_know_it(tmp_path, monkeypatch, mark):
    with open_ledger(tmp_path) as ledger, ledger.exclusive() as connection:
        connection.note_state_version(mark)
    with pytest.raises(LedgerError, match=r"did not end|stands still"):
        open_ledger(tmp_path)
    monkeypatch.setattr(state_version, "MIGRATING", None)
    monkeypatch.setattr(state_version, "MOVED", None)
    with pytest.raises(LedgerError) as error:
        open_ledger(tmp_path)
    assert error.value.code == "ledger_too_new"


def compared_ledger(folder):
    """Every table has rows, and summaries all their parts."""
    ledger = full_ledger(folder)
    program(ledger)
    name = ledger.open_experiment(hypothesis="deeper", parent="exp-0003", by="me").id
    run = register(ledger, name)
    ledger.append(evaluated(name, run, 0.75, findings=[Finding("split_small", "few rows", "")]))
    comparison = {
        "against": "exp-0003",
        "better": True,
        "comparisons": 2,
        "difference": 0.05,
        "p_corrected": 0.01,
    }
    judged(
        ledger,
        name,
        0.75,
        "PASS",
        tier="must",
        comparison={**comparison, "no_longer": ["exp-0002"]},
    )
    ledger.append(ControlAccepted(sha256="0" * 64, files=3, by="human:ada"))
    ledger.append(SessionSeen(experiment="exp-0003", session="5b0c", trace="receipt"))
    ledger.append(judge_recorded("0"))
    ledger.append(SessionBegan(session="5b0c", process=IDENTITY))
    ledger.append(benchmark_approved())
    ledger.append(released("exp-0003"))
    ledger.append(reproduced("exp-0003", "exp-0002"))
    ledger.append(gate_mode_set("supervised"))
    for fact in phase_facts():
        ledger.append(fact)
    ledger.append(ids_renamed())
    rule = prior(ledger, enforces="config lr below 0.1", answers="non_finite")
    for fact in prior_told(rule):
        ledger.append(fact)
    return ledger


def test_what_facts_add_up_to_changes_only_with_a_new_version(tmp_path):
    """Without one, a ledger that was made before is reported as damaged: raise STATE_VERSION, and
    note the new version's hash here."""
    lines = map(json.loads, FACTS.read_text("utf-8").splitlines())
    tables = replay(StoredFact(**{**line, "data": line["data"].encode()}) for line in lines).tables
    assert [table for table, rows in tables.items() if not rows] == []
    plain = {
        table: sorted([list(map(str, key)), row] for key, row in rows.items())
        for table, rows in tables.items()
    }
    assert {STATE_VERSION: sha256_bytes(json.dumps(plain, sort_keys=True).encode())} == STATE_OF


def test_the_kept_facts_are_of_every_kind_that_a_ledger_has(tmp_path):
    kept = {json.loads(line)["kind"] for line in FACTS.read_text("utf-8").splitlines()}
    assert kept == set(KINDS)


def test_comparisons_come_to_a_ledger_that_was_made_before_them(tmp_path):
    compared_ledger(tmp_path).close()
    run_sql(
        tmp_path,
        "UPDATE experiments SET summary = json_remove(summary, '$.comparison')",
        "PRAGMA user_version = 6",
    )
    open_ledger(tmp_path).close()
    assert verify(place(tmp_path), tmp_path / "anchors") == []
