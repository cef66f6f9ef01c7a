"""The text form: out by appending, in with every check, and merged from two writers."""

import json
from pathlib import Path

import pytest
from ledger_samples import (
    decided,
    full_ledger,
    late_clock,
    life,
    open_ledger,
    place,
    program,
    read_state,
)

from harness.errors import LedgerDamagedError, RefusedError, UsageError
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.verify import verify


def state_of(ledger):
    with ledger.connection() as connection:
        return read_state(connection)


def test_export_appends_only_new_facts_each_line_the_facts_bytes(tmp_path):
    text = tmp_path / "facts"
    with full_ledger(tmp_path) as ledger:
        assert export_facts(ledger, text) == [text / "alice.jsonl"]
        first, inode = (text / "alice.jsonl").read_bytes(), (text / "alice.jsonl").stat().st_ino
        assert export_facts(ledger, text) == []
        life(ledger)
        assert export_facts(ledger, text) == [text / "alice.jsonl"]
        whole = (text / "alice.jsonl").read_bytes()
        assert whole.startswith(first)
        assert (text / "alice.jsonl").stat().st_ino == inode
        assert whole.split(b"\n")[:-1] == [fact.data for fact in ledger.facts()]


@pytest.mark.parametrize("keep", [0, 10, -1, -2, -300])
def test_export_fixes_a_torn_or_short_file(tmp_path, keep):
    path = tmp_path / "facts" / "alice.jsonl"
    with full_ledger(tmp_path) as ledger:
        export_facts(ledger, tmp_path / "facts")
        whole = path.read_bytes()
        path.write_bytes(whole[:keep])
        export_facts(ledger, tmp_path / "facts")
        assert path.read_bytes() == whole
        assert list(path.parent.iterdir()) == [path]


def test_export_sets_a_foreign_file_aside_and_check_finds_changed_lines(tmp_path):
    path = tmp_path / "facts" / "alice.jsonl"
    with full_ledger(tmp_path) as ledger:
        export_facts(ledger, tmp_path / "facts")
        whole = path.read_bytes()
        path.write_bytes(b"something else\n")
        export_facts(ledger, tmp_path / "facts")
        assert path.read_bytes() == whole
        assert (path.parent / "alice.jsonl.differs-1").read_bytes() == b"something else\n"
        path.write_bytes(whole.replace(b"digits", b"fidgit", 1))
        assert export_facts(ledger, tmp_path / "facts") == []
        assert export_facts(ledger, tmp_path / "facts", check=True) == [path]
        assert path.read_bytes() == whole


def test_long_facts_survive_the_look_at_the_last_line(tmp_path):
    with open_ledger(tmp_path) as ledger:
        for size in (30_000, 80_000, 10):
            decided(ledger, None, "ITERATE", context="x" * size)
            assert len(export_facts(ledger, tmp_path / "facts")) == 1
        assert len((tmp_path / "facts" / "alice.jsonl").read_bytes().split(b"\n")) == 4


def test_import_into_an_empty_clone_gives_the_same_state_and_twice_is_once(tmp_path):
    with full_ledger(tmp_path / "a") as ledger, open_ledger(tmp_path / "b", writer="bob") as clone:
        export_facts(ledger, tmp_path / "facts")
        assert import_facts(clone, tmp_path / "facts") == ledger.position()
        assert state_of(clone) == state_of(ledger)
        assert import_facts(clone, tmp_path / "facts") == 0
        assert (
            json.loads((tmp_path / "b" / "anchors" / "alice.json").read_text())["seq"]
            == ledger.position()
        )
    assert verify(place(tmp_path / "b"), tmp_path / "b" / "anchors", tmp_path / "facts") == []


def test_two_clones_that_take_turns_end_equal(tmp_path):
    text = tmp_path / "facts"
    alice, bob = (
        full_ledger(tmp_path / "a"),
        open_ledger(tmp_path / "b", writer="bob", clock=late_clock(0)),
    )
    with alice, bob:
        export_facts(alice, text)
        import_facts(bob, text)
        assert life(bob, 0.8, parent="exp-0003") == "exp-0004"  # bob's clock is behind alice's
        export_facts(bob, text)
        import_facts(alice, text)
        assert life(alice, 0.9, parent="exp-0004") == "exp-0005"
        export_facts(alice, text)
        import_facts(bob, text)
        assert sorted(path.name for path in text.iterdir()) == ["alice.jsonl", "bob.jsonl"]
        assert state_of(alice) == state_of(bob)
        with open_ledger(tmp_path / "c", writer="carol") as third:
            import_facts(third, text)
            assert state_of(third) == state_of(alice)
    assert verify(place(tmp_path / "a"), tmp_path / "a" / "anchors", text) == []


def test_export_leaves_a_file_that_is_ahead_alone(tmp_path):
    text = tmp_path / "facts"
    with full_ledger(tmp_path / "a") as alice, open_ledger(tmp_path / "b", writer="bob") as bob:
        export_facts(alice, text)
        import_facts(bob, text)
        life(alice)
        export_facts(alice, text)
        ahead = (text / "alice.jsonl").read_bytes()
        assert export_facts(bob, text) == []
        assert (text / "alice.jsonl").read_bytes() == ahead
    assert verify(place(tmp_path / "b"), tmp_path / "b" / "anchors", text) == []


def test_two_experiments_with_one_id_are_refused_naming_both_writers(tmp_path):
    text = tmp_path / "facts"
    with full_ledger(tmp_path / "a") as alice, open_ledger(tmp_path / "b", writer="bob") as bob:
        export_facts(alice, text)
        bob.open_experiment(hypothesis="mine", parent=None, by="me")
        before, facts = state_of(bob), bob.position()
        with pytest.raises(
            RefusedError, match=r"exp-0001 was made twice .*writer bob .*writer alice"
        ) as clash:
            import_facts(bob, text)
        assert clash.value.code == "id_clash"
        assert (state_of(bob), bob.position()) == (before, facts)
        assert not (tmp_path / "b" / "anchors" / "alice.json").exists()


@pytest.mark.parametrize("how", ["byte", "cut", "dropped", "swapped", "renamed", "garbage"])
def test_a_damaged_text_is_refused_with_the_name_of_the_fact(tmp_path, how):
    text = tmp_path / "facts"
    with full_ledger(tmp_path / "a") as ledger:
        export_facts(ledger, text)
    path = text / "alice.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    named = "fact 5 of writer alice"
    if how == "byte":
        lines[4] = lines[4].replace(b"exp-0001", b"exp-0002")
        named = "fact 6 of writer alice.*that one .line 5, .* was changed, or this one"
    elif how == "cut":
        lines, named = [*lines[:4], lines[4][:-1]], "fact 5 of writer alice.*no end"
    elif how == "dropped":
        del lines[4]
    elif how == "swapped":
        lines[4], lines[5] = lines[5], lines[4]
    elif how == "garbage":
        lines[4] = b"\xff\x00 {\n"
    path.write_bytes(b"".join(lines))
    if how == "renamed":
        path = path.rename(text / "bob.jsonl")
        named = "fact 1 of writer bob.*of writer alice"
    with open_ledger(tmp_path / "b", writer="carol") as clone:
        with pytest.raises(LedgerDamagedError, match=named):
            import_facts(clone, text)
        assert clone.position() == 0


def test_a_text_that_contradicts_the_ledger_is_refused(tmp_path):
    text = tmp_path / "facts"
    with (
        full_ledger(tmp_path / "a") as one,
        full_ledger(tmp_path / "b", clock=late_clock(3)) as other,
    ):
        export_facts(one, text)
        with pytest.raises(LedgerDamagedError, match="Fact 1 of writer alice"):
            import_facts(other, text)


def test_facts_that_rest_on_missing_ones_are_refused(tmp_path):
    text = tmp_path / "facts"
    with full_ledger(tmp_path / "a") as alice, open_ledger(tmp_path / "b", writer="bob") as bob:
        export_facts(alice, text)
        import_facts(bob, text)
        decided(bob, "exp-0001")
        export_facts(bob, text)
        (text / "alice.jsonl").unlink()
        with (
            open_ledger(tmp_path / "c") as clone,
            pytest.raises(LedgerDamagedError, match="no earlier fact"),
        ):
            import_facts(clone, text)


def test_a_name_that_leaves_the_folder_is_refused(tmp_path):
    text = tmp_path / "facts"
    text.mkdir()
    (text / "a b.jsonl").write_bytes(b"")
    with (
        open_ledger(tmp_path / "c") as clone,
        pytest.raises(LedgerDamagedError, match="not named after a writer"),
    ):
        import_facts(clone, text)


@pytest.mark.of_a_file
def test_a_lost_ledger_comes_back_from_the_text_form(tmp_path):
    text = tmp_path / "facts"
    with full_ledger(tmp_path) as ledger:
        export_facts(ledger, text)
        before = state_of(ledger)
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(LedgerDamagedError, match="is gone"):
        open_ledger(tmp_path)
    with open_ledger(tmp_path, restore=True) as restored:
        import_facts(restored, text)
        assert state_of(restored) == before
        life(restored)
    assert verify(place(tmp_path), tmp_path / "anchors", text) == []


def test_export_to_where_nothing_can_be_written_is_an_answer(tmp_path):
    (tmp_path / "file").write_text("")
    with full_ledger(tmp_path) as ledger:
        for folder in (tmp_path / "file" / "facts", Path("/proc/x")):
            with pytest.raises(UsageError, match="cannot be written") as told:
                export_facts(ledger, folder)
            assert told.value.code == "not_writable"


def test_a_removed_checkpoint_is_held_by_rebuild_export_and_import(tmp_path):
    with open_ledger(tmp_path / "a") as ledger:
        program(ledger)
        removed = ledger.removed_checkpoints("exp-0001")
        assert [(fact.path, fact.sha256, fact.bytes) for fact, _ in removed] == [
            ("y", "b" * 64, 1)
        ]
        ledger.rebuild()
        assert ledger.removed_checkpoints("exp-0001") == removed
        export_facts(ledger, tmp_path / "facts")
    with open_ledger(tmp_path / "b", writer="bob") as other:
        import_facts(other, tmp_path / "facts")
        assert other.removed_checkpoints("exp-0001") == removed
