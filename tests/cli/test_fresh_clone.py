"""A clone on a machine that knows nothing of the project: what is committed stays, nothing is
recorded past it."""

import shutil
from pathlib import Path

import pytest

from tests.cli.journey import Journey, make_project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """A project with an approved plan, an open experiment and a hand-off."""
    base = tmp_path_factory.mktemp("made")
    made = make_project(base / "project", base / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
        ("handoff", "--note", "Half done."),
    ):
        assert made.harness(*words).exit_code == 0
    return made


@pytest.fixture
def clone(made: Journey, tmp_path: Path) -> Journey:
    other = Journey(tmp_path / "clone", tmp_path / "another home")
    other.home.mkdir()
    shutil.copytree(
        made.root, other.root, ignore=shutil.ignore_patterns("policy.json", "receipts")
    )
    return other


def test_looking_says_what_to_do(clone: Journey) -> None:
    for words in (
        ("status",),
        ("experiment", "list"),
        ("decisions",),
        ("priors", "list"),
        ("status", "--briefing"),
    ):
        answer = clone.harness(*words, "--json")
        assert (answer.exit_code, answer.document["error"]["code"]) == (2, "facts_not_imported"), (
            words
        )
        assert "`harness ledger import`" in answer.document["error"]["hint"]
    assert not (clone.home / "state").exists(), "looking makes nothing"


@pytest.mark.parametrize(
    "words",
    [
        ("experiment", "new", "--hypothesis", "mine"),
        ("handoff", "--note", "mine"),
        ("plan", "approve"),
        ("train", "exp-0001"),
    ],
    ids=" ".join,
)
def test_nothing_is_recorded_before_the_import(clone: Journey, words: tuple[str, ...]) -> None:
    before = clone.projections()
    answer = clone.harness(*words, "--json")
    assert answer.exit_code == 2
    assert answer.document["error"]["code"] == "facts_not_imported"
    assert clone.projections() == before
    assert not (clone.root / ".harness/experiments/exp-0002").exists()


def test_hooks_get_their_snapshot_and_the_briefing_stays(clone: Journey) -> None:
    before = clone.projections()
    assert clone.harness("render").exit_code == 0
    assert (clone.root / ".harness/policy.json").is_file()
    assert clone.projections() == before
    assert b"> Half done." in before["memory/BRIEFING.md"]
    shown = clone.harness("status", "--json")
    assert (shown.exit_code, shown.document["facts_wait"]) == (0, True)
    assert "harness ledger import" in clone.harness("status").stdout
    refused = clone.harness("handoff", "--note", "mine", "--json")
    assert refused.document["error"]["code"] == "facts_not_imported"


def test_after_the_import_it_goes_on_where_the_other_machine_was(clone: Journey) -> None:
    before = clone.projections()
    assert clone.harness("render").exit_code == 0
    assert clone.harness("ledger", "import", "--json").document["imported"] == 5
    after = clone.projections()
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {"memory/STATE.md", "memory/BRIEFING.md"}
    for name in changed:
        old, new = before[name].splitlines(), after[name].splitlines()
        lines = [two for two in zip(old, new, strict=True) if two[0] != two[1]]
        # What is open in the other clone is trained there.
        ((there, here),) = lines
        train = b"`harness train exp-0001`"
        assert here == there.replace(train, b'try an idea: `harness try "IDEA"`')
    assert clone.harness("status", "--json").document["facts_wait"] is False
    assert clone.harness("handoff", "--note", "Mine.").exit_code == 0
    assert clone.harness("ledger", "verify").exit_code == 0
    assert len(list((clone.root / ".harness/memory/facts").glob("*.jsonl"))) == 2
