"""Hand-offs and priors: what is refused, what supersedes what, and that two clones come
together."""

import pytest
from ledger_samples import late_clock, open_ledger, place, plan, prior

from harness.errors import LedgerBusyError, NotFoundError, RefusedError, UsageError
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.facts import HandOffWritten
from harness.ledger.verify import verify


def hand_off(text="half done", **fields):
    return HandOffWritten(
        **{"by": "agent", "session": None, "text": text, "experiment": None, **fields}
    )


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 4001, None, 7])
def test_a_hand_off_is_text_of_some_length(tmp_path, text):
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(UsageError, match=r"hand-off is .*1 to 4000 characters"):
            ledger.append(hand_off(text))
        assert ledger.position() == 0
        ledger.append(hand_off("x" * 4000))


def test_a_hand_off_is_about_an_experiment_that_exists(tmp_path):
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(NotFoundError, match="exp-0009"):
            ledger.append(hand_off(experiment="exp-0009"))
        ledger.append(plan())
        name = ledger.open_experiment(hypothesis="h", parent=None, by="me").id
        ledger.append(hand_off(experiment=name, session="5b0c"))
        (item,) = ledger.hand_offs()
        assert (item.by, item.session, item.text, item.experiment) == (
            "agent",
            "5b0c",
            "half done",
            name,
        )
        (key,) = ledger.hand_off_keys()
        assert key == (item.at, item.hash)


def test_the_newest_hand_offs(tmp_path):
    with open_ledger(tmp_path) as ledger:
        for text in ("a", "b", "c"):
            ledger.append(hand_off(text))
        assert [item.text for item in ledger.hand_offs(newest=2)] == ["b", "c"]


def test_a_hand_off_is_kept_while_the_ledger_is_busy(tmp_path):
    with open_ledger(tmp_path) as ledger, open_ledger(tmp_path, busy_seconds=0.05) as other:
        with (
            ledger.exclusive(),
            pytest.raises(LedgerBusyError, match=r"hand_off_written\) was kept"),
        ):
            other.append(hand_off())
        other.append(hand_off("later"))
        assert [item.text for item in other.hand_offs()] == ["half done", "later"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"lesson": ""}, "lesson is ''"),
        ({"lesson": "x" * 301}, "lesson is 301 characters"),
        ({"lesson": "one\ntwo"}, "several lines"),
        ({"evidence": " "}, "evidence is ' '"),
        ({"rule": "x" * 4001}, "rule is 4001 characters"),
        ({"check": []}, r"check is \[\]"),
        ({"check": ["python", 3]}, "check is"),
        ({"check": "pytest"}, "check is 'pytest'"),
        ({"supersedes": "p-0009"}, "no prior 'p-0009'"),
    ],
)
def test_what_is_no_prior_is_refused(tmp_path, fields, said):
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(UsageError, match=said):
            prior(ledger, **fields)
        assert ledger.priors() == []


def test_a_prior_is_superseded_once(tmp_path):
    with open_ledger(tmp_path) as ledger:
        first = prior(ledger, check=["python", "-c", "pass"])
        second = prior(ledger, lesson="better", supersedes=first)
        with pytest.raises(
            RefusedError, match="p-0001 is superseded by p-0002 already"
        ) as refused:
            prior(ledger, supersedes=first)
        assert "p-0002" in refused.value.hint
        assert [(item.id, item.check, item.superseded_by) for item in ledger.priors()] == [
            (first, ("python", "-c", "pass"), second),
            (second, None, None),
        ]
        assert [item.id for item in ledger.priors(standing=True)] == [second]


def test_hand_offs_of_two_clones_come_together_and_priors_of_one_number_clash(tmp_path):
    text = tmp_path / "facts"
    with (
        open_ledger(tmp_path / "a") as alice,
        open_ledger(tmp_path / "b", writer="bob", clock=late_clock(1)) as bob,
    ):
        alice.append(hand_off("of alice"))
        bob.append(hand_off("of bob"))
        export_facts(alice, text)
        export_facts(bob, text)
        import_facts(alice, text)
        import_facts(bob, text)
        for ledger in (alice, bob):
            assert [item.text for item in ledger.hand_offs()] == ["of alice", "of bob"]
        assert len({digest for _, digest in alice.hand_off_keys()}) == 2
        prior(alice)
        prior(bob)
        export_facts(alice, text)
        with pytest.raises(RefusedError, match="p-0001 was made twice"):
            import_facts(bob, text)
    for folder in ("a", "b"):
        assert verify(place(tmp_path / folder), tmp_path / folder / "anchors", text) == []
