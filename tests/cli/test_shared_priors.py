"""Priors from one project to another: with where they are from, and without private words."""

import json
from pathlib import Path

import pytest

from tests.cli.journey import Again, Answer, Journey, make_project


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("shared"), ("init",))


def fresh(base: Path) -> Journey:
    made = make_project(base / "project", base / "home")
    assert made.harness("init").exit_code == 0
    return made


def add(journey: Journey, lesson: str, rule: str, *more: str) -> Answer:
    words = ("priors", "add", "--lesson", lesson, "--evidence", "exp-0001", "--rule", rule)
    made = journey.harness(*words, *more)
    assert made.exit_code == 0, made.stderr
    return made


def test_a_lesson_comes_to_another_project_and_a_private_word_does_not(
    again: Again, tmp_path: Path
) -> None:
    first, second = again.journey(), fresh(tmp_path / "second")
    add(first, "Warm up before a large rate", "Warm up.", "--check", "python -c pass")
    add(first, "Rows of Acme Corp. repeat", "Group by customer.")
    add(first, "Deeper is slower", "See acme_corp_rows.csv.")
    (first.root / ".harness/private-words.txt").write_text("ACME corp\n\n", "utf-8")
    out = tmp_path / "priors.json"
    made = first.harness("priors", "export", "--out", str(out), "--json")
    assert made.document["priors"] == ["p-0001"]
    assert made.document["left_out"] == ["p-0002", "p-0003"]
    assert "acme" not in out.read_text("utf-8").lower()
    taken = second.harness("priors", "import", str(out), "--json")
    (prior,) = taken.document["recorded"]
    assert (prior["lesson"], prior["check"]) == ("Warm up before a large rate", None)
    assert "p-0001, recorded 20" in prior["evidence"]
    assert prior["evidence"].endswith("exp-0001")
    twice = second.harness("priors", "import", str(out), "--json").document
    assert (twice["recorded"], twice["known"]) == ([], ["Warm up before a large rate"])
    third = fresh(tmp_path / "third")
    with_checks = third.harness("priors", "import", str(out), "--checks", "--json")
    assert with_checks.document["recorded"][0]["check"] == ["python", "-c", "pass"]
    assert second.harness("ledger", "verify").exit_code == 0


SOUND: dict[str, str | None] = {
    "project": "toy",
    "id": "p-0001",
    "lesson": "Warm up",
    "evidence": "exp-0001",
    "rule": "Warm up.",
    "check": None,
    "by": "human:ada",
    "at": "2026-01-01T00:00:00.000Z",
}


def shared(*priors: dict[str, str | None]) -> str:
    return json.dumps({"form": "experiment-harness priors 1", "priors": priors})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "not JSON"),
        ("{}", "no list of priors"),
        ('{"form": "experiment-harness priors 1"}', "no list `priors`"),
        ('{"form": "experiment-harness priors 1", "priors": [{"lesson": "x"}]}', "evidence"),
        (shared(SOUND, SOUND | {"lesson": "x" * 400}), "lesson is 400"),
        (shared(SOUND, SOUND | {"lesson": "Another", "rule": "r" * 5000}), "rule is 5000"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_another_file_is_refused_whole(again: Again, tmp_path: Path, text: str, said: str) -> None:
    journey = again.journey()
    path = tmp_path / "other.json"
    path.write_text(text, "utf-8")
    answer = journey.harness("priors", "import", str(path), "--json")
    assert answer.exit_code == 2
    assert said in answer.document["error"]["message"]
    assert journey.harness("priors", "list", "--json").document["priors"] == []


def test_where_a_prior_is_from_may_be_long_and_a_rule_is_a_candidate(
    again: Again, tmp_path: Path
) -> None:
    journey = again.journey()
    path = tmp_path / "long.json"
    rule = {"lesson": "Not so fast", "enforces": "deny command *fast*"}
    path.write_text(shared(SOUND | {"project": "x" * 6000}, SOUND | rule), "utf-8")
    answer = journey.harness("priors", "import", str(path))
    assert answer.exit_code == 0, answer.stderr
    assert "candidate p-0002: deny command *fast*" in answer.stdout
    listed = journey.harness("priors", "list", "--json").document["priors"]
    assert [one["status"] for one in listed] == ["active", "candidate"]


def test_a_private_word_without_letters_is_kept_too(again: Again, tmp_path: Path) -> None:
    journey = again.journey()
    add(journey, "Rows of \u2605\u2605 repeat", "Group them.")
    add(journey, "Warm up before a large rate", "Warm up.")
    (journey.root / ".harness/private-words.txt").write_text("\u2605\u2605\n", "utf-8")
    out = tmp_path / "priors.json"
    made = journey.harness("priors", "export", "--out", str(out), "--json").document
    assert (made["priors"], made["left_out"]) == (["p-0002"], ["p-0001"])


def test_an_agent_takes_none_out_or_in(again: Again, tmp_path: Path) -> None:
    journey = again.journey()
    out = tmp_path / "priors.json"
    for words in (("export", "--out", str(out)), ("import", str(out))):
        answer = journey.harness("priors", *words, "--json", CLAUDECODE="1")
        assert answer.exit_code == 2
        assert json.loads(answer.stdout)["error"]["code"] == "human_verb"
    assert not out.exists()


def test_a_project_whose_name_is_private_stays_unnamed(again: Again, tmp_path: Path) -> None:
    first = again.journey()
    add(first, "Warm up before a large rate", "Warm up.")
    words = json.loads(first.harness("status", "--json").stdout)["project"]["id"]
    (first.root / ".harness/private-words.txt").write_text(f"{words[:4]}\n", "utf-8")
    out = tmp_path / "priors.json"
    made = first.harness("priors", "export", "--out", str(out), "--json")
    assert made.exit_code == 0, made.stderr
    assert words not in out.read_text("utf-8")
