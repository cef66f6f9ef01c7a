"""verify names the fact: any changed byte, column, order, gap or cut tail."""

import random
import sqlite3

import pytest
from ledger_samples import decided, full_ledger, late_clock, open_ledger, place

from harness.errors import LedgerDamagedError, LedgerError, NotFoundError
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.state_version import MIGRATING, MOVED, STATE_VERSION
from harness.ledger.verify import verify


@pytest.fixture
def folder(tmp_path):
    with full_ledger(tmp_path, lives=2) as ledger:
        export_facts(ledger, tmp_path / "facts")
    return tmp_path


def check(folder, *, text=False):
    return verify(place(folder), folder / "anchors", folder / "facts" if text else None)


def run_sql(folder, statement, *parameters):
    with sqlite3.connect(folder / "ledger.db") as connection:
        connection.execute(statement, parameters)
    connection.close()


def all_data(folder):
    connection = sqlite3.connect(folder / "ledger.db")
    rows = connection.execute("SELECT seq, kind, data FROM facts ORDER BY seq").fetchall()
    connection.close()
    return rows


def test_a_whole_ledger_has_no_problems(folder):
    assert check(folder, text=True) == []


def test_any_changed_byte_of_a_facts_data_is_named(folder):
    rows = all_data(folder)
    choose = random.Random(7)
    for seq, kind, data in rows:
        for at in {0, len(data) - 1, *(choose.randrange(len(data)) for _ in range(2))}:
            changed = bytearray(data)
            changed[at] ^= 1
            run_sql(folder, "UPDATE facts SET data = ? WHERE seq = ?", bytes(changed), seq)
            problems = check(folder)
            assert [(item.writer, item.seq, item.kind) for item in problems] == [
                ("alice", seq, kind)
            ], (seq, at)
            assert f"Fact {seq} of writer alice ({kind})" in problems[0].message
        run_sql(folder, "UPDATE facts SET data = ? WHERE seq = ?", data, seq)
    assert check(folder) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hash", "0" * 64),
        ("prev", "1" * 64),
        ("kind", "plan_approved"),
        ("at", "2026-01-01T00:00:00.000Z"),
        ("data", "text"),
    ],
)
def test_a_changed_column_is_named(folder, column, value):
    run_sql(folder, f"UPDATE facts SET {column} = ? WHERE seq = 5", value)
    assert [(item.writer, item.seq) for item in check(folder)] == [("alice", 5)]


@pytest.mark.parametrize("seq", [0, -3, 500, "five"])
def test_a_changed_number_is_named(folder, seq):
    run_sql(folder, "UPDATE facts SET seq = ? WHERE seq = 5", seq)
    problems = check(folder)
    assert any(
        "alice" in item.message and (str(seq) in item.message or item.seq == 6)
        for item in problems
    )


def test_another_writers_name_on_a_fact_is_named(folder):
    run_sql(folder, "UPDATE facts SET writer = 'mallory' WHERE seq = 5")
    assert [(item.writer, item.seq) for item in check(folder)] == [("alice", 6), ("mallory", 5)]


def test_reordered_facts_are_named(folder):
    for before, after in ((5, -1), (6, 5), (-1, 6)):
        run_sql(folder, "UPDATE facts SET seq = ? WHERE seq = ?", after, before)
    assert {item.seq for item in check(folder)} >= {5, 6}


def test_a_missing_fact_is_named(folder):
    run_sql(folder, "DELETE FROM facts WHERE seq = 5")
    problems = check(folder)
    assert problems[0].seq == 6
    assert "missing" in problems[0].message


def test_a_cut_tail_is_named_by_the_anchor(folder):
    last = all_data(folder)[-1][0]
    run_sql(folder, "DELETE FROM facts WHERE seq > ?", last - 2)
    problem = check(folder)[0]
    assert (problem.writer, problem.seq, problem.kind) == ("alice", last - 1, "cut")
    assert f"names fact {last}" in problem.message
    with pytest.raises(LedgerDamagedError, match=f"fact {last} of writer alice"):
        open_ledger(folder)
    assert "cut" in {item.kind for item in check(folder)}


def test_nothing_is_appended_to_a_cut_or_replaced_ledger(folder):
    last = all_data(folder)[-1][0]
    run_sql(folder, "DELETE FROM facts WHERE seq > ?", last - 5)
    for _ in range(2):
        with (
            open_ledger(folder, restore=True) as ledger,
            pytest.raises(LedgerDamagedError, match="was cut"),
        ):
            ledger.open_experiment(hypothesis="h", parent=None, by="me")
        assert any(item.kind == "cut" for item in check(folder))
        (folder / "ledger.db").unlink()


def test_a_replaced_chain_is_named(folder, tmp_path):
    other = tmp_path / "other"
    with full_ledger(other, lives=4, clock=late_clock(1)):
        pass
    (other / "ledger.db").replace(folder / "ledger.db")
    assert "anchor" in {item.kind for item in check(folder)}
    with pytest.raises(LedgerDamagedError, match="is another one"):
        open_ledger(folder)


def test_an_unreadable_anchor_is_a_problem(folder):
    (folder / "anchors" / "alice.json").write_bytes(b"")
    assert [item.kind for item in check(folder)] == ["anchor"]
    (folder / "anchors" / "alice.json").unlink()
    (folder / "anchors" / "alice.json").mkdir()
    assert "anchor" in [item.kind for item in check(folder)]


def test_anchors_that_are_all_gone_are_a_problem(folder):
    for path in (folder / "anchors").glob("*.json"):
        path.unlink()
    assert [item.kind for item in check(folder)] == ["anchor"]
    with open_ledger(folder) as ledger:
        decided(ledger, None, "ITERATE")
    assert check(folder) == []


def test_bytes_that_became_text_are_named(folder):
    run_sql(folder, "UPDATE facts SET data = CAST(data AS TEXT) WHERE seq = 4")
    for text in (False, True):
        assert (4, True) in [
            (item.seq, "stored as str" in item.message) for item in check(folder, text=text)
        ]


def test_state_that_disagrees_with_the_facts_is_reported(folder):
    run_sql(folder, "UPDATE experiments SET status = 'kept' WHERE id = 'exp-0001'")
    run_sql(folder, "DELETE FROM decisions WHERE id = 'd-0002'")
    assert [(item.kind, item.message.split(" ")[0]) for item in check(folder)] == [
        ("experiments", "exp-0001"),
        ("decisions", "d-0002"),
    ]


def test_text_form_that_differs_is_reported_and_a_missing_tail_is_not(folder):
    path = folder / "facts" / "alice.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    assert check(folder, text=True) == []
    path.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])  # a torn last line
    assert check(folder, text=True) == []
    lines[4] = lines[4].replace(b"alice", b"alicf")
    path.write_bytes(b"".join(lines))
    assert [(item.writer, item.seq) for item in check(folder, text=True)] == [("alice", 5)]
    path.write_bytes(b"".join(lines[:4]) + b"{}\n" + b"".join(lines[5:]) + b"more\n")
    assert [item.seq for item in check(folder, text=True)] == [5, 0]


def test_raw_damage_of_any_fact_page_is_never_missed(folder):
    path = folder / "ledger.db"
    whole = path.read_bytes()
    choose = random.Random(3)
    for seq, _, data in choose.sample(all_data(folder), 12):
        probe = data[-60:]
        assert whole.count(probe) == 1
        place = whole.index(probe) + choose.randrange(len(probe))
        damaged = bytearray(whole)
        damaged[place] ^= 0x20
        path.write_bytes(damaged)
        assert seq in {item.seq for item in check(folder)}
    path.write_bytes(whole)
    assert check(folder) == []


def test_a_file_that_is_no_ledger_is_a_problem_and_no_ledger_is_an_error(folder, tmp_path_factory):
    (folder / "ledger.db").write_bytes(b"")
    assert [item.kind for item in check(folder)] == ["database"]
    (folder / "ledger.db").unlink()
    assert "is gone" in check(folder)[0].message
    with pytest.raises(NotFoundError, match="no ledger"):
        check(tmp_path_factory.mktemp("empty"))


def test_a_fact_moved_in_the_order_of_the_database_is_named(folder):
    run_sql(folder, "UPDATE facts SET position = position + 1000 WHERE seq = 4")
    assert (5, True) in [(problem.seq, "moved" in problem.message) for problem in check(folder)]


@pytest.mark.parametrize("column", ["at", "kind", "hash", "writer"])
def test_a_column_of_another_type_is_named_and_does_not_raise(folder, column):
    run_sql(folder, f"UPDATE facts SET {column} = x'00ff' WHERE seq = 4")
    assert check(folder) != []


META = [
    "UPDATE meta SET value = 'mallory'",
    "UPDATE meta SET value = x'616c696365'",
    "UPDATE meta SET key = 'Writer'",
    "DELETE FROM meta",
    "DROP TABLE meta",
    "INSERT INTO meta VALUES ('colour', 'red')",
]


@pytest.mark.parametrize("statement", META)
def test_a_change_of_the_table_meta_is_named_and_nothing_is_appended(folder, statement):
    run_sql(folder, statement)
    problems = check(folder)
    assert {item.kind for item in problems} == {"meta"}
    assert all(
        item.message.startswith("The table meta ") and item.message.endswith(".")
        for item in problems
    )
    for options in ({}, {"read_only": True}, {"writer": None}):
        with pytest.raises(LedgerDamagedError, match="the table meta") as error:
            open_ledger(folder, **options)
        assert "ledger verify" in error.value.hint


def test_the_hints_of_another_writers_name_hold(folder):
    run_sql(folder, "UPDATE meta SET value = 'mallory'")
    (problem,) = check(folder)
    assert "chain of writer mallory" in problem.message
    assert "local_writer says alice" in problem.message
    (folder / "ledger.db").unlink()
    with open_ledger(folder, writer="bob", restore=True) as ledger:
        assert import_facts(ledger, folder / "facts") > 0
    assert check(folder, text=True) == []
    (folder / "anchors" / "local_writer").write_text("mallory\n")
    assert [item.kind for item in check(folder)] == ["meta"]
    (folder / "anchors" / "local_writer").unlink()
    with open_ledger(folder, writer=None) as ledger:
        assert ledger.writer == "bob"
    assert (folder / "anchors" / "local_writer").read_text() == "bob\n"
    assert check(folder, text=True) == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"PRAGMA user_version = {STATE_VERSION + 1}", "has state version"),
        (f"PRAGMA user_version = {MIGRATING - 1}", "has state version"),
        (f"PRAGMA user_version = {MIGRATING}", "did not end"),
        (f"PRAGMA user_version = {MOVED}", "moved to another store"),
        ("PRAGMA application_id = 7", "not one of this harness"),
        ("DROP TABLE facts", "not one of this harness"),
        ("ALTER TABLE facts RENAME TO events", "not one of this harness"),
    ],
)
def test_a_change_of_the_versions_is_named_and_nothing_is_made_anew(folder, statement, words):
    run_sql(folder, statement)
    before = (folder / "ledger.db").read_bytes()
    if "user_version" in statement:
        with pytest.raises(LedgerError, match=words):
            check(folder)
    else:
        assert [words in item.message for item in check(folder)] == [True]
    with pytest.raises(LedgerError, match=words):
        open_ledger(folder)
    assert list(folder.glob("*.backup.db")) == []
    assert (folder / "ledger.db").read_bytes() == before
