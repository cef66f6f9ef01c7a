"""Migrations: one transaction each with its row, a copy before, from a blank file and from the
first schema."""

import json
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from ledger_samples import evaluated, full_ledger, judged, open_ledger, program, register

from harness.clock import ManualClock
from harness.domain.facts import HandOffWritten
from harness.errors import LedgerDamagedError, LedgerError
from harness.files import sha256_bytes
from harness.ledger.apply import _HANDLERS
from harness.ledger.chain import StoredFact
from harness.ledger.migrations import MIGRATIONS
from harness.ledger.replay import recreate_state, replay
from harness.ledger.schema import metadata
from harness.ledger.state import read_state
from harness.ledger.verify import verify

FIRST = Path(__file__).with_name("ledger_v1.sql")
LAST = max(MIGRATIONS)
FACTS = Path(__file__).with_name("state_facts.jsonl")
"""Facts as a ledger of version 7 stored them: the life of `compared_ledger`."""
STATE_OF = {7: "47694cdc5b8ba0ab012c5895314ef64217ff2933f1ef6c379bb6864abbf0d807"}
"""Version -> hash of what FACTS add up to."""
NEXT = LAST + 1


def schema_of(path):
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()
    connection.close()
    return [" ".join(row[0].split()) for row in rows]


def columns(inspector, table):
    return [
        (item["name"], str(item["type"]), item["nullable"]) for item in inspector.get_columns(table)
    ]


def m_next_note(connection):
    connection.exec_driver_sql("ALTER TABLE facts ADD COLUMN note TEXT")
    recreate_state(connection)


m_next_note.__name__ = f"m{NEXT:03d}_note"


def m_next_fails(connection):
    connection.exec_driver_sql("ALTER TABLE facts ADD COLUMN note TEXT")
    raise LedgerDamagedError("half-way", hint="")


def test_a_new_file_has_exactly_the_schema_that_the_code_uses(tmp_path):
    open_ledger(tmp_path).close()
    engine = sa.create_engine("sqlite://")
    metadata.create_all(engine)
    made, used = sa.inspect(sa.create_engine(f"sqlite:///{tmp_path}/ledger.db")), sa.inspect(engine)
    assert set(made.get_table_names()) == set(used.get_table_names())
    for table in used.get_table_names():
        assert columns(made, table) == columns(used, table), table
        assert sorted(item["name"] for item in made.get_indexes(table)) == sorted(
            item["name"] for item in used.get_indexes(table)
        )
        assert (
            made.get_pk_constraint(table)["constrained_columns"]
            == used.get_pk_constraint(table)["constrained_columns"]
        )


def first_schemas_file(folder):
    with sqlite3.connect(folder / "ledger.db") as connection:
        connection.executescript(FIRST.read_text("utf-8"))
    connection.close()


def test_every_migration_is_numbered_and_named_after_its_number():
    assert list(MIGRATIONS) == list(range(1, NEXT))
    assert all(step.__name__.startswith(f"m{version:03d}_") for version, step in MIGRATIONS.items())


def test_hand_offs_and_priors_come_to_a_ledger_of_the_first_schema(tmp_path):
    first_schemas_file(tmp_path)
    with open_ledger(tmp_path, writer=None) as ledger:
        assert (ledger.hand_offs(), ledger.priors()) == ([], [])
        assert {"hand_offs", "priors"} <= ledger.stale_projections()
        ledger.append(
            HandOffWritten(by="agent", session=None, text="half done", experiment="exp-0001")
        )
        ledger.record_prior(lesson="l", evidence="e", rule="r", check=None, by="human:ada")
        assert [item.text for item in ledger.hand_offs()] == ["half done"]
        assert [item.id for item in ledger.priors()] == ["p-0001"]
    (copy,) = tmp_path.glob("ledger.v1-*.backup.db")
    assert not [line for line in schema_of(copy) if "hand_offs" in line]
    assert verify(tmp_path / "ledger.db", tmp_path / "anchors") == []


def test_the_first_schemas_file_opens_with_all_its_facts(tmp_path):
    first_schemas_file(tmp_path)
    with open_ledger(tmp_path, writer=None) as ledger:
        assert ledger.writer == "alice"
        assert [item.id for item in ledger.experiments()] == ["exp-0001"]
        with ledger.connection() as connection:
            before = read_state(connection)
        ledger.rebuild()
        with ledger.connection() as connection:
            assert read_state(connection) == before


def test_a_new_file_goes_through_every_migration_without_a_copy(tmp_path):
    with open_ledger(tmp_path) as ledger, ledger.connection() as connection:
        rows = (
            connection.exec_driver_sql("SELECT version FROM migrations ORDER BY version")
            .scalars()
            .all()
        )
        assert rows == list(MIGRATIONS)
    assert list(tmp_path.rglob("*.backup.db")) == []


def test_a_migration_copies_the_file_first_and_records_itself(tmp_path):
    full_ledger(tmp_path).close()
    before = (tmp_path / "ledger.db").read_bytes()
    table = {**MIGRATIONS, NEXT: m_next_note}
    with pytest.raises(
        LedgerError, match=f"schema version {LAST}; this harness reads version {NEXT}"
    ) as old:
        open_ledger(tmp_path, read_only=True, migrations=table)
    assert old.value.code == "ledger_too_old"
    with (
        open_ledger(tmp_path, migrations=table, clock=ManualClock()) as ledger,
        ledger.connection() as connection,
    ):
        rows = connection.exec_driver_sql(
            "SELECT version, name, at FROM migrations ORDER BY version"
        ).all()
        assert rows[-1][:2] == (NEXT, m_next_note.__name__)
        assert [row[0] for row in rows] == list(range(1, NEXT + 1))
        assert rows[-1][2] == "2026-01-01T00:00:00.000Z"
        assert len(ledger.experiments()) == 3
    (copy,) = tmp_path.glob("*.backup.db")
    assert copy.name.startswith(f"ledger.v{LAST}-")
    assert schema_of(copy) != schema_of(tmp_path / "ledger.db")
    copy.replace(tmp_path / "ledger.db")
    with open_ledger(tmp_path) as ledger:
        assert len(ledger.experiments()) == 3
    assert len(before) == (tmp_path / "ledger.db").stat().st_size
    with open_ledger(tmp_path, migrations=table):
        pass
    assert len(list(tmp_path.glob("*.backup.db"))) == 1  # one a migration, not one an opening


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path):
    full_ledger(tmp_path).close()
    before = schema_of(tmp_path / "ledger.db")
    with pytest.raises(LedgerDamagedError, match="half-way"):
        open_ledger(tmp_path, migrations={**MIGRATIONS, NEXT: m_next_fails})
    assert schema_of(tmp_path / "ledger.db") == before
    with open_ledger(tmp_path) as ledger:
        assert len(ledger.experiments()) == 3


def test_a_newer_file_is_refused_and_left_alone(tmp_path):
    open_ledger(tmp_path, migrations={**MIGRATIONS, NEXT: m_next_note}).close()
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=f"knows versions up to {LAST}") as error:
            open_ledger(tmp_path, read_only=read_only)
        assert error.value.code == "ledger_too_new"


def compared_ledger(folder):
    """Every table has rows, and summaries all their parts."""
    ledger = full_ledger(folder)
    program(ledger)
    name = ledger.open_experiment(hypothesis="deeper", parent="exp-0003", by="me").id
    run = register(ledger, name)
    ledger.append(
        evaluated(name, run, 0.75, findings=[{"code": "split_small", "message": "few rows"}])
    )
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
    return ledger


def test_what_facts_add_up_to_changes_only_with_a_new_version(tmp_path):
    """Without one, a ledger that was made before is told to be damaged: add a migration with
    `recreate_state`, and the new version's hash here."""
    lines = map(json.loads, FACTS.read_text("utf-8").splitlines())
    tables = replay(StoredFact(**{**line, "data": line["data"].encode()}) for line in lines).tables
    assert [table for table, rows in tables.items() if not rows] == []
    plain = {
        table: sorted([list(map(str, key)), row] for key, row in rows.items())
        for table, rows in tables.items()
    }
    assert {LAST: sha256_bytes(json.dumps(plain, sort_keys=True).encode())} == STATE_OF


def test_the_kept_facts_are_of_every_kind_that_a_ledger_has(tmp_path):
    kept = {json.loads(line)["kind"] for line in FACTS.read_text("utf-8").splitlines()}
    assert set(_HANDLERS) - kept == {"control_accepted"}  # a note as others are


def test_comparisons_come_to_a_ledger_that_was_made_before_them(tmp_path):
    compared_ledger(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("UPDATE experiments SET summary = json_remove(summary, '$.comparison')")
        connection.execute("DELETE FROM migrations WHERE version >= 6")
    connection.close()
    open_ledger(tmp_path).close()
    assert verify(tmp_path / "ledger.db", tmp_path / "anchors") == []
