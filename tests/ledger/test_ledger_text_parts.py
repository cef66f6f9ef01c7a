"""The text form in parts: full ones are closed and compressed, and the chain stays one."""

import gzip
from pathlib import Path

import pytest
from ledger_samples import full_ledger, life, open_ledger, place

from harness.errors import LedgerDamagedError
from harness.ledger import text_parts
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.verify import verify

LIMIT = 6_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(text_parts, "LIMIT", LIMIT)


@pytest.fixture
def ledger(tmp_path):
    with full_ledger(tmp_path) as opened:
        yield opened


def parts_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def said_of(tmp_path) -> list[str]:
    problems = verify(place(tmp_path), tmp_path / "anchors", tmp_path / "facts")
    return [problem.message for problem in problems]


def test_full_parts_are_closed_and_a_clone_reads_all(ledger, tmp_path):
    export_facts(ledger, tmp_path / "facts")
    parts = parts_of(tmp_path / "facts")
    *closed, tail = parts
    assert tail == "alice.jsonl"
    assert len(closed) > 2
    whole = [gzip.decompress(parts[name]) for name in closed] + [parts[tail]]
    assert all(0 < len(text) <= LIMIT for text in whole)
    with ledger.connection() as connection:
        rows = connection.rows("SELECT data FROM facts ORDER BY seq")
        assert b"".join(whole) == b"".join(bytes(row["data"]) + b"\n" for row in rows)
    assert said_of(tmp_path) == []
    with open_ledger(tmp_path / "clone", writer=None) as clone:
        assert import_facts(clone, tmp_path / "facts") == ledger.position()
        assert import_facts(clone, tmp_path / "facts") == 0
        assert [one.id for one in clone.experiments()] == [one.id for one in ledger.experiments()]


def test_what_is_written_bit_by_bit_is_what_is_written_at_once(ledger, tmp_path):
    for _ in range(6):
        export_facts(ledger, tmp_path / "facts")
        life(ledger)
    export_facts(ledger, tmp_path / "facts")
    export_facts(ledger, tmp_path / "once")
    assert parts_of(tmp_path / "facts") == parts_of(tmp_path / "once")
    assert export_facts(ledger, tmp_path / "facts", check=True) == []


def test_one_large_file_of_before_is_split_by_the_next_fact(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(text_parts, "LIMIT", 1 << 20)
    export_facts(ledger, tmp_path / "facts")
    assert list(parts_of(tmp_path / "facts")) == ["alice.jsonl"]
    monkeypatch.setattr(text_parts, "LIMIT", LIMIT)
    assert said_of(tmp_path) == []
    life(ledger)
    export_facts(ledger, tmp_path / "facts")
    export_facts(ledger, tmp_path / "once")
    assert parts_of(tmp_path / "facts") == parts_of(tmp_path / "once")


def test_a_kill_between_a_part_and_the_shorter_tail_loses_and_doubles_nothing(ledger, tmp_path):
    folder = tmp_path / "facts"
    export_facts(ledger, folder)
    before = (folder / "alice.jsonl").read_bytes()
    known = len(parts_of(folder))
    while len(parts_of(folder)) == known:
        before = (folder / "alice.jsonl").read_bytes()
        life(ledger)
        export_facts(ledger, folder)
    wanted = parts_of(folder)
    (folder / "alice.jsonl").write_bytes(before)
    assert said_of(tmp_path) == []
    with open_ledger(tmp_path / "clone", writer=None) as clone:
        assert import_facts(clone, folder) > 0
    export_facts(ledger, folder)
    assert parts_of(folder) == wanted


@pytest.mark.parametrize("place", [0, 1, -2])
def test_a_part_that_is_gone_is_named_and_written_again(ledger, tmp_path, place):
    folder = tmp_path / "facts"
    export_facts(ledger, folder)
    wanted = parts_of(folder)
    (folder / list(wanted)[place]).unlink()
    (said,) = said_of(tmp_path)
    assert "are missing" in said
    with (
        open_ledger(tmp_path / "clone", writer=None) as clone,
        pytest.raises(LedgerDamagedError, match="facts between are missing"),
    ):
        import_facts(clone, folder)
    export_facts(ledger, folder)
    assert parts_of(folder) == wanted


def test_closed_parts_without_their_end_are_no_whole_text(ledger, tmp_path):
    folder = tmp_path / "facts"
    export_facts(ledger, folder)
    wanted = parts_of(folder)
    (folder / "alice.jsonl").unlink()
    assert len(said_of(tmp_path)) == len(wanted) - 1
    with (
        open_ledger(tmp_path / "clone", writer=None) as clone,
        pytest.raises(LedgerDamagedError, match="the file that goes on is missing"),
    ):
        import_facts(clone, folder)
    export_facts(ledger, folder, check=True)
    assert parts_of(folder) == wanted


def test_a_part_that_cannot_be_unpacked_is_named_and_written_again(ledger, tmp_path):
    folder = tmp_path / "facts"
    export_facts(ledger, folder)
    wanted = parts_of(folder)
    name = next(iter(wanted))
    (folder / name).write_bytes(wanted[name][:-20])
    (said,) = said_of(tmp_path)
    assert name in said
    assert "cannot be unpacked" in said
    with (
        open_ledger(tmp_path / "clone", writer=None) as clone,
        pytest.raises(LedgerDamagedError, match="cannot be unpacked"),
    ):
        import_facts(clone, folder)
    export_facts(ledger, folder, check=True)
    assert (folder / f"{name}.differs-1").exists()
    assert {one: text for one, text in parts_of(folder).items() if "differs" not in one} == wanted
