"""Two clones that both gave out ids become one; and who added each fact."""

import pytest
from ledger_samples import (
    decided,
    full_ledger,
    late_clock,
    life,
    open_ledger,
    place,
    plan,
    read_state,
)

from harness.domain.statuses import DecisionKind
from harness.errors import RefusedError
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.merging import merge_facts, renamings
from harness.ledger.origins import newest_facts
from harness.ledger.renames import Renamed
from harness.ledger.verify import verify


def state_of(ledger):
    with ledger.connection() as connection:
        return read_state(connection)


def free(name):
    return False


@pytest.fixture
def clones(tmp_path):
    """Alice and Bob share three experiments; then both open two more, Bob with a clock that is
    hours behind."""
    text = tmp_path / "facts"
    alice = full_ledger(tmp_path / "a")
    bob = open_ledger(tmp_path / "b", writer="bob", clock=late_clock(0))
    with alice, bob:
        export_facts(alice, text)
        import_facts(bob, text)
        life(alice, 0.8, parent="exp-0003")
        decided(bob, None, "ITERATE")
        life(bob, 0.7, parent="exp-0003")
        assert life(bob, 0.6, parent="exp-0004") == "exp-0005"
        export_facts(alice, text)
        yield alice, bob, text


def test_who_merges_renames_its_own_and_all_that_refers_to_them(clones, tmp_path):
    alice, bob, text = clones
    with pytest.raises(RefusedError, match="harness ledger merge") as clash:
        import_facts(bob, text)
    assert clash.value.code == "id_clash"
    hypotheses = {name: bob.experiment(name).hypothesis for name in ("exp-0004", "exp-0005")}
    runs = len(bob.runs("exp-0004"))
    merged = merge_facts(bob, text, by="human:bob", taken=free)
    assert merged.imported > 0
    assert merged.names["exp-0004"] == "exp-0006"
    assert "exp-0005" not in merged.names
    assert bob.experiment("exp-0006").hypothesis == hypotheses["exp-0004"]
    assert bob.experiment("exp-0005").parent == "exp-0006"
    assert bob.experiment("exp-0004").hypothesis == alice.experiment("exp-0004").hypothesis
    assert len(bob.runs("exp-0006")) == runs
    assert all(one.experiment == "exp-0006" for one in bob.decisions("exp-0006"))
    last = bob.decisions()[-1]
    assert last.kind is DecisionKind.RENAME
    assert "exp-0004 is now exp-0006" in last.choice
    assert last.by == "human:bob"
    ids = [one.id for one in bob.decisions()]
    assert len(ids) == len(set(ids))
    assert verify(place(tmp_path / "b"), tmp_path / "b" / "anchors") == []


def test_the_other_clone_takes_the_new_names_in_and_both_go_on(clones, tmp_path):
    alice, bob, text = clones
    merge_facts(bob, text, by="human:bob", taken=free)
    assert life(bob, 0.9, parent="exp-0006") == "exp-0007"
    export_facts(bob, text)
    import_facts(alice, text)
    assert state_of(alice) == state_of(bob)
    alice.rebuild()
    assert state_of(alice) == state_of(bob)
    for name in ("a", "b"):
        assert verify(place(tmp_path / name), tmp_path / name / "anchors", text) == []
    with open_ledger(tmp_path / "c", writer="carol") as third:
        import_facts(third, text)
        assert state_of(third) == state_of(alice)


def test_what_was_renamed_is_told_by_the_facts_of_who_merged(clones):
    alice, bob, text = clones
    assert renamings(bob) == []
    merged = merge_facts(bob, text, by="human:bob", taken=free)
    (one,) = renamings(bob)
    assert one.names == merged.names
    # Of this writer's own, also the child that kept its id, and none that came from Alice.
    assert one.experiments == ["exp-0006", "exp-0005"]
    assert life(bob, 0.9, parent="exp-0006") == "exp-0007"
    assert renamings(bob) == [one]
    export_facts(bob, text)
    import_facts(alice, text)
    assert renamings(alice) == []


def test_merging_twice_and_without_a_clash_renames_nothing(clones):
    _, bob, text = clones
    assert merge_facts(bob, text, by="human:bob", taken=free).names
    before = bob.position()
    assert merge_facts(bob, text, by="human:bob", taken=free) == (0, {})
    assert bob.position() == before


def test_an_id_whose_folder_exists_is_passed_over(clones):
    _, bob, text = clones
    merged = merge_facts(bob, text, by="human:bob", taken=lambda name: name == "exp-0006")
    assert merged.names["exp-0004"] == "exp-0007"


def test_two_plans_of_one_version_are_no_case_for_new_numbers(tmp_path):
    text = tmp_path / "facts"
    with (
        open_ledger(tmp_path / "a") as alice,
        open_ledger(tmp_path / "b", writer="bob") as bob,
    ):
        alice.append(plan())
        bob.append(plan())
        export_facts(alice, text)
        before = bob.position()
        with pytest.raises(RefusedError, match="digits/1 was made twice"):
            merge_facts(bob, text, by="human:bob", taken=free)
        assert bob.position() == before


def test_an_id_that_a_third_writer_names_is_refused(clones, tmp_path):
    _, bob, text = clones
    bobs = tmp_path / "of-bob"
    export_facts(bob, bobs)
    with open_ledger(tmp_path / "c", writer="carol", clock=late_clock(9)) as carol:
        import_facts(carol, bobs)
        decided(carol, "exp-0004")
        export_facts(carol, text)
        (text / "bob.jsonl").unlink(missing_ok=True)
        with pytest.raises(RefusedError, match="names exp-0004, which two other writers"):
            merge_facts(bob, text, by="human:bob", taken=free)


def test_new_names_stand_wherever_the_old_ones_stood_as_a_word():
    renamed = Renamed({"exp-0004": "exp-0006", "exp-0006": "exp-0008"})
    assert renamed({"path": ".harness/experiments/exp-0004/runs/run-01", "exp-0004": [1]}) == {
        "path": ".harness/experiments/exp-0006/runs/run-01",
        "exp-0006": [1],
    }
    assert renamed("exp-00041 my-exp-0004 exp-0004, exp-0006.") == (
        "exp-00041 my-exp-0004 exp-0006, exp-0008."
    )


def test_each_fact_tells_who_added_it_where_and_in_what_role(tmp_path):
    with open_ledger(tmp_path) as ledger:
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        ledger.acts_as("ada@desk person")
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        with open_ledger(tmp_path) as other:
            other.acts_as("bob@gpu-1 driver:bwrap")
            other.open_experiment(hypothesis="h", parent=None, by="me")
        ledger.open_experiment(hypothesis="h", parent=None, by="me")
        assert [row.origin for row in newest_facts(ledger, 9)] == [
            None,
            "ada@desk person",
            "ada@desk person",
            "bob@gpu-1 driver:bwrap",
            "ada@desk person",
        ]
        # said once while nobody else comes in between
        assert [fact.origin is not None for fact in ledger.facts()] == [
            False,
            True,
            False,
            True,
            True,
        ]
        export_facts(ledger, tmp_path / "facts")
    assert verify(place(tmp_path), tmp_path / "anchors", tmp_path / "facts") == []
